import { WORD_LIST } from '../model/tuple-reader.ts';
import type { IndexParts } from './edge-writer.ts';
import { ADJACENCY_MASK } from './tables/adjacency.ts';
import { RECORD_LINK, RECORD_PAGE_MASK, RECORD_PAGE_SHIFT } from './tables/dictionary.ts';
import { LIST_COUNT_MASK, LIST_PAGE_MASK, LIST_PAGE_SHIFT } from './tables/list-store.ts';
import {
  NODE_PAGE_MASK,
  NODE_PAGE_SHIFT,
  NODE_REVERSE,
  NODE_STRIDE,
  RECORD_MANY,
} from './tables/node-table.ts';
import { SEGMENT_HEADER, SEGMENT_SLOTS, homeSlot } from './tables/segmented-hash.ts';

/** Rows of one group: enough loads under way at once, and few enough for what they touch to stay in the first cache. */
export const GROUP_ROWS = 32;
/** Strings from which rows are read ahead: a smaller index is in the processor's caches anyway. */
const READ_AHEAD_FROM = 4_096;

const reverses = new Uint32Array(2 * GROUP_ROWS);
/** Sums of loads that no code reads, kept so that the loads are not optimized away. */
const sink = new Int32Array(1);

/**
 * Finds the record that has each hash, mostly that of the id itself, or 0, and reads what storing an edge of it will
 * touch: its record, its first node, the end of the list of who mentions it. One step for all ids after the other, so that
 * their waits for memory overlap (as `findEntities`). Nothing but `candidates` rests on what is read. Hot.
 */
export function readAhead(
  parts: IndexParts,
  hashes: Int32Array,
  candidates: Uint32Array,
  count: number,
): void {
  const { table } = parts.dictionary;
  const isLarge = parts.dictionary.count >= READ_AHEAD_FROM;
  if (isLarge) {
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const hash = hashes[i] as number;
      const segment = table.segmentOf(hash);
      const slot = homeSlot(hash, segment[SEGMENT_SLOTS] as number);
      sum += segment[SEGMENT_HEADER + slot * 2] as number;
    }
    sink[0] = sum;
  }
  for (let i = 0; i < count; i++) candidates[i] = table.first(hashes[i] as number);
  if (isLarge) sink[0] = touchNodes(parts, candidates, count) + touchLists(parts, count);
}

/** Reads the records, then the first node of each; leaves in `reverses` where its mentions are. */
function touchNodes(parts: IndexParts, candidates: Uint32Array, count: number): number {
  const { pages } = parts.dictionary.records;
  const nodePages = parts.nodes.pages;
  let sum = 0;
  for (let i = 0; i < count; i++) {
    const record = candidates[i] as number;
    sum += (pages[record >>> RECORD_PAGE_SHIFT] as Uint32Array)[
      record & RECORD_PAGE_MASK
    ] as number;
  }
  for (let i = 0; i < count; i++) {
    const record = candidates[i] as number;
    const page = pages[record >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const at = record & RECORD_PAGE_MASK;
    const isMany = ((page[at] as number) & RECORD_MANY) !== 0;
    const node = record === 0 || isMany ? 0 : (page[at + RECORD_LINK] as number);
    // A record of the same hash may be a name, whose link is no node.
    const nodes = nodePages[node >>> NODE_PAGE_SHIFT];
    const reverse = nodes?.[(node & NODE_PAGE_MASK) * NODE_STRIDE + NODE_REVERSE] ?? 0;
    reverses[i] = node === 0 ? 0 : reverse;
  }
  return sum;
}

/** Reads the head of each list, then its end, where the next entry goes. */
function touchLists(parts: IndexParts, count: number): number {
  const { pages } = parts.adjacency.lists;
  let sum = 0;
  for (let i = 0; i < count; i++) {
    const list = listOf(reverses[i] as number);
    sum += pages[list >>> LIST_PAGE_SHIFT]?.[list & LIST_PAGE_MASK] ?? 0;
  }
  for (let i = 0; i < count; i++) {
    const list = listOf(reverses[i] as number);
    const page = pages[list >>> LIST_PAGE_SHIFT];
    const head = page?.[list & LIST_PAGE_MASK] ?? 0;
    sum += page?.[(list & LIST_PAGE_MASK) + (head & LIST_COUNT_MASK)] ?? 0;
  }
  return sum;
}

/** The list of an adjacency word, 0 for any other word. */
function listOf(word: number): number {
  return (word & WORD_LIST) === 0 ? 0 : word & ADJACENCY_MASK;
}
