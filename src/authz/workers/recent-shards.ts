import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import type { RecentShard } from '../../protocol/messages.ts';
import { type LoopReport, reportedRun } from '../../shared/loop-report.ts';
import { writeRecentShards } from '../../store/sql/reads/recent-shards.ts';

/** Shards of one instance at most; a row of them is about 50 kB. */
const SHARDS_MAX = 1_000;
const WRITE_MS = 15_000;
/** Delay of the write after a shard that takes long to load was first reported. */
const SOON_MS = 500;
/** Size of an index, in bytes: some 20,000 tuples. Smaller ones load before a caller notices. */
const LARGE_BYTES = 1024 * 1024;

/**
 * Records the shards last requested from this instance for the warm-up of the next start (warm-up.ts): every 15 s, at
 * the end, and soon after a large shard was loaded. It counts nothing: workers know the order in which they would evict
 * their indexes.
 */
export class RecentShards {
  readonly #instanceId = randomUUID();
  readonly #bySlot = new Map<number, readonly RecentShard[]>();
  #writing:
    | { readonly pool: Pool; readonly report: LoopReport; readonly timer: NodeJS.Timeout }
    | undefined;
  #written = '';
  #writtenLarge: ReadonlySet<string> = new Set();
  #soon: NodeJS.Timeout | undefined;

  /** Takes the shards that a worker reports, the latest first. */
  report(slot: number, shards: readonly RecentShard[]): void {
    this.#bySlot.set(slot, shards);
    const isNew = (shard: RecentShard): boolean =>
      shard.indexBytes >= LARGE_BYTES && !this.#writtenLarge.has(keyOf(shard));
    if (this.#writing === undefined || !shards.some(isNew)) return;
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      void this.#write();
    }, SOON_MS).unref();
  }

  /** From now on they are written. */
  start(pool: Pool, report: LoopReport): void {
    const timer = setInterval(() => void this.#write(), WRITE_MS).unref();
    this.#writing = { pool, report, timer };
  }

  /** Writes for the last time. Idempotent; never rejects. */
  async stop(): Promise<void> {
    clearTimeout(this.#soon);
    await this.#write();
    clearInterval(this.#writing?.timer);
    this.#writing = undefined;
  }

  /** The first of every worker, then the second, and so on. */
  latest(): readonly RecentShard[] {
    return interleaved([...this.#bySlot.values()]).slice(0, SHARDS_MAX);
  }

  async #write(): Promise<void> {
    const latest = this.latest();
    const text = JSON.stringify(latest);
    // An instance that nobody asks anything must not push out what others wrote.
    if (this.#writing === undefined || latest.length === 0 || text === this.#written) return;
    const { pool, report } = this.#writing;
    await reportedRun(report, async () => {
      await writeRecentShards(pool, this.#instanceId, latest);
      this.#written = text;
      const large = latest.filter(({ indexBytes }) => indexBytes >= LARGE_BYTES);
      this.#writtenLarge = new Set(large.map(keyOf));
    });
  }
}

/** The first of each list, then the second of each, and so on; each shard once. O(all). */
export function interleaved<T extends { readonly projectId: string; readonly tenantId: string }>(
  lists: readonly (readonly T[])[],
): readonly T[] {
  const length = lists.reduce((longest, list) => Math.max(longest, list.length), 0);
  const found = new Map<string, T>();
  for (let rank = 0; rank < length; rank++) {
    for (const list of lists) {
      const shard = list[rank];
      if (shard === undefined) continue;
      const key = keyOf(shard);
      if (!found.has(key)) found.set(key, shard);
    }
  }
  return [...found.values()];
}

function keyOf(shard: { readonly projectId: string; readonly tenantId: string }): string {
  return `${shard.projectId}\0${shard.tenantId}`;
}
