import { AppError } from '../../shared/app-error.ts';

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const COUNT_MAX = 1_000;
const CHARACTERS_MAX = 65_535;

/**
 * Variables that a run is started with. They are below what workflow, job and step say in `env`, and below
 * what the runner itself sets.
 * Errors: INVALID_REQUEST, with the field `env`, for a name that is none, a value that is no text, and too
 * many of them.
 */
export function mustBeVariables(
  entries: Iterable<readonly [string, unknown]>,
): Readonly<Record<string, string>> {
  const variables = new Map<string, string>();
  let characters = 0;
  for (const [name, value] of entries) {
    if (!NAME.test(name)) throw wrong(`'${name.slice(0, 100)}' is no name of a variable`);
    if (typeof value !== 'string' || value.includes('\0')) {
      throw wrong(`${name.slice(0, 100)}: must be a text`);
    }
    variables.set(name, value);
    characters += name.length + value.length;
  }
  if (variables.size > COUNT_MAX || characters > CHARACTERS_MAX) {
    throw wrong(`more than ${COUNT_MAX} variables, or ${CHARACTERS_MAX} characters in all`);
  }
  return Object.fromEntries(variables);
}

function wrong(text: string): AppError {
  return new AppError('INVALID_REQUEST', `env: ${text}`, { field: 'env' });
}
