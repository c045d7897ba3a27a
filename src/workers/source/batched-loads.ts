import type { ShardKey } from '../../model/relation-tuple.ts';
import type { StoredHeadRevision } from '../../store/feed/changes.ts';
import type { SnapshotSink } from '../../store/feed/snapshot.ts';
import { SNAPSHOTS_MAX, type SmallSnapshotSink } from '../../store/feed/snapshots-of-many.ts';
import { withTimeout } from '../shard/shard-load.ts';

/** At most `slots` loads at once; the others wait in order. */
export class LoadSlots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(slots: number) {
    this.#free = slots;
  }

  /** Runs `load` when a slot is free. Errors: whatever it throws. */
  async run<T>(load: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await load();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}

/** Queries for many shards at a time; further loads gather while they run. */
const QUERIES_MAX = 2;

/** Loads snapshots: of one shard of any size, of many with few tuples each. */
export type SnapshotsReader = {
  readonly one: (
    shard: ShardKey,
    sink: SnapshotSink,
    signal: AbortSignal,
  ) => Promise<StoredHeadRevision>;
  readonly many: (
    shards: readonly ShardKey[],
    sinks: readonly SmallSnapshotSink[],
    signal: AbortSignal,
  ) => Promise<readonly (StoredHeadRevision | undefined)[]>;
};

export type BatchedLoadsOptions = {
  /** Shards that are loaded alone at once. */
  readonly aloneMax: number;
  /** Timeout of a query of many. */
  readonly timeoutMs: number;
};

type WaitingLoad = PromiseWithResolvers<StoredHeadRevision> & {
  readonly shard: ShardKey;
  readonly sink: SnapshotSink;
  readonly signal: AbortSignal;
};

/**
 * Batches the first loads of shards: most of a small load is the round trip, the transaction and the plan. A shard that
 * turns out to be large is loaded alone, from the start. A single load starts at once; loads that come while queries run
 * gather. Bounded by the shards of the worker, each of which loads once at a time.
 */
export class BatchedLoads {
  readonly #reader: SnapshotsReader;
  readonly #options: BatchedLoadsOptions;
  readonly #alone: LoadSlots;
  #waiting: WaitingLoad[] = [];
  #running = 0;
  #isScheduled = false;

  constructor(reader: SnapshotsReader, options: BatchedLoadsOptions) {
    this.#reader = reader;
    this.#options = options;
    this.#alone = new LoadSlots(options.aloneMax);
  }

  /** Loads like `loadSnapshot`; rows that came before `sink.begin` are void. */
  load(shard: ShardKey, sink: SnapshotSink, signal: AbortSignal): Promise<StoredHeadRevision> {
    const waiting = { shard, sink, signal, ...Promise.withResolvers<StoredHeadRevision>() };
    this.#waiting.push(waiting);
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      // Loads that one message starts share a query.
      queueMicrotask(() => {
        this.#isScheduled = false;
        this.#start();
      });
    }
    return waiting.promise;
  }

  #start(): void {
    while (this.#running < QUERIES_MAX && this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, SNAPSHOTS_MAX);
      this.#running += 1;
      void this.#query(batch).then(() => {
        this.#running -= 1;
        this.#start();
      });
    }
  }

  /** Never rejects. */
  async #query(batch: readonly WaitingLoad[]): Promise<void> {
    try {
      const shards = batch.map(({ shard }) => shard);
      const headRevisions = await withTimeout(this.#options.timeoutMs, (signal) =>
        this.#reader.many(
          shards,
          batch.map(({ sink }) => sink),
          signal,
        ),
      );
      batch.forEach((waiting, index) => {
        const headRevision = headRevisions[index];
        if (headRevision === undefined) this.#loadAlone(waiting);
        else waiting.resolve(headRevision);
      });
    } catch (error) {
      for (const waiting of batch) waiting.reject(error);
    }
  }

  #loadAlone({ shard, sink, signal, resolve, reject }: WaitingLoad): void {
    this.#alone.run(() => this.#reader.one(shard, sink, signal)).then(resolve, reject);
  }
}
