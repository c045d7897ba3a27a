import { DEFAULT_ENVIRONMENT, nameProblem, valueProblem } from './names.ts';

const PREFIX = 'RUNNER_SECRET_';

export type ProcessSecrets = {
  /** Name, upper case, to value; all of the default environment. */
  readonly values: ReadonlyMap<string, string>;
  readonly problems: readonly string[];
  readonly environment: typeof DEFAULT_ENVIRONMENT;
};

/** Secrets that the process was started with: RUNNER_SECRET_<NAME>. Empty ones count as unset. Read-only. */
export function processSecrets(
  environment: Readonly<Record<string, string | undefined>>,
): ProcessSecrets {
  const values = new Map<string, string>();
  const problems: string[] = [];
  for (const [key, value] of Object.entries(environment)) {
    if (!key.startsWith(PREFIX) || value === undefined || value === '') continue;
    const name = key.slice(PREFIX.length);
    const problem = nameProblem(name) ?? valueProblem(value, false);
    if (problem === undefined) values.set(name.toUpperCase(), value);
    else problems.push(`${key.slice(0, 64)}: ${problem}`);
  }
  return { values, problems, environment: DEFAULT_ENVIRONMENT };
}
