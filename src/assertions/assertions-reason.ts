/** Why files of assertions are not run. */
export type AssertionsReason =
  | 'ASSERTIONS_INVALID' // metadata: field, line, column
  | 'QUEUE_FULL'
  | 'DEADLINE_EXCEEDED'
  | 'CANCELLED';
