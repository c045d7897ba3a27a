import type { ShardKey } from './relation-tuple.ts';

/** Committed changes of one seq, as packed in `tuple_change.changes` (packed-changes.ts). */
export type CommittedChange = ShardKey & {
  readonly epoch: number;
  readonly seq: number;
  /** Decimal text of the 64-bit stamp. */
  readonly stamp: string;
  readonly changes: string;
};
