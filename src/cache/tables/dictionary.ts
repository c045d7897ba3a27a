import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import { type Utf8View, utf8View } from '../../shared/text/utf8.ts';
import type { PageAllocator } from './page-allocator.ts';
import { PagedWords } from './paged-words.ts';
import { SegmentedHash, SEGMENT_HEADER, SEGMENT_SLOTS, homeSlot } from './segmented-hash.ts';
import { hashScratch, loadBytes, scratchWords } from './text-scratch.ts';

export const RECORD_PAGE_SHIFT = 16;
export const RECORD_PAGE_MASK = 0xffff;
export const RECORD_PAGE_WORDS = 1 << RECORD_PAGE_SHIFT;
const PAGE_WORDS_FIRST = 256;
/** Addresses below are never records, so that 0 is no record. */
export const ADDRESS_FIRST = 4;
const ADDRESS_MAX = 0x7fff_0000;

/** Word 0: length in bytes | what the owner of the record wants in the high half. */
export const RECORD_LENGTH_MASK = 0xffff;
/** Word 1: the owner, which is the namespace of an entity. */
export const RECORD_OWNER = 1;
/** Word 2: first node of an entity, id of a name, next of a free block. */
export const RECORD_LINK = 2;
/** Words before the bytes. */
export const RECORD_HEADER = 3;

/** Owner of the records that are names. */
export const NAME_OWNER = 0x7fff_fffe;
export const FREE_OWNER = 0x7fff_ffff;

/** Blocks of at most this many words come in exact sizes, larger ones in powers of two. */
const EXACT_WORDS_MAX = 128;
export const BLOCK_WORDS_MIN = 4;
const BINS = EXACT_WORDS_MAX + 17;

/**
 * Interned strings: records of three words and the bytes right behind, so that a lookup touches one
 * hash line and one record. A record's address is its id. Freed blocks are reused by size; a page is
 * not released before the whole index is emptied.
 */
export class Dictionary {
  readonly records: PagedWords;
  readonly table: SegmentedHash;
  /** Live records, hidden ones included. */
  count = 0;
  readonly #bins = new Uint32Array(BINS);
  /** Addresses at or above are unused. */
  #top = ADDRESS_FIRST;
  readonly #decoders: Utf8View[] = [];

  constructor(allocator: PageAllocator) {
    this.records = new PagedWords(allocator, RECORD_PAGE_WORDS, PAGE_WORDS_FIRST);
    this.table = new SegmentedHash(allocator);
  }

  /** Addresses that were ever used are below. */
  get top(): number {
    return this.#top;
  }

  /** First free block of each bin; see `binOf`. */
  get bins(): Readonly<Uint32Array> {
    return this.#bins;
  }

  /** Record of the scratch's first `length` bytes under `owner`, or 0. `hash` is of the same. Hot. */
  recordOf(owner: number, length: number, hash: number): number {
    const segment = this.table.segmentOf(hash);
    const slots = segment[SEGMENT_SLOTS] as number;
    let slot = homeSlot(hash, slots);
    for (;;) {
      const at = SEGMENT_HEADER + slot * 2;
      const address = segment[at + 1] as number;
      if (address === 0) return 0;
      if (((segment[at] as number) | 0) === hash && this.matches(address, owner, length)) {
        return address;
      }
      slot += 1;
      if (slot === slots) slot = 0;
    }
  }

  /** Finds the string of the bytes [start, end), like `recordOf`. */
  findBytes(owner: number, bytes: Uint8Array, start: number, end: number): number {
    const length = loadBytes(bytes, start, end);
    return length < 0 ? 0 : this.recordOf(owner, length, hashScratch(length, owner));
  }

  /** Adds the scratch's string under `owner`, which must be absent. Throws SHARD_TOO_LARGE. */
  insert(owner: number, length: number, hash: number): number {
    const address = this.addHidden(owner, length);
    this.table.insert(hash, address);
    return address;
  }

