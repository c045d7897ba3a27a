import { EXIT_NO, EXIT_OK, EXIT_UNDECIDED } from '../core/exit-codes.ts';

/** What an answer says of a question, as far as its word and its exit code go. */
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
