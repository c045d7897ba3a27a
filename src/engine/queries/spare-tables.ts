import { PairTable } from '../bound/pair-table.ts';

/** Tables kept for the next who needs one; a thread explains a few queries at once. */
const SPARE_MAX = 4;
/** A table that grew beyond this many pairs is not kept: 40 KiB. */
const SPARE_CAPACITY_MAX = 2048;
const CAPACITY = 64;
const spares: PairTable[] = [];

/**
 * Lends an empty table, until `release`. Most searches are so small that making one, growing it and collecting
 * it would cost as much as they do. Who never gives it back costs the next one a new table.
 */
export function borrowTable(): PairTable {
  return spares.pop() ?? new PairTable(CAPACITY);
}

/** Takes a table back, which nobody uses any more. O(its room), bounded. */
export function releaseTable(table: PairTable): void {
  if (spares.length >= SPARE_MAX || table.capacity > SPARE_CAPACITY_MAX) return;
  table.clear();
  spares.push(table);
}
