import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { EventLog } from '../../observability/logger.ts';
import { readRecentShards } from '../../store/sql/reads/recent-shards.ts';
import type { WorkerPool } from '../../workers/pool/worker-pool.ts';
import { interleaved } from './recent-shards.ts';

export type WarmUpOptions = {
  readonly pool: Pool;
  readonly workers: Pick<WorkerPool, 'warm'>;
  /** Shards that are loaded at once. */
  readonly concurrency: number;
  readonly timeMaxMs: number;
  readonly bytesMax: number;
  readonly log: EventLog;
  /** Ends it at once: the instance is to stop before it was ever ready. */
  readonly signal: AbortSignal;
};

export type WarmUpResult = { readonly shards: number; readonly seconds: number };

/**
 * Loads the shards that were last requested from instances, the latest first, until the time or the bytes
 * are used up, or `signal` is aborted. Never rejects: a cold instance is slow at first, but not wrong.
 */
export async function warmUp(options: WarmUpOptions): Promise<WarmUpResult> {
  const { pool, workers, concurrency, timeMaxMs, bytesMax, log, signal } = options;
  const startMs = performance.now();
  let shards = 0;
  const result = (): WarmUpResult => ({ shards, seconds: (performance.now() - startMs) / 1_000 });
  if (timeMaxMs === 0 || signal.aborted) return result();
  const isDone = new AbortController();
  const over = AbortSignal.any([signal, isDone.signal]);
  const late = delay(timeMaxMs, undefined, { signal: over }).catch(() => undefined);
  const isOver = (): boolean => signal.aborted || performance.now() - startMs >= timeMaxMs;
  const load = async (): Promise<void> => {
    const wanted = within(interleaved(await readRecentShards(pool)), bytesMax)[Symbol.iterator]();
    const one = async (): Promise<void> => {
      for (const shard of wanted) {
        if (isOver()) return;
        await workers.warm(shard);
        shards += 1;
      }
    };
    await Promise.all(Array.from({ length: concurrency }, one));
  };
  const loaded = load().catch((error: unknown) => {
    // After its time nobody asks any more.
    if (!isOver()) log('warn', 'warm_up_failed', { error: String(error) });
  });
  await Promise.race([late, loaded]);
  isDone.abort();
  const { seconds } = result();
  if (shards > 0) log('info', 'warmed_up', { shards, seconds });
  return result();
}

/** The first of them whose indexes took `bytesMax` together; one that is larger than what is left is left out. */
function within<T extends { readonly indexBytes: number }>(
  shards: readonly T[],
  bytesMax: number,
): readonly T[] {
  let leftBytes = bytesMax;
  return shards.filter(({ indexBytes }) => {
    if (indexBytes > leftBytes) return false;
    leftBytes -= indexBytes;
    return true;
  });
}
