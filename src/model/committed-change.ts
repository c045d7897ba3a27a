import type { ShardKey } from './relation-tuple.ts';

/** Committed changes of one revision, as packed in `tuple_change.changes` (packed-changes.ts). */
export type CommittedChange = ShardKey & {
  readonly epoch: number;
  readonly revision: number;
  /** Decimal text of the 64-bit fork id. */
  readonly forkId: string;
  /** Of the project's settings, as read under the shard's lock. */
  readonly settingsVersion: number;
  readonly changes: string;
};
