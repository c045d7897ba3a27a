import type { Pool } from 'pg';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { readHeadRevisions } from '../../store/feed/change-feed.ts';
import { readChangesOfMany } from '../../store/feed/changes-of-many.ts';
import { readChanges } from '../../store/feed/changes.ts';
import type { ChangePage, StoredHeadRevision, ShardPosition } from '../../store/feed/changes.ts';
import { type SnapshotPage, readSnapshotPage } from '../../store/feed/snapshot-page.ts';
import { estimateTuples, loadSnapshot, type SnapshotSink } from '../../store/feed/snapshot.ts';
import { loadSnapshotsOfMany } from '../../store/feed/snapshots-of-many.ts';
import type { ShardSource } from '../shard/ports.ts';
import { BatchedChanges } from './batched-changes.ts';
import { BatchedLoads } from './batched-loads.ts';

/** Loads that may wait for a query to share. */
const LOADS_MAX = 4_096;

/** Shards as Postgres holds them, over the worker's own pool. */
export class PostgresShardSource implements ShardSource {
  readonly #pool: Pool;
  readonly loadSlots = LOADS_MAX;
  readonly #changes: BatchedChanges;
  readonly #loads: BatchedLoads;

  /** `loadTimeoutMs`: of a query that loads many shards. */
  constructor(pool: Pool, loadTimeoutMs: number) {
    this.#pool = pool;
    this.#loads = new BatchedLoads(
      {
        one: (shard, sink, signal) => loadSnapshot(pool, shard, sink, signal),
        many: (shards, sinks, signal) => loadSnapshotsOfMany(pool, shards, sinks, signal),
      },
      // Queries of many are short: a catch-up waits for the end of one at most.
      { aloneMax: Math.max(1, pool.options.max - 2), timeoutMs: loadTimeoutMs },
    );
    this.#changes = new BatchedChanges({
      one: (shard, afterRevision) => readChanges(pool, shard, afterRevision),
      many: (asks) => readChangesOfMany(pool, asks),
    });
  }

  loadSnapshot(
    shard: ShardKey,
    sink: SnapshotSink,
    signal: AbortSignal,
  ): Promise<StoredHeadRevision> {
    return this.#loads.load(shard, sink, signal);
  }

  estimateRows(shard: ShardKey): Promise<number> {
    return estimateTuples(this.#pool, shard);
  }

  readChanges(shard: ShardKey, afterRevision: number): Promise<ChangePage> {
    return this.#changes.read(shard, afterRevision);
  }

  readPage(
    shard: ShardKey,
    after: readonly string[] | null,
    limit: number,
    signal: AbortSignal,
  ): Promise<SnapshotPage> {
    return readSnapshotPage(this.#pool, shard, after, limit, signal);
  }

  readHeadRevisions(shards: readonly ShardKey[]): Promise<readonly (ShardKey & ShardPosition)[]> {
    return readHeadRevisions(this.#pool, shards);
  }
}
