/** Most bytes of a varint. */
export const VARINT_BYTES_MAX = 10;
/** Most nested groups: the library accepts 100 levels, and the message is one. */
const GROUPS_MAX = 99;

/** Wire types, the low three bits of a tag. */
export const VARINT = 0;
const FIXED_64 = 1;
export const LENGTH_DELIMITED = 2;
export const START_GROUP = 3;
export const END_GROUP = 4;
const FIXED_32 = 5;

/**
 * Hot. Reads the tokens of protobuf from bytes as the library reads them, never behind their end. A
 * caller may set `at` to the position up to which it has read.
 *
 * Failures are -1 or false. A varint that fails leaves `at` unchanged; other failures may move it.
 */
export class WireTokens {
  bytes: Uint8Array = new Uint8Array(0);
  at = 0;
  end = 0;

  /** Resets the reader to `start`, up to `end`. */
  open(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  /** The low 32 bits of a varint of at most `bytesMax` bytes. */
  varint(bytesMax = VARINT_BYTES_MAX): number {
    const { at } = this;
    const byte = at < this.end ? (this.bytes[at] as number) : 0xff;
    if (byte > 0x7f) return this.#longVarint(Math.min(this.end, at + bytesMax));
    this.at = at + 1;
    return byte;
  }

  #longVarint(end: number): number {
    let value = 0;
    let shift = 0;
    for (let { at } = this; at < end; shift += 7) {
      const byte = this.bytes[at++] as number;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte > 0x7f) continue;
      this.at = at;
      return value >>> 0;
    }
    return -1;
  }

  /** A tag of 32 bits that names a field and one of the six wire types. */
  tag(): number {
    const from = this.at;
    const tag = this.varint();
    if (tag < 8 || (tag & 7) > FIXED_32) return -1;
    const length = this.at - from;
    const isLegal = length < 5 || (length === 5 && (this.bytes[this.at - 1] as number) <= 0x0f);
    return isLegal ? tag : -1;
  }

  /**
   * Reads a length of at most `bytesMax` bytes. Returns the end of the value behind it; -1 if that
   * is behind `limit`.
   */
  valueEnd(limit: number, bytesMax = VARINT_BYTES_MAX): number {
    const length = this.varint(bytesMax);
    if (length < 0) return -1;
    const end = this.at + length;
    return end > limit ? -1 : end;
  }

  /**
   * Skips the value behind a tag, including whole groups. A varint may have any length. O(fields of
   * the group).
   */
  skip(tag: number, depth = 0): boolean {
    const wireType = tag & 7;
    if (wireType === VARINT) {
      while (this.at < this.end) if ((this.bytes[this.at++] as number) < 0x80) return true;
      return false;
    }
    if (wireType === START_GROUP) return depth < GROUPS_MAX && this.#skipGroup(tag, depth + 1);
    if (wireType === END_GROUP) return false;
    const size = wireType === FIXED_64 ? 8 : 4;
    const end = wireType === LENGTH_DELIMITED ? this.valueEnd(this.end) : this.at + size;
    if (end >= 0) this.at = end;
    return end >= 0 && end <= this.end;
  }

  #skipGroup(start: number, depth: number): boolean {
    for (;;) {
      const tag = this.tag();
      if (tag < 0) return false;
      if ((tag & 7) === END_GROUP) return tag >>> 3 === start >>> 3;
      if (!this.skip(tag, depth)) return false;
    }
  }
}
