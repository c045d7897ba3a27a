const LENGTH_MAX = 100;
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** What is wrong with the id of a job or step, in GitHub's words. */
export function identifierProblem(id: string): string | undefined {
  if (!IDENTIFIER.test(id) || id.length >= LENGTH_MAX) {
    return `The identifier '${id}' is invalid. IDs may only contain alphanumeric characters, '_', and '-'. IDs must start with a letter or '_' and and must be less than ${LENGTH_MAX} characters.`;
  }
  return id.startsWith('__')
    ? `The identifier '${id}' is invalid. IDs starting with '__' are reserved.`
    : undefined;
}
