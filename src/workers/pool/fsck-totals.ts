import type { FsckStats } from '../../protocol/messages.ts';

/** Counts of comparisons of indexes; see FsckStats. */
export type FsckTotals = Omit<FsckStats, 'ageMs'>;

/** Sums up what the workers count as they compare their indexes with what is stored. */
export class FsckCounter {
  #totals: FsckTotals = { shards: 0, rows: 0, differences: 0, unfinished: 0 };

  add(stats: FsckTotals): void {
    this.#totals = sumOf(this.#totals, stats, 1);
  }

  /** Counts from now until `work` has ended. */
  async during(work: () => Promise<unknown>): Promise<FsckTotals> {
    const before = this.#totals;
    await work();
    return sumOf(this.#totals, before, -1);
  }
}

/** Adds one to the other, or subtracts it. */
function sumOf(one: FsckTotals, other: FsckTotals, sign: 1 | -1): FsckTotals {
  return {
    shards: one.shards + sign * other.shards,
    rows: one.rows + sign * other.rows,
    differences: one.differences + sign * other.differences,
    unfinished: one.unfinished + sign * other.unfinished,
  };
}
