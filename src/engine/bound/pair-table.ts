import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';

/**
 * Insert-only hash table from pairs of unsigned 32-bit numbers to their insertion index
 * (0, 1, 2…). Open addressing, load at most 1/2, no heap object per entry.
 */
export class PairTable {
  size = 0;
  #mask: number;
  #slots: Int32Array;
  #first: Uint32Array;
  #second: Uint32Array;

  constructor(capacity = 16) {
    let slots = 16;
    while (slots < capacity * 2) slots *= 2;
    this.#mask = slots - 1;
    this.#slots = new Int32Array(slots);
    this.#first = new Uint32Array(slots / 2);
    this.#second = new Uint32Array(slots / 2);
  }

  firstOf(index: number): number {
    return this.#first[index] as number;
  }

  secondOf(index: number): number {
    return this.#second[index] as number;
  }

  /** Index of the pair, or -1. Hot. */
  find(first: number, second: number): number {
    let slot = hashPair(first, second) & this.#mask;
    for (;;) {
      const index = (this.#slots[slot] as number) - 1;
      if (index < 0) return -1;
      if (this.#first[index] === first && this.#second[index] === second) return index;
      slot = (slot + 1) & this.#mask;
    }
  }

  /** Index of the pair, which is added if absent: then the index equals the size before. */
  insert(first: number, second: number): number {
    if (this.size * 2 >= this.#slots.length) this.#grow(this.#slots.length * 2);
    let slot = hashPair(first, second) & this.#mask;
    for (;;) {
      const index = (this.#slots[slot] as number) - 1;
      if (index < 0) break;
      if (this.#first[index] === first && this.#second[index] === second) return index;
      slot = (slot + 1) & this.#mask;
    }
    if (DEBUG_ASSERTIONS) this.#assertCapacity();
    this.#first[this.size] = first;
    this.#second[this.size] = second;
    this.#slots[slot] = this.size + 1;
    return this.size++;
  }

  /** Room for `count` more, so that a long scan rehashes once. O(size + count). */
  reserve(count: number): void {
    let length = this.#slots.length;
    while ((this.size + count) * 2 > length) length *= 2;
    if (length > this.#slots.length) this.#grow(length);
  }

  /** Pairs that fit before it grows. */
  get capacity(): number {
    return this.#first.length;
  }

  /** Forgets all pairs and keeps the memory. O(room). */
  clear(): void {
    this.size = 0;
    this.#slots.fill(0);
  }

  #assertCapacity(): void {
    assert(this.size >= 0 && this.size < this.#first.length, 'a pair has its place');
  }

  #grow(length: number): void {
    this.#mask = length - 1;
    this.#slots = new Int32Array(length);
    const first = new Uint32Array(length / 2);
    const second = new Uint32Array(length / 2);
    first.set(this.#first);
    second.set(this.#second);
    this.#first = first;
    this.#second = second;
    for (let index = 0; index < this.size; index++) {
      let slot = hashPair(first[index] as number, second[index] as number) & this.#mask;
      while (this.#slots[slot] !== 0) slot = (slot + 1) & this.#mask;
      this.#slots[slot] = index + 1;
    }
  }
}

/** Mixes two numbers into 32 bits (multipliers of xxHash32). */
export function hashPair(first: number, second: number): number {
  let hash = Math.imul(first, 0x9e3779b1) ^ Math.imul(second + 0x165667b1, 0x85ebca77);
  hash = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae3d);
  return (hash ^ (hash >>> 13)) >>> 0;
}
