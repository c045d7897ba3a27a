import {
  BLOCK_BYTES_MAX,
  BLOCK_BYTES_SPARE,
  BLOCKS_BYTES_MAX,
  CONTINUATIONS_MAX,
  FIELDS_MAX,
} from './connection-options.ts';
import type { HeaderField } from './hpack/header-field.ts';
import { type HeaderListLimits, HpackDecoder } from './hpack/hpack-decoder.ts';
import { type RequestHead, requestHeadOf } from './request-head.ts';

/** Head of a header block, as its HEADERS frame states it. */
export type BlockHead = {
  readonly id: number;
  /** Nothing of the request follows. */
  readonly isLast: boolean;
  /** The frame says that the stream depends on itself. */
  readonly isSelfDependent: boolean;
};

/** Limits of lists that are read only once while they repeat. */
const KEPT_BYTES_MAX = 4_096;
const KEPT_FIELDS_MAX = 40;
const NO_FIELDS: readonly HeaderField[] = [];

/** Fields shared by the thread: a decoded list is read before the next one is decoded. */
const decoded: HeaderField[] = [];
/** Bytes beyond `BLOCK_BYTES_SPARE` of all blocks of the thread that have not come whole. */
let openBlocksBytes = 0;

/** Header blocks of one connection: put together from their frames, decoded, and read as heads of requests. */
export class HeaderBlocks {
  readonly #limits: HeaderListLimits;
  readonly #decoder = new HpackDecoder();
  #isTooLong = false;
  /** Bytes of the list that was decoded last. */
  #listBytes = 0;
  #open: BlockHead | null = null;
  #parts: Uint8Array[] = [];
  #bytes = 0;
  /** Bytes of `openBlocksBytes` that this connection has. */
  #sharedBytes = 0;
  #continuations = 0;
  #lastFields: readonly HeaderField[] = NO_FIELDS;
  #lastHead: RequestHead | null = null;

  /** `bytesMax` limits a list, each field counting 32 in addition to its name and value. */
  constructor(bytesMax: number) {
    this.#limits = { bytesMax, fieldsMax: FIELDS_MAX };
  }

  /** The block that has not come whole, which nothing may interrupt. */
  get open(): BlockHead | null {
    return this.#open;
  }

  /** Fields of the block that was decoded last; valid until this or another connection decodes the next. */
  get fields(): readonly HeaderField[] {
    return decoded;
  }

  /** Whether the list was longer than allowed; then some of its fields are missing. */
  get isTooLong(): boolean {
    return this.#isTooLong;
  }

  /** Begins a block that goes on in CONTINUATION frames. Returns false where there is no space for it. */
  begin(head: BlockHead, part: Uint8Array): boolean {
    this.#open = head;
    this.#bytes = 0;
    this.#continuations = 0;
    // A list that takes several frames is hardly one that was seen before.
    this.forget();
    return this.#hold(part);
  }

  /** Drops caches that only save work. */
  forget(): void {
    this.#lastHead = null;
    this.#lastFields = NO_FIELDS;
    this.#decoder.forget();
  }

  /** Adds a part to the open block. Returns false for a block that is too long, or where there is no space for it. */
  goOn(part: Uint8Array): boolean {
    this.#continuations += 1;
    return this.#continuations <= CONTINUATIONS_MAX && this.#hold(part);
  }

  #hold(part: Uint8Array): boolean {
    this.#bytes += part.length;
    const sharedBytes = Math.max(0, this.#bytes - BLOCK_BYTES_SPARE);
    openBlocksBytes += sharedBytes - this.#sharedBytes;
    this.#sharedBytes = sharedBytes;
    if (this.#bytes > BLOCK_BYTES_MAX || openBlocksBytes > BLOCKS_BYTES_MAX) return false;
    // `slice` of a Buffer copies nothing.
    this.#parts.push(Uint8Array.prototype.slice.call(part));
    return true;
  }

  /** Takes the block that is whole now. */
  takeWhole(): Uint8Array {
    const block = Buffer.concat(this.#parts);
    this.drop();
    return block;
  }

  /** Gives up the block that has not come whole, if there is one. Idempotent. */
  drop(): void {
    openBlocksBytes -= this.#sharedBytes;
    this.#sharedBytes = 0;
    this.#open = null;
    this.#parts = [];
  }

  /** Hot. Decodes a block even if it is not used: the table is the connection's. Returns false for a broken block. */
  decode(block: Uint8Array): boolean {
    decoded.length = 0;
    const size = this.#decoder.decode(block, decoded, this.#limits);
    this.#listBytes = size;
    this.#isTooLong = size > this.#limits.bytesMax || decoded.length > FIELDS_MAX;
    return size >= 0;
  }

  /**
   * Hot. Makes the head of a request of the fields; null for a malformed one, or for a list that is too long. Fields that a
   * table holds, or that repeat, are the same objects as before and make the same head.
   */
  head(): RequestHead | null {
    const fields = decoded;
    const last = this.#lastFields;
    let i = fields.length === last.length ? 0 : -1;
    while (i >= 0 && i < last.length) i = fields[i] === last[i] ? i + 1 : -1;
    if (i >= 0 && this.#lastHead !== null) return this.#lastHead;
    const head = this.#isTooLong ? null : requestHeadOf(fields);
    const isKept =
      head !== null &&
      this.#decoder.isRepeatable &&
      this.#listBytes <= KEPT_BYTES_MAX &&
      fields.length <= KEPT_FIELDS_MAX;
    this.#lastHead = isKept ? head : null;
    this.#lastFields = isKept ? [...fields] : NO_FIELDS;
    return head;
  }
}
