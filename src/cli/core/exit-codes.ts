import { AppError } from '../../shared/app-error.ts';

/** Success: allowed, written, or without a finding. */
export const EXIT_OK = 0;
/** A deny, a failed assertion or a difference: an answer, not an error. */
export const EXIT_NO = 1;
/** A wrong command, or a wrong file, field or right that it names. A retry cannot help. */
export const EXIT_USAGE = 2;
/** A deny that might be an allow if all inputs were given. */
export const EXIT_UNDECIDED = 3;
/** No answer: the service cannot be reached, or could not answer. A retry may help. */
export const EXIT_UNAVAILABLE = 4;

/** Notes for the help of commands that ask a service. */
export const EXIT_NOTES = `exit codes: 0 done; 2 the command is wrong, or what it names; 4 no answer: it may help to ask again`;

/**
 * Reasons of the command itself. INVALID_REQUEST: a wrong command line; FILE_INVALID: a file that is not what it should be, or
 * cannot be read or written; REFUSED: what a service refuses; UNAVAILABLE: no answer from it.
 */
export type CliReason = 'INVALID_REQUEST' | 'FILE_INVALID' | 'REFUSED' | 'UNAVAILABLE';

/** The exit code of what a command threw; never 0. */
export function exitCodeOf(error: unknown): number {
  if (!(error instanceof AppError)) return EXIT_UNAVAILABLE;
  return error.reason === 'UNAVAILABLE' ? EXIT_UNAVAILABLE : EXIT_USAGE;
}

/** The members of a decision that its word and its exit code depend on. */
export type DecisionJson = { readonly allowed?: boolean; readonly undecided?: boolean };

/** `allow`, `deny` or `undecided`. */
export function decisionWord({ allowed, undecided }: DecisionJson): string {
  if (allowed === true) return 'allow';
  return undecided === true ? 'undecided' : 'deny';
}

/** 0, 1 or 3. What is missing in an answer is a deny. */
export function decisionExit({ allowed, undecided }: DecisionJson): number {
  if (allowed === true) return EXIT_OK;
  return undecided === true ? EXIT_UNDECIDED : EXIT_NO;
}
