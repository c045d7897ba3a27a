import { DynamicTable, TABLE_BYTES_MAX } from './dynamic-table.ts';
import { HeaderField } from './header-field.ts';
import { huffmanDecode, huffmanCapacity } from './huffman.ts';
import { STATIC_TABLE } from './static-table.ts';

/** Limits on the fields that a decoder returns for one block; the rest is read and left out. */
export type HeaderListLimits = {
  /** Bytes; each field counts 32 in addition to its name and value. */
  readonly bytesMax: number;
  readonly fieldsMax: number;
};

/** Size updates at the beginning of a block: to the smallest size in between, and to the last one. */
const RESIZES_MAX = 2;
/** Limit of an integer of a block; its bytes are bounded by those of the block. */
const INTEGER_MAX = 2 ** 24;
/** Bytes up to which a value is remembered that a connection repeats without having it indexed. */
const REMEMBERED_VALUE_BYTES_MAX = 256;
/** Bytes of all remembered values, each with the overhead of its objects. */
const REMEMBERED_BYTES_MAX = 4_096;
const REMEMBERED_OVERHEAD_BYTES = 320;

const STATIC: readonly HeaderField[] = STATIC_TABLE.map(
  ([name, value]) => new HeaderField(name, value),
);
const STATIC_COUNT = STATIC.length;

/** A value as it was encoded, and its field. */
type Remembered = { readonly raw: Uint8Array; readonly field: HeaderField };

const NO_BYTES = new Uint8Array();
/** Shared by connections that remember none; nothing is added to it. */
const NONE_REMEMBERED: Remembered[] = [];

/** Memory shared by the thread: a block is decoded without a pause. */
let scratch = Buffer.allocUnsafeSlow(4_096);

/**
 * Decodes the header blocks of one connection (RFC 7541): static and dynamic table, Huffman code. Fields that a table holds
 * are returned as they are, without allocation. A broken block leaves a decoder that is of no further use. Between blocks it
 * keeps what the table holds and `REMEMBERED_BYTES_MAX`, and nothing of what was evicted or read.
 */
export class HpackDecoder {
  readonly #table = new DynamicTable();
  #remembered: (Remembered | undefined)[] = NONE_REMEMBERED;
  #rememberedBytes = 0;
  #bytes: Uint8Array = NO_BYTES;
  #at = 0;
  #end = 0;
  #isBroken = false;
  #isRepeatable = false;

  /** Bytes of the dynamic table as RFC 7541 counts them. */
  get tableBytes(): number {
    return this.#table.size;
  }

  /**
   * Hot. Appends the fields of a block to `into`. Returns the size of the list, -1 for a broken block, which ends its
   * connection. For a list that is too long `into` has one field more than `limits` allow. O(bytes).
   */
  decode(block: Uint8Array, into: HeaderField[], limits: HeaderListLimits): number {
    this.#bytes = block;
    this.#at = 0;
    this.#end = block.length;
    const size = this.#decoded(block, into, limits);
    // The block shares the memory of all that was read with it.
    this.#bytes = NO_BYTES;
    return size;
  }

  /** Whether the same block would return the same objects again; fields that are not held anywhere are new each time. */
  get isRepeatable(): boolean {
    return this.#isRepeatable;
  }

  /** Drops caches that only save work. */
  forget(): void {
    this.#table.forget();
    this.#forgetValues();
  }

