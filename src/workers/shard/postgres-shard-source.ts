import type { Pool } from 'pg';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { readHeads } from '../../store/change-feed.ts';
import { readChangesOfMany } from '../../store/changes-of-many.ts';
import { readChanges } from '../../store/changes.ts';
import type { ChangePage, ShardHead, ShardPosition } from '../../store/changes.ts';
import { type SnapshotPage, readSnapshotPage } from '../../store/snapshot-page.ts';
import { loadSnapshot } from '../../store/snapshot.ts';
import type { SnapshotSink } from '../../store/snapshot.ts';
import { BatchedChanges } from './batched-changes.ts';
import type { ShardSource } from './ports.ts';

/** Shards as Postgres holds them, over the worker's own pool. */
export class PostgresShardSource implements ShardSource {
  readonly #pool: Pool;
  readonly #changes: BatchedChanges;

  constructor(pool: Pool) {
    this.#pool = pool;
    this.#changes = new BatchedChanges({
      one: (shard, afterSeq) => readChanges(pool, shard, afterSeq),
      many: (asks) => readChangesOfMany(pool, asks),
    });
  }

  loadSnapshot(shard: ShardKey, sink: SnapshotSink, signal: AbortSignal): Promise<ShardHead> {
    return loadSnapshot(this.#pool, shard, sink, signal);
  }

  readChanges(shard: ShardKey, afterSeq: number): Promise<ChangePage> {
    return this.#changes.read(shard, afterSeq);
  }

  readPage(
    shard: ShardKey,
    after: readonly string[] | null,
    limit: number,
    signal: AbortSignal,
  ): Promise<SnapshotPage> {
    return readSnapshotPage(this.#pool, shard, after, limit, signal);
  }

  readHeads(shards: readonly ShardKey[]): Promise<readonly (ShardKey & ShardPosition)[]> {
    return readHeads(this.#pool, shards);
  }
}
