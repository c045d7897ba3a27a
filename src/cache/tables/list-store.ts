import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { PageAllocator } from './page-allocator.ts';

export const LIST_PAGE_SHIFT = 16;
export const LIST_PAGE_MASK = 0xffff;
export const PAGE_ORDER = 16;
const PAGE_WORDS = 1 << PAGE_ORDER;
const PAGE_ORDER_FIRST = 8;
export const ORDER_MIN = 2;
/** Order of the chunks of long lists, and of the largest list in one block. */
export const CHUNK_ORDER = 12;
const CHUNK_MASK = (1 << CHUNK_ORDER) - 1;
export const BLOCK_FREE = 0x80;
/** Pages that are wholly free but kept, so that a list at the border does not thrash. */
const SPARE_PAGES = 1;
/** List addresses fit in 30 bits. */
const PAGES_MAX = 1 << (30 - LIST_PAGE_SHIFT);

// Header: bit 31 the owner's mark, bit 30 long, bits 26-29 order of the header's block - 2, count.
export const LIST_MARK = 0x8000_0000;
export const LIST_LONG = 0x4000_0000;
export const LIST_COUNT_MASK = 0x03ff_ffff;
const ORDER_SHIFT = 26;

/**
 * Lists of words in buddy blocks on pages. A list of up to 4,095 entries is one block: a header word
 * and the entries. A longer one is a header and the addresses of chunks of 4,096 entries; so growth
 * and shrinkage copy 16 KiB at most, or the chunk addresses (4 bytes for 4,096 entries). Blocks that
 * fall free merge with their buddies, and free pages go back to the allocator.
 * Source: Knuth, TAOCP 1, 2.5, buddy system.
 */
export class ListStore {
  readonly pages: Uint32Array[] = [];
  readonly #tags: Uint8Array[] = [];
  /** Per order the first free block, 0 for none. Blocks link by word 0 (previous) and 1 (next). */
  readonly #free = new Uint32Array(PAGE_ORDER + 1);
  readonly #released: number[] = [];
  #spare = 0;
  readonly #allocator: PageAllocator;

  constructor(allocator: PageAllocator) {
    this.#allocator = allocator;
    this.pages.push(allocator.words(1 << PAGE_ORDER_FIRST));
    this.#tags.push(allocator.octets(1 << (PAGE_ORDER_FIRST - ORDER_MIN)));
    this.#linkFirst();
  }

