import type { ShardKey, TupleChange } from '../model/relation-tuple.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { WriteTransaction } from '../services/exclusive-writer.ts';
import type { WriteMeta } from '../services/ports.ts';
import { TupleWriter, type TupleWriterOptions } from '../services/tuple-writer.ts';
import type { WriteResult } from '../services/write-group.ts';

/** A TupleWriter that counts how long each write took, from its arrival until it was answered. */
export class MeasuredWriter extends TupleWriter {
  readonly #durations: Metrics['writeDuration'];

  constructor(options: TupleWriterOptions, durations: Metrics['writeDuration']) {
    super(options);
    this.#durations = durations;
  }

  override write(
    shard: ShardKey,
    updates: readonly TupleChange[],
    meta: WriteMeta,
  ): Promise<WriteResult> {
    return this.#measured(super.write(shard, updates, meta));
  }

  override exclusive<T>(
    shards: readonly ShardKey[],
    meta: WriteMeta,
    work: (transaction: WriteTransaction) => Promise<T>,
  ): Promise<T> {
    return this.#measured(super.exclusive(shards, meta, work));
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
