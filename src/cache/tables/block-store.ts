import { assert } from '../../shared/assert.ts';

/** Bytes of a chunk; its first words are the chunk behind it and the block that it is of. */
const CHUNK_SHIFT = 7;
export const CHUNK_BYTES = 1 << CHUNK_SHIFT;
const CHUNK_WORDS = CHUNK_BYTES / 4;
const OWNER = 1;
const HEADER_BYTES = 8;
const CONTENT_BYTES = CHUNK_BYTES - HEADER_BYTES;
const PAGE_CHUNKS_SHIFT = 9;
export const PAGE_CHUNKS = 1 << PAGE_CHUNKS_SHIFT;
export const PAGE_BYTES = CHUNK_BYTES << PAGE_CHUNKS_SHIFT;
/** Memory that may be free, in pages and as a share of all: beyond it the emptiest page is cleared. */
const FREE_PAGES_MAX = 2;
const FREE_SHARE_MAX = 1 / 4;
const HANDLES_FIRST = 256;

type BlockPage = {
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
  free: number;
  used: number;
};

/**
 * Blocks of bytes of any size on pages that all of them share, as chains of chunks of one size: so memory that one
 * leaves fits any other, and nothing is lost but the rest of a last chunk. A block is known by a handle, and may be
 * moved: a page that is mostly free is emptied into the others and its memory released at once, without waiting for a
 * collector. Nothing grows on the JS heap with the blocks.
 */
export class BlockStore {
  /** A page that was released leaves a hole, which the next one fills. */
  readonly #pages: (BlockPage | null)[] = [];
  #pageCount = 0;
  #usedChunks = 0;
  /** Per handle its first chunk; of a free one the next free one. Chunk c is on page c >>> PAGE_CHUNKS_SHIFT. */
  #first = new Uint32Array(HANDLES_FIRST);
  #sizes = new Uint32Array(HANDLES_FIRST);
  #freeHandle = 0;
  #top = 1;
  /** The page on which a free chunk was found last. */
  #hint = 0;
  #scratch = new Uint8Array(CHUNK_BYTES);

  /** Bytes of all memory, that of free chunks and of the handles too. */
  get bytes(): number {
    return this.#pageCount * PAGE_BYTES + this.#first.byteLength * 2;
  }

  /** Bytes of the chunks in use. */
  get usedBytes(): number {
    return this.#usedChunks * CHUNK_BYTES;
  }

  /** Stores a copy of the bytes; returns their handle, which is never 0. O(bytes). */
  add(content: Uint8Array): number {
    const handle = this.#takeHandle();
    this.#write(handle, content);
    return handle;
  }

  /** Bytes of a block. */
  sizeOf(handle: number): number {
    return this.#sizes[handle] as number;
  }

  /** Bytes of memory that a block takes. */
  static bytesFor(size: number): number {
    return Math.max(1, Math.ceil(size / CONTENT_BYTES)) * CHUNK_BYTES;
  }

  /** Copies a block to the start of `out`, whose length must suffice; returns its size. O(bytes). */
  read(handle: number, out: Uint8Array): number {
    const size = this.#sizes[handle] as number;
    let chunk = this.#first[handle] as number;
    for (let at = 0; at < size; at += CONTENT_BYTES) {
      const { bytes, words } = this.#pageOf(chunk);
      const start = (chunk & (PAGE_CHUNKS - 1)) * CHUNK_BYTES;
      assert(words[start / 4 + OWNER] === handle, 'a chunk is of its block');
      const from = start + HEADER_BYTES;
      out.set(bytes.subarray(from, from + Math.min(CONTENT_BYTES, size - at)), at);
      chunk = words[start / 4] as number;
    }
    return size;
  }

  /** Gives the memory of a block back. O(bytes), and now and then O(page). */
  remove(handle: number): void {
    this.#free(handle);
    this.#first[handle] = this.#freeHandle;
    this.#freeHandle = handle;
    this.#shrink();
  }