  /** Forgets every list; keeps the first page, unless it is full-sized. */
  clear(): void {
    const isKept = (this.pages[0] as Uint32Array).length < PAGE_WORDS;
    const from = isKept ? 1 : 0;
    for (const page of this.pages.splice(from)) this.#allocator.release(page);
    for (const tags of this.#tags.splice(from)) this.#allocator.release(tags);
    if (!isKept) {
      this.pages.push(this.#allocator.words(1 << PAGE_ORDER_FIRST));
      this.#tags.push(this.#allocator.octets(1 << (PAGE_ORDER_FIRST - ORDER_MIN)));
    }
    this.#free.fill(0);
    (this.#tags[0] as Uint8Array).fill(0);
    this.#released.length = 0;
    this.#spare = 0;
    this.#linkFirst();
  }

  /** The first block stays taken: address 0 is no list. */
  #linkFirst(): void {
    const words = (this.pages[0] as Uint32Array).length;
    for (let order = ORDER_MIN; 1 << order < words; order++) this.#link(1 << order, order);
  }

  /** Per page a tag for each 4 words: BLOCK_FREE and the order at the start of a free block, else 0. */
  get tags(): readonly Uint8Array[] {
    return this.#tags;
  }

  /** Per order the first free block, 0 for none. */
  get freeHeads(): Readonly<Uint32Array> {
    return this.#free;
  }

  get bytes(): number {
    let bytes = 0;
    for (const page of this.pages) bytes += page.byteLength;
    for (const tags of this.#tags) bytes += tags.byteLength;
    return bytes;
  }

  /** A list of two entries. Throws SHARD_TOO_LARGE, as every growth here. */
  createPair(first: number, second: number): number {
    const list = this.create();
    const page = this.pages[list >>> LIST_PAGE_SHIFT] as Uint32Array;
    const at = list & LIST_PAGE_MASK;
    page[at] = 2;
    page[at + 1] = first;
    page[at + 2] = second;
    return list;
  }

  /** An empty list. */
  create(): number {
    const list = this.#allocate(ORDER_MIN);
    (this.pages[list >>> LIST_PAGE_SHIFT] as Uint32Array)[list & LIST_PAGE_MASK] = 0;
    return list;
  }

  header(list: number): number {
    return (this.pages[list >>> LIST_PAGE_SHIFT] as Uint32Array)[list & LIST_PAGE_MASK] as number;
  }

  count(list: number): number {
    return this.header(list) & LIST_COUNT_MASK;
  }

  /** Sets or clears the owner's mark in the header. */
  setMark(list: number, marked: boolean): void {
    const header = this.header(list);
    this.#setHeader(list, marked ? header | LIST_MARK : header & ~LIST_MARK);
  }

  get(list: number, index: number): number {
    const at = this.#addressOf(list, index);
    return (this.pages[at >>> LIST_PAGE_SHIFT] as Uint32Array)[at & LIST_PAGE_MASK] as number;
  }

  set(list: number, index: number, value: number): void {
    const at = this.#addressOf(list, index);
    (this.pages[at >>> LIST_PAGE_SHIFT] as Uint32Array)[at & LIST_PAGE_MASK] = value;
  }

  /** Appends; returns the list's address, which may be another. */
  append(list: number, value: number): number {
    const header = this.header(list);
    const count = header & LIST_COUNT_MASK;
    if (count === LIST_COUNT_MASK) {
      throw new AppError<AuthzReason>('SHARD_TOO_LARGE', 'a list of the tuple index is full');
    }
    const order = orderOf(header);
    let moved = list;
    if ((header & LIST_LONG) !== 0) {
      if ((count & CHUNK_MASK) === 0) moved = this.#addChunk(list, count >>> CHUNK_ORDER);
    } else if (count + 1 === 1 << order) {
      moved = order < CHUNK_ORDER ? this.#resize(list, order + 1) : this.#makeLong(list);
    }
    this.#setHeader(moved, this.header(moved) + 1);
    this.set(moved, count, value);
    return moved;
  }

  /** Drops the last entry; returns the list's address, which may be another. The list is not empty. */
  pop(list: number): number {
    const header = this.header(list) - 1;
    const count = header & LIST_COUNT_MASK;
    this.#setHeader(list, header);
    if ((header & LIST_LONG) !== 0) {
      if ((count & CHUNK_MASK) === 0) this.#dropChunk(list, count >>> CHUNK_ORDER);
      return count <= CHUNK_MASK >>> 1 ? this.#makeShort(list) : list;
    }
    const order = orderOf(header);
    return order > ORDER_MIN && count < 1 << (order - 2) ? this.#resize(list, order - 1) : list;
  }

  /** Frees a list with all it holds. O(chunks). */
  destroy(list: number): void {
    const header = this.header(list);
    if ((header & LIST_LONG) !== 0) {
      const chunks = ((header & LIST_COUNT_MASK) + CHUNK_MASK) >>> CHUNK_ORDER;
      for (let i = 0; i < chunks; i++) this.#release(this.#chunk(list, i), CHUNK_ORDER);
    }
    this.#release(list, orderOf(header));
  }

  /**
   * Copies up to `limit` entries from `index` on into `out`; returns how many. Allocates nothing. Hot.
   */
  copy(list: number, index: number, out: Uint32Array, outStart: number, limit: number): number {
    const header = this.header(list);
    const end = Math.min(header & LIST_COUNT_MASK, index + limit);
    let to = outStart;
    for (let i = index; i < end;) {
      const from = this.#addressOf(list, i);
      const page = this.pages[from >>> LIST_PAGE_SHIFT] as Uint32Array;
      const at = from & LIST_PAGE_MASK;
      const run =
        (header & LIST_LONG) === 0
          ? end - i
          : Math.min(end - i, (1 << CHUNK_ORDER) - (i & CHUNK_MASK));
      for (let j = 0; j < run; j++) out[to + j] = page[at + j] as number;
      to += run;
      i += run;
    }
    return Math.max(0, end - index);
  }

  #setHeader(list: number, header: number): void {
    (this.pages[list >>> LIST_PAGE_SHIFT] as Uint32Array)[list & LIST_PAGE_MASK] = header;
  }

  #addressOf(list: number, index: number): number {
    const header = this.header(list);
    assert(index < (header & LIST_COUNT_MASK), 'list index within the list');
    if ((header & LIST_LONG) === 0) return list + 1 + index;
    return this.#chunk(list, index >>> CHUNK_ORDER) + (index & CHUNK_MASK);
  }

  #chunk(list: number, chunk: number): number {
    const page = this.pages[list >>> LIST_PAGE_SHIFT] as Uint32Array;
    return page[(list & LIST_PAGE_MASK) + 1 + chunk] as number;
  }

