import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { PageAllocator } from './page-allocator.ts';

/** Words before the slots of a segment: entries, slots, depth, unused. */
export const SEGMENT_HEADER = 4;
/** Words of a segment: its used slots, its number of slots, the bits of the hash that select it. */
export const SEGMENT_ENTRIES = 0;
export const SEGMENT_SLOTS = 1;
export const SEGMENT_DEPTH = 2;

const SLOTS_FIRST = 16;
const SLOTS_STEP = 1024;
const SLOTS_DOUBLING_MAX = 4096;
const SLOTS_SPLIT = 8192;
const SLOTS_MAX = 65_536;
const DEPTH_MAX = 16;

/**
 * Home slot of a hash among `slots` (at most 65,536). The directory consumes the high bits, this the
 * low ones. Hot.
 */
export function homeSlot(hash: number, slots: number): number {
  return Math.imul(hash & 0xffff, slots) >>> 16;
}

/**
 * A multiset of (hash, value) pairs: extendible hashing over segments with linear probing. A slot holds the
 * whole hash and the value (never 0) in one cache line, so that a miss costs one line and growth never
 * reads the records of the values. Deletion shifts back: no tombstones. Growth moves one segment (at most
 * 64 KiB), by quarter steps, so that slots are 60-75 % used. Callers write out the lookup, since they know
 * how to compare: see `segmentOf`. Source: Fagin et al., Extendible hashing, TODS 1979; Knuth 6.4 algorithm
 * R for the deletion.
 */
export class SegmentedHash {
  entries = 0;
  directory: Uint32Array[];
  depth = 0;
  readonly #allocator: PageAllocator;

  constructor(allocator: PageAllocator) {
    this.#allocator = allocator;
    this.directory = [this.#segment(SLOTS_FIRST, 0)];
  }

  /** Bytes of all segments. O(segments). */
  get bytes(): number {
    let bytes = 0;
    for (const segment of new Set(this.directory)) bytes += segment.byteLength;
    return bytes;
  }

  /**
   * The segment of a hash (int32). Scan from `homeSlot(hash, segment[SEGMENT_SLOTS])`, slot i at words
   * SEGMENT_HEADER + 2i (hash) and + 1 (value), wrapping, until a value 0. Hot.
   */
  segmentOf(hash: number): Uint32Array {
    return this.directory[(hash >>> 1) >>> (31 - this.depth)] as Uint32Array;
  }

  /** The first value stored with a hash, or 0: mostly the only one. Hot. */
  first(hash: number): number {
    const segment = this.segmentOf(hash);
    const slots = segment[SEGMENT_SLOTS] as number;
    let slot = homeSlot(hash, slots);
    for (;;) {
      const at = SEGMENT_HEADER + slot * 2;
      const value = segment[at + 1] as number;
      if (value === 0 || ((segment[at] as number) | 0) === hash) return value;
      slot += 1;
      if (slot === slots) slot = 0;
    }
  }

  /** Forgets everything; keeps the memory of a table that never was split. O(slots). */
  clear(): void {
    let [kept] = this.directory as [Uint32Array];
    if (this.directory.length > 1) {
      for (const segment of new Set(this.directory)) this.#allocator.release(segment);
      kept = this.#segment(SLOTS_FIRST, 0);
      this.directory = [kept];
      this.depth = 0;
    }
    if (this.entries === 0) return;
    kept.fill(0, SEGMENT_HEADER);
    kept[SEGMENT_ENTRIES] = 0;
    this.entries = 0;
  }

  /** Adds a pair. Amortized O(1); at worst one segment is rebuilt. Throws SHARD_TOO_LARGE. */
  insert(hash: number, value: number): void {
    let segment = this.segmentOf(hash);
    while (
      ((segment[SEGMENT_ENTRIES] as number) + 1) * 4 >
      (segment[SEGMENT_SLOTS] as number) * 3
    ) {
      this.#grow(segment, hash);
      segment = this.segmentOf(hash);
    }
    insert(segment, hash, value);
    this.entries += 1;
  }

  /** Whether the pair is stored. O(1) expected. */
  has(hash: number, value: number): boolean {
    return slotOf(this.segmentOf(hash), hash, value) >= 0;
  }

  /** Replaces the value of a stored pair. */
  replace(hash: number, oldValue: number, value: number): void {
    const segment = this.segmentOf(hash);
    const slot = slotOf(segment, hash, oldValue);
    assert(slot >= 0, 'replaced hash entry is stored');
    segment[SEGMENT_HEADER + slot * 2 + 1] = value;
  }

  /** Removes a stored pair; shrinks a segment that became sparse. */
  remove(hash: number, value: number): void {
    const segment = this.segmentOf(hash);
    const slot = slotOf(segment, hash, value);
    assert(slot >= 0, 'removed hash entry is stored');
    shiftBack(segment, slot);
    this.entries -= 1;
    const entries = segment[SEGMENT_ENTRIES] as number;
    const slots = segment[SEGMENT_SLOTS] as number;
    if (slots > SLOTS_FIRST && entries * 5 < slots) {
      this.#rebuild(segment, hash, Math.max(SLOTS_FIRST, slots >>> 1));
    }
  }

  #segment(slots: number, depth: number): Uint32Array {
    const segment = this.#allocator.words(SEGMENT_HEADER + slots * 2);
    segment[SEGMENT_SLOTS] = slots;
    segment[SEGMENT_DEPTH] = depth;
    return segment;
  }

