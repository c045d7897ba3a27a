import {
  SEGMENT_DEPTH,
  SEGMENT_ENTRIES,
  SEGMENT_HEADER,
  SEGMENT_SLOTS,
  type SegmentedHash,
  homeSlot,
} from '../../../src/cache/tables/segmented-hash.ts';
import { assert } from '../../../src/shared/assert.ts';

/** Hashes as unsigned numbers are below: segments stand for ranges of them. */
export const HASH_END = 2 ** 32;

/** Checks that a lookup of `hash` ends within its segment. Throws at a breach. O(1). */
export function checkSegmentOf(table: SegmentedHash, hash: number): void {
  checkHeader(table.segmentOf(hash));
}

function checkHeader(segment: Uint32Array): void {
  const slots = segment[SEGMENT_SLOTS] as number;
  const entries = segment[SEGMENT_ENTRIES] as number;
  const isSound = segment.length === SEGMENT_HEADER + slots * 2 && entries < slots;
  assert(isSound, 'a segment has the slots that it names, and a free one');
}

/**
 * Checks the segment that the hash `from` (unsigned) begins, and calls `visit` with each of its pairs. Returns where
 * the next one begins; HASH_END after the last. Throws at a breach. O(slots).
 */
export function checkSegmentAt(
  table: SegmentedHash,
  from: number,
  visit: (hash: number, value: number) => void,
): number {
  const segment = table.segmentOf(from | 0);
  checkHeader(segment);
  const depth = segment[SEGMENT_DEPTH] as number;
  const range = 2 ** (32 - depth);
  assert(depth <= table.depth && from % range === 0, 'a segment has its depth');
  const first = Math.floor(from / 2 ** (32 - table.depth));
  for (let i = 0; i < 2 ** (table.depth - depth); i++) {
    assert(table.directory[first + i] === segment, 'a segment has its range');
  }
  const slots = segment[SEGMENT_SLOTS] as number;
  // Used slots that end the segment lead on to those at its start.
  let run = 0;
  while (run < slots && segment[SEGMENT_HEADER + (slots - 1 - run) * 2 + 1] !== 0) run += 1;
  let used = 0;
  for (let slot = 0; slot < slots; slot++) {
    const value = segment[SEGMENT_HEADER + slot * 2 + 1] as number;
    if (value === 0) {
      run = 0;
      continue;
    }
    used += 1;
    run += 1;
    const hash = segment[SEGMENT_HEADER + slot * 2] as number;
    const isOfRange = hash >= from && hash < from + range;
    const distance = (slot - homeSlot(hash | 0, slots) + slots) % slots;
    assert(isOfRange && distance < run, 'an entry is found from its home slot');
    visit(hash | 0, value);
  }
  assert(used === segment[SEGMENT_ENTRIES], 'a segment counts its entries');
  return from + range;
}