  #write(handle: number, content: Uint8Array): void {
    const size = content.length;
    this.#sizes[handle] = size;
    let previous: { readonly words: Uint32Array; readonly at: number } | null = null;
    for (let at = 0; at === 0 || at < size; at += CONTENT_BYTES) {
      const chunk = this.#takeChunk();
      const { bytes, words } = this.#pageOf(chunk);
      const index = chunk & (PAGE_CHUNKS - 1);
      words[index * CHUNK_WORDS + OWNER] = handle;
      bytes.set(content.subarray(at, at + CONTENT_BYTES), index * CHUNK_BYTES + HEADER_BYTES);
      if (previous === null) this.#first[handle] = chunk;
      else previous.words[previous.at] = chunk;
      previous = { words, at: index * CHUNK_WORDS };
    }
  }

  /** The chunks of a block, back to their pages; pages without any are released. */
  #free(handle: number): void {
    const size = this.#sizes[handle] as number;
    let chunk = this.#first[handle] as number;
    for (let at = 0; at === 0 || at < size; at += CONTENT_BYTES) {
      const page = this.#pageOf(chunk);
      const index = chunk & (PAGE_CHUNKS - 1);
      const next = page.words[index * CHUNK_WORDS] as number;
      assert(page.words[index * CHUNK_WORDS + OWNER] === handle, 'a freed chunk is of its block');
      page.words[index * CHUNK_WORDS] = page.free;
      page.words[index * CHUNK_WORDS + OWNER] = 0;
      page.free = index + 1;
      page.used -= 1;
      this.#usedChunks -= 1;
      this.#hint = chunk >>> PAGE_CHUNKS_SHIFT;
      chunk = next;
    }
  }

  #pageOf(chunk: number): BlockPage {
    const page = this.#pages[chunk >>> PAGE_CHUNKS_SHIFT];
    assert(page !== null && page !== undefined, 'a chunk lies on a page');
    return page;
  }

  #takeHandle(): number {
    const known = this.#freeHandle;
    if (known !== 0) {
      this.#freeHandle = this.#first[known] as number;
      return known;
    }
    if (this.#top === this.#first.length) {
      this.#first = grown(this.#first);
      this.#sizes = grown(this.#sizes);
    }
    return this.#top++;
  }

  #takeChunk(): number {
    let index = this.#hint;
    if ((this.#pages[index]?.free ?? 0) === 0) {
      const isFull = this.#usedChunks === this.#pageCount * PAGE_CHUNKS;
      index = isFull ? -1 : this.#pages.findIndex((each) => (each?.free ?? 0) !== 0);
      if (index < 0) index = this.#addPage();
      this.#hint = index;
    }
    const page = this.#pages[index] as BlockPage;
    const chunk = page.free - 1;
    page.free = page.words[chunk * CHUNK_WORDS] as number;
    page.used += 1;
    this.#usedChunks += 1;
    return (index << PAGE_CHUNKS_SHIFT) | chunk;
  }

  #addPage(): number {
    const bytes = new Uint8Array(PAGE_BYTES);
    const words = new Uint32Array(bytes.buffer);
    for (let i = 0; i < PAGE_CHUNKS - 1; i++) words[i * CHUNK_WORDS] = i + 2;
    const hole = this.#pages.indexOf(null);
    const index = hole < 0 ? this.#pages.length : hole;
    this.#pages[index] = { bytes, words, free: 1, used: 0 };
    this.#pageCount += 1;
    return index;
  }

  #shrink(): void {
    const freeMax = Math.max(FREE_PAGES_MAX, this.#pageCount * FREE_SHARE_MAX) * PAGE_CHUNKS;
    while (this.#pageCount * PAGE_CHUNKS - this.#usedChunks > freeMax) this.#clearEmptiest();
  }

  /** Moves the chunks of the emptiest page to others, whose free chunks suffice. */
  #clearEmptiest(): void {
    let emptiest = -1;
    let used = PAGE_CHUNKS + 1;
    this.#pages.forEach((page, index) => {
      if (page === null || page.used >= used) return;
      emptiest = index;
      used = page.used;
    });
    const page = this.#pages[emptiest] as BlockPage;
    const handles = new Set<number>();
    for (let i = 0; i < PAGE_CHUNKS; i++) {
      const handle = page.words[i * CHUNK_WORDS + OWNER] as number;
      if (handle !== 0) handles.add(handle);
    }
    // Nothing is put on it meanwhile.
    for (const handle of handles) {
      const size = this.#sizes[handle] as number;
      if (this.#scratch.length < size) this.#scratch = new Uint8Array(size);
      this.read(handle, this.#scratch);
      this.#free(handle);
      page.free = 0;
      if (this.#hint === emptiest) this.#hint = 0;
      this.#write(handle, this.#scratch.subarray(0, size));
    }
    assert(page.used === 0, 'a page that was cleared holds nothing');
    this.#pages[emptiest] = null;
    this.#pageCount -= 1;
    if (this.#hint === emptiest) this.#hint = 0;
    // The memory goes now, not when a collector comes by.
    (page.bytes.buffer as ArrayBuffer).transfer(0);
  }
}

function grown(words: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(words.length * 2);
  larger.set(words);
  return larger;
}