  #grow(segment: Uint32Array, hash: number): void {
    const slots = segment[SEGMENT_SLOTS] as number;
    if (slots < SLOTS_SPLIT) {
      this.#rebuild(segment, hash, slots < SLOTS_DOUBLING_MAX ? slots * 2 : slots + SLOTS_STEP);
    } else if ((segment[SEGMENT_DEPTH] as number) < DEPTH_MAX) {
      this.#split(segment, hash);
    } else if (slots < SLOTS_MAX) {
      this.#rebuild(segment, hash, slots * 2);
    } else {
      throw new AppError<AuthzReason>(
        'SHARD_TOO_LARGE',
        'a hash segment of the tuple index is full',
      );
    }
  }

  #rebuild(segment: Uint32Array, hash: number, slots: number): void {
    const depth = segment[SEGMENT_DEPTH] as number;
    const rebuilt = this.#segment(slots, depth);
    moveAll(segment, rebuilt);
    this.#point(hash, depth, rebuilt);
    this.#allocator.release(segment);
  }

  #split(segment: Uint32Array, hash: number): void {
    const depth = segment[SEGMENT_DEPTH] as number;
    if (depth === this.depth) this.#doubleDirectory();
    const bit = 0x8000_0000 >>> depth;
    let ones = 0;
    const slots = segment[SEGMENT_SLOTS] as number;
    for (let at = SEGMENT_HEADER, i = 0; i < slots; i++, at += 2) {
      if (segment[at + 1] !== 0 && ((segment[at] as number) & bit) !== 0) ones += 1;
    }
    const zeros = (segment[SEGMENT_ENTRIES] as number) - ones;
    const low = this.#segment(slotsFor(zeros), depth + 1);
    const high = this.#segment(slotsFor(ones), depth + 1);
    for (let at = SEGMENT_HEADER, i = 0; i < slots; i++, at += 2) {
      const value = segment[at + 1] as number;
      if (value === 0) continue;
      const moved = (segment[at] as number) | 0;
      insert((moved & bit) === 0 ? low : high, moved, value);
    }
    this.#point(hash & ~bit, depth + 1, low);
    this.#point(hash | bit, depth + 1, high);
    this.#allocator.release(segment);
  }

  #doubleDirectory(): void {
    const doubled: Uint32Array[] = [];
    for (const segment of this.directory) doubled.push(segment, segment);
    this.directory = doubled;
    this.depth += 1;
  }

  /** Points every directory entry that shares the first `depth` bits of `hash` at `segment`. */
  #point(hash: number, depth: number, segment: Uint32Array): void {
    const span = 1 << (this.depth - depth);
    const first = ((hash >>> 1) >>> (31 - this.depth)) & ~(span - 1);
    for (let i = first; i < first + span; i++) this.directory[i] = segment;
  }
}

function slotsFor(entries: number): number {
  const wanted = Math.ceil((entries * 8) / 5 / SLOTS_STEP) * SLOTS_STEP;
  return Math.min(SLOTS_SPLIT, Math.max(SLOTS_FIRST, wanted));
}

function insert(segment: Uint32Array, hash: number, value: number): void {
  const slots = segment[SEGMENT_SLOTS] as number;
  let slot = homeSlot(hash, slots);
  while (segment[SEGMENT_HEADER + slot * 2 + 1] !== 0) {
    slot += 1;
    if (slot === slots) slot = 0;
  }
  segment[SEGMENT_HEADER + slot * 2] = hash;
  segment[SEGMENT_HEADER + slot * 2 + 1] = value;
  segment[SEGMENT_ENTRIES] = (segment[SEGMENT_ENTRIES] as number) + 1;
}

function moveAll(from: Uint32Array, to: Uint32Array): void {
  const slots = from[SEGMENT_SLOTS] as number;
  for (let at = SEGMENT_HEADER, i = 0; i < slots; i++, at += 2) {
    const value = from[at + 1] as number;
    if (value !== 0) insert(to, (from[at] as number) | 0, value);
  }
}

function slotOf(segment: Uint32Array, hash: number, value: number): number {
  const slots = segment[SEGMENT_SLOTS] as number;
  let slot = homeSlot(hash, slots);
  for (;;) {
    const at = SEGMENT_HEADER + slot * 2;
    const found = segment[at + 1] as number;
    if (found === 0) return -1;
    if (found === value && ((segment[at] as number) | 0) === hash) return slot;
    slot += 1;
    if (slot === slots) slot = 0;
  }
}

function shiftBack(segment: Uint32Array, emptied: number): void {
  const slots = segment[SEGMENT_SLOTS] as number;
  let hole = emptied;
  let slot = emptied;
  for (;;) {
    slot += 1;
    if (slot === slots) slot = 0;
    const at = SEGMENT_HEADER + slot * 2;
    if (segment[at + 1] === 0) break;
    const home = homeSlot((segment[at] as number) | 0, slots);
    const stays = hole <= slot ? hole < home && home <= slot : hole < home || home <= slot;
    if (stays) continue;
    segment[SEGMENT_HEADER + hole * 2] = segment[at] as number;
    segment[SEGMENT_HEADER + hole * 2 + 1] = segment[at + 1] as number;
    hole = slot;
  }
  segment[SEGMENT_HEADER + hole * 2] = 0;
  segment[SEGMENT_HEADER + hole * 2 + 1] = 0;
  segment[SEGMENT_ENTRIES] = (segment[SEGMENT_ENTRIES] as number) - 1;
}
