import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';

/** The slots of all tables that have no pair yet: none is taken. */
const NO_PAIRS = new Uint32Array(1);

/**
 * Insert-only hash table from pairs of unsigned 32-bit numbers to their insertion index
 * (0, 1, 2…). Open addressing, load at most 1/2, no heap object per entry, no memory before the first one.
 */
export class PairTable {
  size = 0;
  #mask = 0;
  /** Slots, each with an index plus 1, and behind them the pairs in the order of their indexes. */
  #words = NO_PAIRS;
  #pairsAt = 0;
  readonly #slotsFirst: number;

  constructor(capacity = 16) {
    let slots = 16;
    while (slots < capacity * 2) slots *= 2;
    this.#slotsFirst = slots;
  }

  firstOf(index: number): number {
    return this.#words[this.#pairsAt + index * 2] as number;
  }

  secondOf(index: number): number {
    return this.#words[this.#pairsAt + index * 2 + 1] as number;
  }

  /** Index of the pair, or -1. Hot. */
  indexOf(first: number, second: number): number {
    const words = this.#words;
    const pairsAt = this.#pairsAt;
    let slot = hashPair(first, second) & this.#mask;
    for (;;) {
      const index = (words[slot] as number) - 1;
      if (index < 0) return -1;
      const at = pairsAt + index * 2;
      if (words[at] === first && words[at + 1] === second) return index;
      slot = (slot + 1) & this.#mask;
    }
  }

  /** Index of the pair, which is added if absent: then the index equals the size before. */
  insert(first: number, second: number): number {
    if (this.size * 2 >= this.#pairsAt) this.#grow(this.#pairsAt * 2 || this.#slotsFirst);
    const words = this.#words;
    const pairsAt = this.#pairsAt;
    let slot = hashPair(first, second) & this.#mask;
    for (;;) {
      const index = (words[slot] as number) - 1;
      if (index < 0) break;
      const at = pairsAt + index * 2;
      if (words[at] === first && words[at + 1] === second) return index;
      slot = (slot + 1) & this.#mask;
    }
    if (DEBUG_ASSERTIONS) this.#assertCapacity();
    const at = pairsAt + this.size * 2;
    words[at] = first;
    words[at + 1] = second;
    words[slot] = this.size + 1;
    return this.size++;
  }

  /** Reserves capacity for `count` more, so that a long scan rehashes once. O(size + count). */
  reserve(count: number): void {
    let slots = this.#pairsAt || this.#slotsFirst;
    while ((this.size + count) * 2 > slots) slots *= 2;
    if (slots > this.#pairsAt) this.#grow(slots);
  }

  /** Pairs that fit before it grows. */
  get capacity(): number {
    return (this.#pairsAt || this.#slotsFirst) / 2;
  }

  /** Forgets all pairs and keeps the memory. O(capacity). */
  clear(): void {
    this.size = 0;
    if (this.#pairsAt > 0) this.#words.fill(0, 0, this.#pairsAt);
  }

  #assertCapacity(): void {
    assert(this.size >= 0 && this.size < this.capacity, 'a pair has its place');
  }

  #grow(slots: number): void {
    const words = new Uint32Array(slots * 2);
    const pairs = this.#words.subarray(this.#pairsAt, this.#pairsAt + this.size * 2);
    words.set(pairs, slots);
    this.#words = words;
    this.#pairsAt = slots;
    this.#mask = slots - 1;
    for (let index = 0; index < this.size; index++) {
      let slot = hashPair(pairs[index * 2] as number, pairs[index * 2 + 1] as number) & this.#mask;
      while (words[slot] !== 0) slot = (slot + 1) & this.#mask;
      words[slot] = index + 1;
    }
  }
}

/** Mixes two numbers into 32 bits (multipliers of xxHash32). */
export function hashPair(first: number, second: number): number {
  let hash = Math.imul(first, 0x9e3779b1) ^ Math.imul(second + 0x165667b1, 0x85ebca77);
  hash = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae3d);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/** Tables kept for the next who needs one; a thread explains a few queries at once. */
const SPARE_MAX = 4;
/** A table that grew beyond this many pairs is not kept: 40 KiB. */
const SPARE_CAPACITY_MAX = 2048;
const CAPACITY = 64;
const spares: PairTable[] = [];

/**
 * Acquires an empty table, until `releaseTable`. Most searches are so small that making one, growing it and collecting
 * it would cost as much as they do. A table that is never released costs the next search a new one.
 */
export function acquireTable(): PairTable {
  return spares.pop() ?? new PairTable(CAPACITY);
}

/** Releases a table that nobody uses any more. O(its capacity), bounded. */
export function releaseTable(table: PairTable): void {
  if (spares.length >= SPARE_MAX || table.capacity > SPARE_CAPACITY_MAX) return;
  table.clear();
  spares.push(table);
}
