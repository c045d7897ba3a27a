import type { ShardKey } from './relation-tuple.ts';

/** Committed changes of one seq, as packed in `tuple_change.changes` (packed-changes.ts). */
export type CommittedChange = ShardKey & {
  readonly epoch: number;
  readonly seq: number;
  /** Decimal text of the 64-bit stamp. */
  readonly stamp: string;
  /** Of the project's settings, as read under the shard's lock. */
  readonly settingsVersion: number;
  readonly changes: string;
};
