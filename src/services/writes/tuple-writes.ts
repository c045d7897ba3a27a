import type { ShardKey, TupleChange } from '../../model/relation-tuple.ts';
import type { WriteMeta } from '../ports.ts';
import type { WriteOptions } from '../write-groups/update-modes.ts';
import type { WriteResult } from '../write-groups/write-group.ts';
import type { Preparation } from './exclusive-writer.ts';
import type { WriteTransaction } from './write-transaction.ts';

/** How use cases write tuples; TupleWriter is what does it. */
export interface TupleWrites {
  /**
   * Applies `updates` (validated; an identity at most once) to a shard, all or nothing, and resolves
   * after the commit. Modes ask something of what is stored: see UpdateMode. Errors:
   * TUPLE_EXISTS, TUPLE_DIFFERS, TUPLE_MISSING (by its modes: nothing was written); QUEUE_FULL, SHUTTING_DOWN, DEADLINE_EXCEEDED, STORE_UNAVAILABLE,
   * WRITE_OUTCOME_UNKNOWN.
   */
  write(
    shard: ShardKey,
    updates: readonly TupleChange[],
    meta: WriteMeta,
    options?: WriteOptions,
  ): Promise<WriteResult>;
  /**
   * Runs `work` in one transaction that holds the given shards (locked in sorted order before it
   * starts), after everything that waits for them. What it writes through its argument is published
   * after the commit, before this resolves. `work` must not call `write` or `exclusive` and must not
   * have effects outside of the transaction. Errors: those of `work`; DEADLINE_EXCEEDED before it
   * began; STORE_UNAVAILABLE, WRITE_OUTCOME_UNKNOWN; SHUTTING_DOWN.
   */
  exclusive<T>(
    shards: readonly ShardKey[],
    meta: WriteMeta,
    work: (transaction: WriteTransaction) => Promise<T>,
  ): Promise<T>;
  /**
   * Runs like `exclusive` on one shard, with work before the shard is held and in the same
   * transaction: other writes continue meanwhile. `isOverdue` is called while the shard is waited for.
   * Errors: as `exclusive`, and those of `prepare` and `checkQuiet`.
   */
  prepared<T>(
    shard: ShardKey,
    meta: WriteMeta,
    preparation: Pick<Preparation, 'prepare' | 'checkQuiet'>,
    work: (transaction: WriteTransaction) => Promise<T>,
  ): Promise<T>;
}
