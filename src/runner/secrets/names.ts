import { AppError } from '../../shared/app-error.ts';
import { ENVIRONMENT_LENGTH_MAX, NAME_LENGTH_MAX, VALUE_BYTES_MAX } from './secret-limits.ts';

/** Secrets and variables of the whole repository; `''` means the same. */
export const DEFAULT_ENVIRONMENT = 'default';

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const RESERVED_PREFIXES = ['GITHUB_', 'RUNNER_', 'ACTIONS_'];
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Why a name cannot be one of a secret or variable; undefined when it can. Never quotes it: it may be a value by mistake. */
export function nameProblem(name: string): string | undefined {
  if (name.length > NAME_LENGTH_MAX) return `the name is longer than ${NAME_LENGTH_MAX} characters`;
  if (!NAME.test(name)) {
    return 'a name begins with a letter or _ and goes on with letters, digits and _';
  }
  const upper = name.toUpperCase();
  const prefix = RESERVED_PREFIXES.find((reserved) => upper.startsWith(reserved));
  return prefix === undefined ? undefined : `names that begin with ${prefix} are reserved`;
}

/**
 * The name as it is kept: upper case (names have no case, as on GitHub).
 * Errors: INVALID_NAME with metadata.field `name`.
 */
export function parseName(name: string): string {
  const problem = nameProblem(name);
  if (problem !== undefined) throw new AppError('INVALID_NAME', problem, { field: 'name' });
  return name.toUpperCase();
}

/** Why a text cannot name an environment; undefined when it can. */
export function environmentProblem(environment: string): string | undefined {
  if (environment.length > ENVIRONMENT_LENGTH_MAX) {
    return `an environment's name has at most ${ENVIRONMENT_LENGTH_MAX} characters`;
  }
  if (CONTROL.test(environment) || !environment.isWellFormed()) {
    return "an environment's name holds no control characters and is valid Unicode";
  }
  return undefined;
}

/**
 * The environment as it is shown; absent and `''` are `default`.
 * Errors: INVALID_NAME with metadata.field `environment`.
 */
export function parseEnvironment(environment: string | undefined): string {
  if (environment === undefined || environment === '') return DEFAULT_ENVIRONMENT;
  const problem = environmentProblem(environment);
  if (problem !== undefined) throw new AppError('INVALID_NAME', problem, { field: 'environment' });
  return isDefaultEnvironment(environment) ? DEFAULT_ENVIRONMENT : environment;
}

/** What two spellings of one environment share: GitHub does not say `Production` from `production`. */
export function environmentKey(environment: string): string {
  return environment === '' ? DEFAULT_ENVIRONMENT : environment.toLowerCase();
}

export function isDefaultEnvironment(environment: string): boolean {
  return environmentKey(environment) === DEFAULT_ENVIRONMENT;
}

/** Why a text cannot be a value; undefined when it can. `emptyAllowed` for variables. */
export function valueProblem(value: string, isEmptyAllowed: boolean): string | undefined {
  if (value === '' && !isEmptyAllowed) return 'a secret is not empty';
  if (Buffer.byteLength(value) > VALUE_BYTES_MAX) {
    return `a value has at most ${VALUE_BYTES_MAX} bytes`;
  }
  if (value.includes('\0')) return 'a value holds no NUL: no process could be given it';
  if (!value.isWellFormed()) return 'a value is valid Unicode';
  return undefined;
}

/** Errors: INVALID_VALUE with metadata.field `value`; the text never holds the value. */
export function checkValue(value: string, isEmptyAllowed: boolean): void {
  const problem = valueProblem(value, isEmptyAllowed);
  if (problem !== undefined) throw new AppError('INVALID_VALUE', problem, { field: 'value' });
}
