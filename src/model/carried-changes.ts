import type { ShardKey } from './relation-tuple.ts';

/** One revision among carried changes. */
export type CarriedChange = {
  readonly revision: number;
  /** Decimal text of the 64-bit fork id. */
  readonly forkId: string;
  /** Of the project's settings when it was committed. */
  readonly settingsVersion: number;
  /** As packed in `tuple_change.changes` (packed-changes.ts). */
  readonly changes: string;
};

/**
 * What a look at a shard's head found beside it: changes after a position that was known, as far as
 * there was room, or that the history that was known is not the stored one.
 */
export type CarriedChanges = ShardKey & {
  readonly epoch: number;
  /** The head: revision and fork id. */
  readonly revision: number;
  readonly forkId: string;
  /** What was known was lost: an index that stands anywhere but at the head is dropped. */
  readonly isLost: boolean;
  /** The changes follow this revision, without a gap. */
  readonly afterRevision: number;
  /** Fork id of `afterRevision`; '' is unknown. */
  readonly forkIdAtStart: string;
  readonly changes: readonly CarriedChange[];
};
