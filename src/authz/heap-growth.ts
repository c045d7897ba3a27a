import { setFlagsFromString } from 'node:v8';

/** An instance with more for its indexes has room for what V8 leaves uncollected by itself. */
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