  #forgetValues(): void {
    this.#remembered = NONE_REMEMBERED;
    this.#rememberedBytes = 0;
  }

  #decoded(block: Uint8Array, into: HeaderField[], limits: HeaderListLimits): number {
    let resizes = 0;
    let bytes = 0;
    let isBegun = false;
    this.#isRepeatable = true;
    while (this.#at < this.#end) {
      const first = block[this.#at] as number;
      if ((first & 0xe0) === 0x20) {
        resizes += 1;
        if (isBegun || resizes > RESIZES_MAX || !this.#resize()) return -1;
        continue;
      }
      isBegun = true;
      const field = first >= 0x80 ? this.#indexed() : this.#literal(first);
      if (field === null || this.#isBroken) return -1;
      if (bytes > limits.bytesMax || into.length > limits.fieldsMax) continue;
      bytes += field.size;
      into.push(field);
    }
    return bytes;
  }

  #indexed(): HeaderField | null {
    return this.#fieldAt(this.#integer(7));
  }

  #literal(first: number): HeaderField | null {
    const isIndexed = first >= 0x40;
    const index = this.#integer(isIndexed ? 6 : 4);
    if (this.#isBroken) return null;
    let name: string;
    if (index === 0) name = this.#string();
    else {
      const named = this.#nameAt(index);
      if (named === null) return null;
      if (!isIndexed && index <= STATIC_COUNT) return this.#repeated(index, named);
      name = named;
    }
    const value = this.#string();
    if (this.#isBroken) return null;
    this.#isRepeatable = false;
    if (isIndexed) this.#table.add(name, value);
    return new HeaderField(name, value);
  }

  /** Decodes a value, such as a path: the same bytes as before are the same field. */
  #repeated(index: number, name: string): HeaderField | null {
    const from = this.#at;
    const before = this.#remembered[index];
    if (before !== undefined && this.#isAhead(before.raw)) {
      this.#at += before.raw.length;
      return before.field;
    }
    const value = this.#string();
    if (this.#isBroken) return null;
    const field = new HeaderField(name, value);
    if (this.#at - from <= REMEMBERED_VALUE_BYTES_MAX) this.#remember(index, from, field);
    else this.#isRepeatable = false;
    return field;
  }

  #remember(index: number, from: number, field: HeaderField): void {
    const before = this.#remembered[index];
    if (before !== undefined) this.#rememberedBytes -= bytesOf(before);
    const remembered = { raw: copyOf(this.#bytes, from, this.#at), field };
    this.#rememberedBytes += bytesOf(remembered);
    if (this.#rememberedBytes > REMEMBERED_BYTES_MAX) {
      this.#forgetValues();
      this.#rememberedBytes = bytesOf(remembered);
    }
    if (this.#remembered === NONE_REMEMBERED) this.#remembered = [];
    this.#remembered[index] = remembered;
  }

  #isAhead(raw: Uint8Array): boolean {
    const bytes = this.#bytes;
    const at = this.#at;
    if (at + raw.length > this.#end) return false;
    for (let i = 0; i < raw.length; i++) if (bytes[at + i] !== raw[i]) return false;
    return true;
  }

  #fieldAt(index: number): HeaderField | null {
    if (index === 0) return null;
    if (index <= STATIC_COUNT) return STATIC[index - 1] as HeaderField;
    return this.#table.field(index - STATIC_COUNT - 1);
  }

  #nameAt(index: number): string | null {
    if (index <= STATIC_COUNT) return this.#fieldAt(index)?.name ?? null;
    return this.#table.name(index - STATIC_COUNT - 1);
  }

  #resize(): boolean {
    const size = this.#integer(5);
    if (this.#isBroken || size > TABLE_BYTES_MAX) return false;
    this.#table.resize(size);
    return true;
  }

  /** Reads an integer that has `bits` bits of its first byte. */
  #integer(bits: number): number {
    const most = (1 << bits) - 1;
    let value = (this.#bytes[this.#at] as number) & most;
    this.#at += 1;
    if (value < most) return value;
    for (let shift = 1; ; shift *= 128) {
      if (this.#at >= this.#end) return this.#broken();
      const byte = this.#bytes[this.#at] as number;
      this.#at += 1;
      value += (byte & 0x7f) * shift;
      if (value > INTEGER_MAX || shift > INTEGER_MAX) return this.#broken();
      if (byte < 0x80) return value;
    }
  }

  #broken(): number {
    this.#isBroken = true;
    return 0;
  }

  /** Reads a string, with a character for each byte. */
  #string(): string {
    if (this.#isBroken || this.#at >= this.#end) {
      this.#isBroken = true;
      return '';
    }
    const isCoded = (this.#bytes[this.#at] as number) >= 0x80;
    const length = this.#integer(7);
    const from = this.#at;
    const to = from + length;
    if (this.#isBroken || to > this.#end) {
      this.#isBroken = true;
      return '';
    }
    this.#at = to;
    const { buffer, byteOffset } = this.#bytes;
    if (!isCoded) return Buffer.from(buffer, byteOffset + from, length).toString('latin1');
    const space = huffmanCapacity(length);
    if (scratch.length < space) scratch = Buffer.allocUnsafeSlow(space * 2);
    const count = huffmanDecode(this.#bytes, from, to, scratch);
    if (count < 0) {
      this.#isBroken = true;
      return '';
    }
    return scratch.toString('latin1', 0, count);
  }
}

function bytesOf({ raw, field }: Remembered): number {
  return raw.length + field.value.length + REMEMBERED_OVERHEAD_BYTES;
}

/** Copies a range of bytes; `slice` of a Buffer copies nothing. */
function copyOf(bytes: Uint8Array, from: number, to: number): Uint8Array {
  const copy = new Uint8Array(to - from);
  for (let i = from; i < to; i++) copy[i - from] = bytes[i] as number;
  return copy;
}
