import type { ShardKey } from '../../model/relation-tuple.ts';
import { CHANGES_SHARDS_MAX, type ChangesAsk } from '../../store/feed/changes-of-many.ts';
import type { ChangePage } from '../../store/feed/changes.ts';

/** Queries at a time; further requests gather while they run. */
const QUERIES_MAX = 2;

/** Reads changes: of one shard as far as a page goes, of many a little each. */
export type ChangesReader = {
  readonly one: (shard: ShardKey, afterRevision: number) => Promise<ChangePage>;
  readonly many: (asks: readonly ChangesAsk[]) => Promise<readonly (ChangePage | undefined)[]>;
};

type WaitingRead = ChangesAsk & PromiseWithResolvers<ChangePage>;

/**
 * Batches the catch-ups of many shards. While another instance writes to a thousand shards that are held
 * here too, all of them are behind all the time. With a query for each, they took all connections of the
 * worker, and a read that had to catch up waited behind them. Now it waits for one query, and shares the
 * next. Bounded by the shards of the worker, each of which catches up once at a time.
 */
export class BatchedChanges {
  readonly #reader: ChangesReader;
  #waiting: WaitingRead[] = [];
  #running = 0;
  #isScheduled = false;

  constructor(reader: ChangesReader) {
    this.#reader = reader;
  }

  /** Reads like `readChanges`. */
  read(shard: ShardKey, afterRevision: number): Promise<ChangePage> {
    const waiting = { shard, afterRevision, ...Promise.withResolvers<ChangePage>() };
    this.#waiting.push(waiting);
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      // Reads that one message of hints starts share a query.
      queueMicrotask(() => {
        this.#isScheduled = false;
        this.#start();
      });
    }
    return waiting.promise;
  }

  #start(): void {
    while (this.#running < QUERIES_MAX && this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, CHANGES_SHARDS_MAX);
      this.#running += 1;
      void this.#query(batch).then(() => {
        this.#running -= 1;
        this.#start();
      });
    }
  }

  /** Never rejects. */
  async #query(batch: readonly WaitingRead[]): Promise<void> {
    if (batch.length === 1) {
      await this.#alone(batch[0] as WaitingRead);
      return;
    }
    try {
      const pages = await this.#reader.many(batch);
      const left: WaitingRead[] = [];
      batch.forEach((waiting, index) => {
        const page = pages[index];
        if (page === undefined) left.push(waiting);
        else waiting.resolve(page);
      });
      for (const waiting of left) await this.#alone(waiting);
    } catch (error) {
      for (const waiting of batch) waiting.reject(error);
    }
  }

  async #alone({ shard, afterRevision, resolve, reject }: WaitingRead): Promise<void> {
    await this.#reader.one(shard, afterRevision).then(resolve, reject);
  }
}
