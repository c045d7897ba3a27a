import { BLOCK_BYTES_MAX, CONTINUATIONS_MAX, FIELDS_MAX } from './connection-options.ts';
import type { HeaderField } from './header-field.ts';
import { type HeaderListLimits, HpackDecoder } from './hpack-decoder.ts';
import { type RequestHead, requestHeadOf } from './request-head.ts';

/** What a HEADERS frame says of its block. */
export type BlockHead = {
  readonly id: number;
  /** Nothing of the request follows. */
  readonly isLast: boolean;
  /** The stream is said to depend on itself. */
  readonly isSelfDependent: boolean;
};

/** Lists up to this are looked at only once while they repeat. */
const KEPT_BYTES_MAX = 4_096;

/** Header blocks of one connection: put together from their frames, decoded, and read as heads of requests. */
export class HeaderBlocks {
  readonly #limits: HeaderListLimits;
  readonly #decoder = new HpackDecoder();
  readonly #fields: HeaderField[] = [];
  #isTooLong = false;
  #open: BlockHead | null = null;
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #continuations = 0;
  #lastFields: HeaderField[] = [];
  #lastHead: RequestHead | null = null;

  /** `bytesMax` is of a list, each field counting 32 beside its name and value. */
  constructor(bytesMax: number) {
    this.#limits = { bytesMax, fieldsMax: FIELDS_MAX };
  }

  /** The block that has not come whole, which nothing may interrupt. */
  get open(): BlockHead | null {
    return this.#open;
  }

  /** Of the block that was decoded last. */
  get fields(): readonly HeaderField[] {
    return this.#fields;
  }

  /** Whether its list was longer than allowed; then some of its fields are missing. */
  get isTooLong(): boolean {
    return this.#isTooLong;
  }

  /** A block begins that goes on in CONTINUATION frames. */
  begin(head: BlockHead, part: Uint8Array): void {
    this.#open = head;
    this.#parts = [part.slice()];
    this.#bytes = part.length;
    this.#continuations = 0;
  }

  /** False for more of a block than anybody needs. */
  goOn(part: Uint8Array): boolean {
    this.#continuations += 1;
    this.#bytes += part.length;
    if (this.#continuations > CONTINUATIONS_MAX || this.#bytes > BLOCK_BYTES_MAX) return false;
    this.#parts.push(part.slice());
    return true;
  }

  /** Takes the block that is whole now. */
  takeWhole(): Uint8Array {
    const block = Buffer.concat(this.#parts);
    this.#open = null;
    this.#parts = [];
    return block;
  }

  /** Hot. Decodes a block, whatever becomes of it: the table is the connection's. False for one that is broken. */
  decode(block: Uint8Array): boolean {
    this.#fields.length = 0;
    const size = this.#decoder.decode(block, this.#fields, this.#limits);
    this.#isTooLong = size > this.#limits.bytesMax || this.#fields.length > FIELDS_MAX;
    return size >= 0;
  }

  /**
   * Hot. The head of a request that the fields make, null for a malformed one. The same fields as before, which those that a table
   * holds or that repeat are, make the same head.
   */
  head(): RequestHead | null {
    const fields = this.#fields;
    const last = this.#lastFields;
    let i = fields.length === last.length ? 0 : -1;
    while (i >= 0 && i < last.length) i = fields[i] === last[i] ? i + 1 : -1;
    if (i >= 0 && this.#lastHead !== null) return this.#lastHead;
    const head = this.#isTooLong ? null : requestHeadOf(fields);
    let bytes = 0;
    for (const { size } of fields) bytes += size;
    const isKept = head !== null && bytes <= KEPT_BYTES_MAX;
    this.#lastHead = isKept ? head : null;
    this.#lastFields = isKept ? [...fields] : [];
    return head;
  }
}
