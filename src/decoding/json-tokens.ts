import { JSON_BYTES } from '../shared/text/json-bytes.ts';

const {
  QUOTE,
  BACKSLASH,
  COMMA,
  COLON,
  OPENING_BRACE,
  CLOSING_BRACE,
  OPENING_BRACKET,
  CLOSING_BRACKET,
  SPACE,
} = JSON_BYTES;
const NO_BYTES = new Uint8Array(0);

/** 1 for letters, digits, signs and the point. */
const WORD_BYTE = new Uint8Array(256);
WORD_BYTE.fill(1, 0x2b, 0x7b);
for (const byte of [COMMA, COLON, OPENING_BRACKET, CLOSING_BRACKET]) WORD_BYTE[byte] = 0;

/**
 * Stop table for `plain`: 1 for bytes that end the plain part of a string. These are quote,
 * backslash, and all bytes but printable ASCII.
 */
export const ASCII_STOPS = new Uint8Array(256).fill(1);
ASCII_STOPS.fill(0, SPACE, 0x7f);
ASCII_STOPS[QUOTE] = 1;
ASCII_STOPS[BACKSLASH] = 1;

/** More bytes than any body has. V8 counts faster with this small integer than with Infinity. */
const ANY_BYTES = 2 ** 30 - 1;

/** Returned in place of a byte at the end of the bytes. */
export const JSON_END = -1;

/**
 * A cursor over the tokens of JSON (RFC 8259 section 2), for visitors that know what they expect
 * next. Never reads behind `end` and allocates nothing. Leaves the grammar of numbers and the
 * contents of strings to its visitor. Hot.
 */
export class JsonTokens {
  bytes: Uint8Array = NO_BYTES;
  at = 0;
  end = 0;
  /** Bounds of the string that was read last, without its quotes. */
  from = 0;
  to = 0;
  /** True if that string has escapes; valid only after `string` and `name`. */
  isEscaped = false;

  /** Resets the cursor to `start`. */
  open(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  /** Skips the byte order mark that a text may begin with: U+FEFF. */
  skipMark(): void {
    const { bytes, at } = this;
    if (bytes[at] === 0xef && bytes[at + 1] === 0xbb && bytes[at + 2] === 0xbf) this.at = at + 3;
  }

  /** Skips white space up to `end`. True if another byte follows before `end`. */
  skipSpace(end: number): boolean {
    const { bytes } = this;
    let { at } = this;
    while (at < end) {
      const byte = bytes[at] as number;
      if (byte > SPACE) break;
      if (byte !== SPACE && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
      at += 1;
    }
    this.at = at;
    return at < end;
  }

  /** The next byte that is not white space, without consuming it; JSON_END at the end. */
  peek(): number {
    const { bytes, at, end } = this;
    if (at < end) {
      const byte = bytes[at] as number;
      if (byte > SPACE) return byte;
    }
    return this.skipSpace(end) ? (bytes[this.at] as number) : JSON_END;
  }

  /** Consumes the byte that `peek` returns. */
  next(): number {
    const byte = this.peek();
    this.at += 1;
    return byte;
  }

  /**
   * Reads a string, and white space before it, that has no byte of `stops` before its closing
   * quote. False: there is no such string.
   */
  plain(stops: Uint8Array): boolean {
    if (this.peek() !== QUOTE) return false;
    const { bytes, end } = this;
    const from = this.at + 1;
    let to = from;
    while (to < end && stops[bytes[to] as number] === 0) to += 1;
    if (to >= end || bytes[to] !== QUOTE) return false;
    this.from = from;
    this.to = to;
    this.at = to + 1;
    return true;
  }

  /**
   * Reads a string with any contents of at most `bytesMax` bytes. False: there is no such string,
   * and `to` is where the scan ended.
   */
  string(bytesMax = ANY_BYTES): boolean {
    const { bytes, end } = this;
    const from = this.at + 1;
    const last = Math.min(end, from + bytesMax + 1);
    this.isEscaped = false;
    this.from = from;
    let to = from;
    if (from > end || bytes[from - 1] !== QUOTE) to = end;
    for (; to < last; to++) {
      const byte = bytes[to];
      if (byte === QUOTE) break;
      if (byte !== BACKSLASH) continue;
      this.isEscaped = true;
      to += 1;
    }
    this.to = to;
    this.at = to + 1;
    return to < last;
  }

  /**
   * Reads the name of a member, of at most `bytesMax` bytes, and its colon. False: there is no such
   * name.
   */
  name(bytesMax: number): boolean {
    return this.peek() === QUOTE && this.string(bytesMax) && this.colon();
  }

  /** Reads a colon, and white space before it. */
  colon(): boolean {
    return this.next() === COLON;
  }

  /**
   * The text of the string that was read last from `bytes`, with escapes resolved. undefined: not
   * JSON. O(length).
   */
  text(bytes: Buffer): string | undefined {
    const { from, to } = this;
    if (!this.isEscaped) return bytes.toString('utf8', from, to);
    try {
      return JSON.parse(bytes.toString('utf8', from - 1, to + 1)) as string;
    } catch {
      return undefined;
    }
  }

  /**
   * Reads a word, such as a number or `null`. False: there is none, or it has more than `bytesMax`
   * bytes.
   */
  word(bytesMax: number): boolean {
    const { bytes } = this;
    const from = this.at;
    const last = Math.min(this.end, from + bytesMax);
    let at = from;
    while (at < last && WORD_BYTE[bytes[at] as number] === 1) at += 1;
    this.at = at;
    return at > from && (at === this.end || WORD_BYTE[bytes[at] as number] === 0);
  }

  /**
   * Skips a value by its brackets and strings alone. False: the value is not terminated. O(bytes).
   */
  skip(): boolean {
    const { bytes, end } = this;
    let depth = 0;
    while (this.at < end) {
      const byte = bytes[this.at] as number;
      if (byte === QUOTE) {
        if (!this.string()) return false;
        if (depth === 0) return true;
        continue;
      }
      if (byte === OPENING_BRACE || byte === OPENING_BRACKET) depth += 1;
      else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) {
        if (depth === 0) return true;
        depth -= 1;
        if (depth === 0) {
          this.at += 1;
          return true;
        }
      } else if (depth === 0 && byte === COMMA) return true;
      this.at += 1;
    }
    return false;
  }
}
