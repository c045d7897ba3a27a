/**
 * Upper bounds of the buckets of reads per evaluation: 1, 2, 4 … 2^20. The default budget of 10,000 is in the middle
 * of the upper half; one more bucket, without bound, follows the last.
 */
export const READ_BOUNDS: readonly number[] = Array.from({ length: 21 }, (_, power) => 2 ** power);

/** The buckets and the sum of a histogram, as a worker reports them. */
export type ReadFigures = { readonly counts: readonly number[]; readonly sum: number };

const BUCKETS = READ_BOUNDS.length + 1;

/** Reads of evaluations between two reports. */
export class ReadCounts {
  /** The buckets, then the sum: a field of its own would be allocated anew with each addition. */
  readonly #figures = new Float64Array(BUCKETS + 1);

  /** Counts one evaluation of `reads` (an integer ≥ 0). Hot: no loop, no allocation. */
  add(reads: number): void {
    const figures = this.#figures;
    const bucket = reads <= 1 ? 0 : Math.min(32 - Math.clz32(reads - 1), BUCKETS - 1);
    figures[bucket] = (figures[bucket] as number) + 1;
    figures[BUCKETS] = (figures[BUCKETS] as number) + reads;
  }

  /** Everything counted since the last call. */
  drain(): ReadFigures {
    const figures = this.#figures;
    const drained = { counts: [...figures.subarray(0, BUCKETS)], sum: figures[BUCKETS] as number };
    figures.fill(0);
    return drained;
  }
}
