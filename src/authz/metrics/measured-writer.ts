import type { ShardKey, TupleChange } from '../../model/relation-tuple.ts';
import type { WriteMeta } from '../../services/ports.ts';
import type { WriteOptions } from '../../services/write-groups/update-modes.ts';
import type { WriteResult } from '../../services/write-groups/write-group.ts';
import type { Preparation } from '../../services/writes/exclusive-writer.ts';
import type { TupleWrites } from '../../services/writes/tuple-writes.ts';
import type { WriteTransaction } from '../../services/writes/write-transaction.ts';
import type { Metrics } from './metrics.ts';

/** Counts how long each write of another one took, from its arrival until it was answered. */
export class MeasuredWriter implements TupleWrites {
  readonly #writer: TupleWrites;
  readonly #durations: Metrics['writeDuration'];

  constructor(writer: TupleWrites, durations: Metrics['writeDuration']) {
    this.#writer = writer;
    this.#durations = durations;
  }

  write(
    shard: ShardKey,
    updates: readonly TupleChange[],
    meta: WriteMeta,
    options?: WriteOptions,
  ): Promise<WriteResult> {
    return this.#measured(this.#writer.write(shard, updates, meta, options));
  }

  exclusive<T>(
    shards: readonly ShardKey[],
    meta: WriteMeta,
    work: (transaction: WriteTransaction) => Promise<T>,
  ): Promise<T> {
    return this.#measured(this.#writer.exclusive(shards, meta, work));
  }

  prepared<T>(
    shard: ShardKey,
    meta: WriteMeta,
    preparation: Pick<Preparation, 'prepare' | 'checkQuiet'>,
    work: (transaction: WriteTransaction) => Promise<T>,
  ): Promise<T> {
    return this.#measured(this.#writer.prepared(shard, meta, preparation, work));
  }

  async #measured<T>(write: Promise<T>): Promise<T> {
    const startedMs = performance.now();
    let outcome: keyof Metrics['writeDuration'] = 'refused';
    try {
      const result = await write;
      outcome = 'committed';
      return result;
    } finally {
      this.#durations[outcome].observe((performance.now() - startedMs) / 1000);
    }
  }
}
