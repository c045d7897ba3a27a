import { AppError } from '../../shared/app-error.ts';

/** A positive result: allowed, written, no finding. */
export const EXIT_OK = 0;
/** A negative result, which is no error: a deny, a failed assertion, a difference. */
export const EXIT_NO = 1;
/** The command is wrong, or a file, field or right that it names. Another attempt cannot help. */
export const EXIT_USAGE = 2;
/** A deny that might have been an allow if all inputs had been present. */
export const EXIT_UNDECIDED = 3;
/** No answer: the service cannot be reached, or could not answer. Another attempt may help. */
export const EXIT_UNAVAILABLE = 4;

/** Notes for the help of commands that call a service. */
export const EXIT_NOTES = `exit codes: 0 done; 2 the command is wrong, or what it names; 4 no answer: it may help to ask again`;

/**
 * Reasons of the command itself.
 *
 * INVALID_REQUEST: a wrong command line. FILE_INVALID: a file with wrong content, or one that
 * cannot be read or written. REFUSED: a refusal of a service. UNAVAILABLE: no answer from a
 * service.
 */
export type CliReason = 'INVALID_REQUEST' | 'FILE_INVALID' | 'REFUSED' | 'UNAVAILABLE';

/** The exit code for a thrown error; never 0. */
export function exitCodeOf(error: unknown): number {
  if (!(error instanceof AppError)) return EXIT_UNAVAILABLE;
  return error.reason === 'UNAVAILABLE' ? EXIT_UNAVAILABLE : EXIT_USAGE;
}

/** The parts of an answer that decide its word and its exit code. */
export type DecisionJson = { readonly allowed?: boolean; readonly undecided?: boolean };

/** `allow`, `deny` or `undecided`. */
export function decisionWord({ allowed, undecided }: DecisionJson): string {
  if (allowed === true) return 'allow';
  return undecided === true ? 'undecided' : 'deny';
}

/** 0, 1 or 3. An answer without a decision is a deny. */
export function decisionExit({ allowed, undecided }: DecisionJson): number {
  if (allowed === true) return EXIT_OK;
  return undecided === true ? EXIT_UNDECIDED : EXIT_NO;
}
