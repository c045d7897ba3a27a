import type { EntityLookups } from '../model/tuple-reader.ts';
import {
  type Dictionary,
  RECORD_HEADER,
  RECORD_LENGTH_MASK,
  RECORD_OWNER,
  RECORD_PAGE_MASK,
  RECORD_PAGE_SHIFT,
} from './tables/dictionary.ts';
import { SEGMENT_HEADER, SEGMENT_SLOTS, homeSlot } from './tables/segmented-hash.ts';
import { hashBytes, lastWordAt, wordAt } from './tables/text-scratch.ts';

/** Ids of one group: enough loads under way at once, and few enough to stay in the first cache. */
const GROUP = 32;
const hashes = new Int32Array(GROUP);
const candidates = new Uint32Array(GROUP);
/** Sums of loads that no code reads, kept so that the loads are not optimized away. */
const sink = new Int32Array(1);

/**
 * Looks up ids in groups, step by step for a whole group: hash all, read all home slots, probe all,
 * read all records, compare all. A lookup on its own waits for memory twice, once for its slot and
 * once for its record; side by side these waits overlap, since no step depends on another id's.
 * Source: Chen et al., Improving hash join performance through prefetching, ICDE 2004 (group
 * prefetching); a plain load is used instead of the prefetch instruction, which JavaScript lacks. Hot.
 */
export function findEntities(
  dictionary: Dictionary,
  bytes: Uint8Array,
  lookups: EntityLookups,
  count: number,
): void {
  for (let from = 0; from < count; from += GROUP) {
    findGroup(dictionary, bytes, lookups, from, Math.min(GROUP, count - from));
  }
}

function findGroup(
  dictionary: Dictionary,
  bytes: Uint8Array,
  lookups: EntityLookups,
  from: number,
  count: number,
): void {
  const { namespaces, starts, ends, entities } = lookups;
  const { table } = dictionary;
  for (let i = 0; i < count; i++) {
    const start = starts[from + i] as number;
    const end = ends[from + i] as number;
    hashes[i] = hashBytes(bytes, start, end, namespaces[from + i] as number);
  }
  // Kept short: a processor overlaps loads within a limited number of instructions only.
  let sum = 0;
  for (let i = 0; i < count; i++) {
    const hash = hashes[i] as number;
    const segment = table.segmentOf(hash);
    const slot = homeSlot(hash, segment[SEGMENT_SLOTS] as number);
    sum += segment[SEGMENT_HEADER + slot * 2] as number;
  }
  for (let i = 0; i < count; i++) candidates[i] = table.first(hashes[i] as number);
  const { pages } = dictionary.records;
  for (let i = 0; i < count; i++) {
    const candidate = candidates[i] as number;
    const page = pages[candidate >>> RECORD_PAGE_SHIFT] as Uint32Array;
    sum += page[candidate & RECORD_PAGE_MASK] as number;
  }
  sink[0] = sum;
  for (let i = 0; i < count; i++) {
    const candidate = candidates[i] as number;
    const namespace = namespaces[from + i] as number;
    const start = starts[from + i] as number;
    const end = ends[from + i] as number;
    entities[from + i] =
      candidate === 0 || namespace < 0
        ? 0
        : isRecord(pages, candidate, namespace, bytes, start, end)
          ? candidate
          : dictionary.findBytes(namespace, bytes, start, end);
  }
}

/** Whether a live record holds the bytes [start, end) under `owner`. Hot. */
export function isRecord(
  pages: readonly Uint32Array[],
  address: number,
  owner: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): boolean {
  const page = pages[address >>> RECORD_PAGE_SHIFT] as Uint32Array;
  let at = address & RECORD_PAGE_MASK;
  if (((page[at] as number) & RECORD_LENGTH_MASK) !== end - start) return false;
  if (page[at + RECORD_OWNER] !== owner) return false;
  at += RECORD_HEADER;
  let i = start;
  for (; i + 4 <= end; i += 4) if (((page[at++] as number) | 0) !== wordAt(bytes, i)) return false;
  return i >= end || page[at] === lastWordAt(bytes, i, end);
}
