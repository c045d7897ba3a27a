import { setFlagsFromString } from 'node:v8';

/** At most so much, and this share, is left to the process around the indexes. */
const AROUND_BYTES_MAX = 32 * 1024 * 1024;
const AROUND_SHARE = 1 / 2;

/**
 * Bytes that indexes may take of GATEWAY_INDEX_BYTES, all workers together. The rest is for what grows with their use and is no
 * index: young generations of the heaps, garbage until it is collected, head revisions of tenants that have gone (load/scenarios/many-tenants.ts).
 */
export function indexShare(indexBytes: number): number {
  return indexBytes - Math.min(AROUND_BYTES_MAX, Math.floor(indexBytes * AROUND_SHARE));
}

/**
 * Bytes of that memory that stay with the workers in any case. Second indexes on the gateway's thread take
 * at most THREAD_SHARE of the rest.
 */
const WORKERS_BYTES_MIN = 16 * 1024 * 1024;
const THREAD_SHARE = 1 / 8;

/** Bytes that indexes on the gateway's thread may take of `indexShare`: the rest is the workers'. */
export function threadIndexShare({
  indexBytes,
  threadIndexBytes,
}: {
  readonly indexBytes: number;
  readonly threadIndexBytes: number;
}): number {
  const spareBytes = Math.max(0, indexShare(indexBytes) - WORKERS_BYTES_MIN);
  return Math.min(threadIndexBytes, Math.floor(spareBytes * THREAD_SHARE));
}

/**
 * An instance with more for its indexes has memory for the garbage that V8 leaves uncollected by
 * itself.
 */
const SMALL_INDEX_BYTES = 512 * 1024 * 1024;
const GROWING_PERCENT = 25;

/**
 * Keeps the heaps of this process, workers included, near what lives in them if its indexes have little memory: each grows by a quarter
 * beyond what was left by its last full collection, where V8 would let it grow to a multiple. Costs nothing of Checks, and some
 * 5 % of the CPU of loads. V8 reads the flag at each full collection, so it counts from the next one on.
 */
export function boundHeapGrowth(indexBytes: number): void {
  if (indexBytes > SMALL_INDEX_BYTES) return;
  setFlagsFromString(`--heap-growing-percent=${GROWING_PERCENT}`);
}