  #setChunk(list: number, chunk: number, address: number): void {
    const page = this.pages[list >>> LIST_PAGE_SHIFT] as Uint32Array;
    page[(list & LIST_PAGE_MASK) + 1 + chunk] = address;
  }

  /** Moves a list's block to another order; the header keeps everything but the order. */
  #resize(list: number, order: number): number {
    const header = this.header(list);
    const oldOrder = orderOf(header);
    const moved = this.#allocate(order);
    const from = this.pages[list >>> LIST_PAGE_SHIFT] as Uint32Array;
    const to = this.pages[moved >>> LIST_PAGE_SHIFT] as Uint32Array;
    const fromAt = list & LIST_PAGE_MASK;
    const toAt = moved & LIST_PAGE_MASK;
    const words = 1 << Math.min(order, oldOrder);
    for (let i = 1; i < words; i++) to[toAt + i] = from[fromAt + i] as number;
    to[toAt] = withOrder(header, order);
    this.#release(list, oldOrder);
    return moved;
  }

  #makeLong(list: number): number {
    const header = this.header(list);
    const count = header & LIST_COUNT_MASK;
    const chunk = this.#allocate(CHUNK_ORDER);
    const moved = this.#allocate(ORDER_MIN);
    const from = this.pages[list >>> LIST_PAGE_SHIFT] as Uint32Array;
    const to = this.pages[chunk >>> LIST_PAGE_SHIFT] as Uint32Array;
    const fromAt = (list & LIST_PAGE_MASK) + 1;
    const toAt = chunk & LIST_PAGE_MASK;
    for (let i = 0; i < count; i++) to[toAt + i] = from[fromAt + i] as number;
    this.#setHeader(moved, withOrder(header, ORDER_MIN) | LIST_LONG);
    this.#setChunk(moved, 0, chunk);
    this.#release(list, CHUNK_ORDER);
    return moved;
  }

  #makeShort(list: number): number {
    const header = this.header(list);
    const count = header & LIST_COUNT_MASK;
    const moved = this.#allocate(CHUNK_ORDER);
    const chunk = this.#chunk(list, 0);
    const from = this.pages[chunk >>> LIST_PAGE_SHIFT] as Uint32Array;
    const to = this.pages[moved >>> LIST_PAGE_SHIFT] as Uint32Array;
    const fromAt = chunk & LIST_PAGE_MASK;
    const toAt = (moved & LIST_PAGE_MASK) + 1;
    for (let i = 0; i < count; i++) to[toAt + i] = from[fromAt + i] as number;
    this.#setHeader(moved, withOrder(header & ~LIST_LONG, CHUNK_ORDER));
    this.#release(chunk, CHUNK_ORDER);
    this.#release(list, orderOf(header));
    return moved;
  }

  #addChunk(list: number, chunk: number): number {
    const order = orderOf(this.header(list));
    let moved = list;
    if (chunk + 1 === 1 << order) {
      if (order === PAGE_ORDER) {
        throw new AppError<AuthzReason>('SHARD_TOO_LARGE', 'a list of the tuple index is full');
      }
      moved = this.#resize(list, order + 1);
    }
    this.#setChunk(moved, chunk, this.#allocate(CHUNK_ORDER));
    return moved;
  }

  #dropChunk(list: number, chunk: number): void {
    this.#release(this.#chunk(list, chunk), CHUNK_ORDER);
  }

  #allocate(order: number): number {
    let found = order;
    while (found <= PAGE_ORDER && this.#free[found] === 0) found += 1;
    if (found > PAGE_ORDER) {
      this.#grow();
      return this.#allocate(order);
    }
    const address = this.#free[found] as number;
    this.#unlink(address, found);
    if (found === PAGE_ORDER) this.#spare -= 1;
    while (found > order) {
      found -= 1;
      this.#link(address + (1 << found), found);
    }
    return address;
  }

  #release(address: number, order: number): void {
    const index = address >>> LIST_PAGE_SHIFT;
    const length = (this.pages[index] as Uint32Array).length;
    const tags = this.#tags[index] as Uint8Array;
    let from = address;
    let size = order;
    while (size < PAGE_ORDER) {
      const buddy = from ^ (1 << size);
      const at = buddy & LIST_PAGE_MASK;
      if (at >= length || tags[at >>> ORDER_MIN] !== (BLOCK_FREE | size)) break;
      this.#unlink(buddy, size);
      from &= ~(1 << size);
      size += 1;
    }
    if (size === PAGE_ORDER) {
      if (this.#spare >= SPARE_PAGES) return this.#releasePage(index);
      this.#spare += 1;
    }
    this.#link(from, size);
  }

  #link(address: number, order: number): void {
    const index = address >>> LIST_PAGE_SHIFT;
    const at = address & LIST_PAGE_MASK;
    const next = this.#free[order] as number;
    const page = this.pages[index] as Uint32Array;
    page[at] = 0;
    page[at + 1] = next;
    (this.#tags[index] as Uint8Array)[at >>> ORDER_MIN] = BLOCK_FREE | order;
    if (next !== 0) this.#setHeader(next, address);
    this.#free[order] = address;
  }

  #unlink(address: number, order: number): void {
    const index = address >>> LIST_PAGE_SHIFT;
    const at = address & LIST_PAGE_MASK;
    const page = this.pages[index] as Uint32Array;
    const previous = page[at] as number;
    const next = page[at + 1] as number;
    if (previous === 0) this.#free[order] = next;
    else
      (this.pages[previous >>> LIST_PAGE_SHIFT] as Uint32Array)[(previous & LIST_PAGE_MASK) + 1] =
        next;
    if (next !== 0) this.#setHeader(next, previous);
    (this.#tags[index] as Uint8Array)[at >>> ORDER_MIN] = 0;
  }

  /** Doubles the first page until it is full-sized; adds pages from then on. */
  #grow(): void {
    const first = this.pages[0] as Uint32Array;
    const words = first.length;
    if (words < PAGE_WORDS) {
      const larger = this.#allocator.words(words * 2);
      larger.set(first);
      this.#allocator.release(first);
      this.pages[0] = larger;
      const tags = this.#tags[0] as Uint8Array;
      const largerTags = this.#allocator.octets(tags.length * 2);
      largerTags.set(tags);
      this.#allocator.release(tags);
      this.#tags[0] = largerTags;
      this.#link(words, 31 - Math.clz32(words));
      return;
    }
    const index = this.#released.pop() ?? this.pages.length;
    if (index >= PAGES_MAX) {
      throw new AppError<AuthzReason>('SHARD_TOO_LARGE', 'the lists of the tuple index are full');
    }
    this.pages[index] = this.#allocator.words(PAGE_WORDS);
    this.#tags[index] = this.#allocator.octets(PAGE_WORDS >>> ORDER_MIN);
    this.#spare += 1;
    this.#link(index * PAGE_WORDS, PAGE_ORDER);
  }

  #releasePage(index: number): void {
    this.#allocator.release(this.pages[index] as Uint32Array);
    this.#allocator.release(this.#tags[index] as Uint8Array);
    this.pages[index] = NO_PAGE;
    this.#tags[index] = NO_TAGS;
    this.#released.push(index);
  }
}

const NO_PAGE = new Uint32Array(0);
const NO_TAGS = new Uint8Array(0);

/** Order of the block that holds a list's header. */
export function orderOf(header: number): number {
  return ((header >>> ORDER_SHIFT) & 15) + ORDER_MIN;
}

function withOrder(header: number, order: number): number {
  return (header & ~(15 << ORDER_SHIFT)) | ((order - ORDER_MIN) << ORDER_SHIFT);
}