  /** Adds a string like `insert`, but `recordOf` never returns it. */
  addHidden(owner: number, length: number): number {
    const words = blockWords(length);
    const address = this.#allocate(words);
    const page = this.records.pages[address >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const at = address & RECORD_PAGE_MASK;
    page[at] = length;
    page[at + RECORD_OWNER] = owner;
    page[at + RECORD_LINK] = 0;
    const textWords = (length + 3) >>> 2;
    for (let i = 0; i < textWords; i++) {
      page[at + RECORD_HEADER + i] = scratchWords[i] as number;
    }
    this.count += 1;
    return address;
  }

  /** Removes a record that `insert` made; its address may come back for another string. */
  remove(address: number): void {
    const page = this.records.pages[address >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const at = address & RECORD_PAGE_MASK;
    const length = (page[at] as number) & RECORD_LENGTH_MASK;
    const textWords = (length + 3) >>> 2;
    for (let i = 0; i < textWords; i++) {
      scratchWords[i] = page[at + RECORD_HEADER + i] as number;
    }
    this.table.remove(hashScratch(length, page[at + RECORD_OWNER] as number), address);
    this.#release(address, blockWords(length));
    this.count -= 1;
  }

  /** Forgets every record; keeps the memory of the first page and of the hash. */
  clear(): void {
    this.records.clear();
    this.table.clear();
    this.count = 0;
    this.#bins.fill(0);
    this.#top = ADDRESS_FIRST;
    this.#decoders.length = 0;
  }

  /** Bytes of a record's string. */
  textBytes(address: number): number {
    const page = this.records.pages[address >>> RECORD_PAGE_SHIFT] as Uint32Array;
    return (page[address & RECORD_PAGE_MASK] as number) & RECORD_LENGTH_MASK;
  }

  /** Copies the bytes of a record's string to `out` from `at` on, whose length must suffice; returns how many. */
  copyText(address: number, out: Uint8Array, at: number): number {
    const page = this.records.pages[address >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const from = address & RECORD_PAGE_MASK;
    const length = (page[from] as number) & RECORD_LENGTH_MASK;
    for (let i = 0; i < length; i++) {
      out[at + i] = (page[from + RECORD_HEADER + (i >>> 2)] as number) >>> ((i & 3) << 3);
    }
    return length;
  }

  /** The string of a record. Allocates it. */
  text(address: number): string {
    const index = address >>> RECORD_PAGE_SHIFT;
    const page = this.records.pages[index] as Uint32Array;
    const at = address & RECORD_PAGE_MASK;
    const start = (at + RECORD_HEADER) * 4;
    const end = start + ((page[at] as number) & RECORD_LENGTH_MASK);
    let decoder = this.#decoders[index];
    if (decoder === undefined || decoder.buffer !== page.buffer) {
      decoder = utf8View(page.buffer, 0, page.byteLength);
      this.#decoders[index] = decoder;
    }
    return decoder.toString('utf8', start, end);
  }

  /** Copies the bytes of a record to `out` from `at` on; returns where they end. Hot: short strings, so byte by byte. */
  read(address: number, out: Uint8Array, at: number): number {
    const page = this.records.pages[address >>> RECORD_PAGE_SHIFT] as Uint32Array;
    let from = address & RECORD_PAGE_MASK;
    const end = at + ((page[from] as number) & RECORD_LENGTH_MASK);
    from += RECORD_HEADER;
    let to = at;
    for (; to + 4 <= end; to += 4) {
      const word = page[from++] as number;
      out[to] = word;
      out[to + 1] = word >>> 8;
      out[to + 2] = word >>> 16;
      out[to + 3] = word >>> 24;
    }
    if (to < end) {
      for (let word = page[from] as number; to < end; to++, word >>>= 8) out[to] = word;
    }
    return end;
  }

  /** Order of two records' bytes: negative, 0 or positive. O(length), allocates nothing. */
  compare(a: number, b: number): number {
    const pageA = this.records.pages[a >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const pageB = this.records.pages[b >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const atA = a & RECORD_PAGE_MASK;
    const atB = b & RECORD_PAGE_MASK;
    const lengthA = (pageA[atA] as number) & RECORD_LENGTH_MASK;
    const lengthB = (pageB[atB] as number) & RECORD_LENGTH_MASK;
    const words = (Math.min(lengthA, lengthB) + 3) >>> 2;
    for (let i = 0; i < words; i++) {
      const wordA = pageA[atA + RECORD_HEADER + i] as number;
      const wordB = pageB[atB + RECORD_HEADER + i] as number;
      if (wordA !== wordB) return swapBytes(wordA) < swapBytes(wordB) ? -1 : 1;
    }
    return lengthA - lengthB;
  }

  /**
   * Next live record at or after `address` (0 at first), or 0 at the end. Continue at its `after`.
   * Walks memory in order: O(words) for all.
   */
  next(address: number): number {
    let at = Math.max(address, ADDRESS_FIRST);
    while (at < this.#top) {
      const page = this.records.pages[at >>> RECORD_PAGE_SHIFT] as Uint32Array;
      const offset = at & RECORD_PAGE_MASK;
      if (RECORD_PAGE_WORDS - offset < BLOCK_WORDS_MIN) {
        at += RECORD_PAGE_WORDS - offset;
      } else if (page[offset + RECORD_OWNER] === FREE_OWNER) {
        const words = page[offset] as number;
        assert(words >= BLOCK_WORDS_MIN, 'a free dictionary block has a size');
        at += words;
      } else {
        return at;
      }
    }
    return 0;
  }

  /** The address behind a live record. */
  after(address: number): number {
    const page = this.records.pages[address >>> RECORD_PAGE_SHIFT] as Uint32Array;
    return address + blockWords((page[address & RECORD_PAGE_MASK] as number) & RECORD_LENGTH_MASK);
  }

  /** Whether a live record holds the scratch's first `length` bytes under `owner`. Hot. */
  matches(address: number, owner: number, length: number): boolean {
    const page = this.records.pages[address >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const at = address & RECORD_PAGE_MASK;
    if (((page[at] as number) & RECORD_LENGTH_MASK) !== length) return false;
    if (page[at + RECORD_OWNER] !== owner) return false;
    const words = (length + 3) >>> 2;
    for (let i = 0; i < words; i++) {
      if (page[at + RECORD_HEADER + i] !== scratchWords[i]) return false;
    }
    return true;
  }

  #allocate(words: number): number {
    const bin = binOf(words);
    if (this.#bins[bin] !== 0) return this.#unbin(bin);
    while (this.#top + words > this.records.capacity) {
      // Before memory grows by a whole page, larger holes are cut up.
      if (this.records.capacity >= RECORD_PAGE_WORDS) {
        const cut = this.#split(words);
        if (cut !== 0) return cut;
        this.#closePage();
      }
      this.records.grow();
    }
    const address = this.#top;
    if (address > ADDRESS_MAX) {
      throw new AppError<AuthzReason>(
        'SHARD_TOO_LARGE',
        'the dictionary of the tuple index is full',
      );
    }
    this.#top += words;
    return address;
  }

  #unbin(bin: number): number {
    const address = this.#bins[bin] as number;
    const page = this.records.pages[address >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const at = address & RECORD_PAGE_MASK;
    assert(page[at + RECORD_OWNER] === FREE_OWNER, 'a binned dictionary block is free');
    this.#bins[bin] = page[at + RECORD_LINK] as number;
    return address;
  }

  #split(words: number): number {
    for (let bin = binOf(words + BLOCK_WORDS_MIN); bin < BINS; bin++) {
      const address = this.#bins[bin] as number;
      if (address === 0) continue;
      const page = this.records.pages[address >>> RECORD_PAGE_SHIFT] as Uint32Array;
      const size = page[address & RECORD_PAGE_MASK] as number;
      if (size < words + BLOCK_WORDS_MIN) continue;
      this.#unbin(bin);
      this.#release(address + words, size - words);
      return address;
    }
    return 0;
  }

  /** Turns the rest of the page at the top into free blocks and moves the top behind it. */
  #closePage(): void {
    const offset = this.#top & RECORD_PAGE_MASK;
    if (offset === 0) return;
    const rest = RECORD_PAGE_WORDS - offset;
    if (rest >= BLOCK_WORDS_MIN) this.#release(this.#top, rest);
    this.#top += rest;
  }

  /** Frees any number of words from 4 up, in pieces of the sizes that bins hold. */
  #release(address: number, words: number): void {
    let from = address;
    let left = words;
    while (left > 0) {
      let size = left;
      if (left > EXACT_WORDS_MAX) {
        size = 1 << (31 - Math.clz32(left));
        if (left > size && left - size < BLOCK_WORDS_MIN) size >>>= 1;
      }
      this.#bin(from, size);
      from += size;
      left -= size;
    }
  }

  #bin(address: number, words: number): void {
    const page = this.records.pages[address >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const at = address & RECORD_PAGE_MASK;
    const bin = binOf(words);
    page[at] = words;
    page[at + RECORD_OWNER] = FREE_OWNER;
    page[at + RECORD_LINK] = this.#bins[bin] as number;
    this.#bins[bin] = address;
  }
}

/** Words of the block of a record with `length` bytes. */
export function blockWords(length: number): number {
  const words = Math.max(BLOCK_WORDS_MIN, RECORD_HEADER + ((length + 3) >>> 2));
  return words <= EXACT_WORDS_MAX ? words : 1 << (32 - Math.clz32(words - 1));
}

/** Bin of the free blocks of this size. */
export function binOf(words: number): number {
  return words <= EXACT_WORDS_MAX ? words : EXACT_WORDS_MAX + 31 - Math.clz32(words) - 6;
}

function swapBytes(word: number): number {
  return ((word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)) >>> 0;
}
