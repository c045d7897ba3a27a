import type { FsckStats } from '../../protocol/messages.ts';

/** What comparisons of indexes have counted; see FsckStats. */
export type FsckTotals = Omit<FsckStats, 'ageMs'>;

/** Adds one to the other, or takes it away. */
export function sumOf(one: FsckTotals, other: FsckTotals, sign: 1 | -1): FsckTotals {
  return {
    shards: one.shards + sign * other.shards,
    rows: one.rows + sign * other.rows,
    differences: one.differences + sign * other.differences,
    unfinished: one.unfinished + sign * other.unfinished,
  };
}
