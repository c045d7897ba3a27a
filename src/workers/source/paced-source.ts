import type { Pool } from 'pg';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { readHeadRevisions } from '../../store/feed/change-feed.ts';
import { readChanges } from '../../store/feed/changes.ts';
import type { ChangePage, StoredHeadRevision, ShardPosition } from '../../store/feed/changes.ts';
import { readSnapshotPage, type SnapshotPage } from '../../store/feed/snapshot-page.ts';
import { loadSnapshot, type SnapshotSink } from '../../store/feed/snapshot.ts';
import type { ShardSource } from '../shard/ports.ts';

/** Changes of one page, and the bytes after which it ends: what is applied in one turn of the loop. */
const PAGE_REVISIONS_MAX = 64;
const PAGE_BYTES_MAX = 16 * 1024;

/**
 * Shards as Postgres holds them, for a thread that has more to do than to hold them: one load at a time, over connections that it
 * shares, and small pages of changes.
 */
export class PacedShardSource implements ShardSource {
  readonly loadSlots = 1;
  readonly #pool: Promise<Pool>;

  constructor(pool: Promise<Pool>) {
    this.#pool = pool;
    // Whoever opens it hears of its failure.
    pool.catch(() => undefined);
  }

  async loadSnapshot(
    shard: ShardKey,
    sink: SnapshotSink,
    signal: AbortSignal,
  ): Promise<StoredHeadRevision> {
    return loadSnapshot(await this.#pool, shard, sink, signal);
  }

  async readChanges(shard: ShardKey, afterRevision: number): Promise<ChangePage> {
    return readChanges(await this.#pool, shard, afterRevision, PAGE_REVISIONS_MAX, PAGE_BYTES_MAX);
  }

  async readPage(
    shard: ShardKey,
    after: readonly string[] | null,
    limit: number,
    signal: AbortSignal,
  ): Promise<SnapshotPage> {
    return readSnapshotPage(await this.#pool, shard, after, limit, signal);
  }

  async readHeadRevisions(
    shards: readonly ShardKey[],
  ): Promise<readonly (ShardKey & ShardPosition)[]> {
    return shards.length === 0 ? [] : readHeadRevisions(await this.#pool, shards);
  }
}
