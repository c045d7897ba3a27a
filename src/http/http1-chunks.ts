import { HEADER_BYTES_MAX } from './http-limits.ts';

const TAB = 9;
const LF = 10;
const CR = 13;
const SP = 32;
const COLON = 58;
const SEMICOLON = 59;
const DEL = 127;
/** 52 bits: every size is a number exactly. */
const SIZE_DIGITS_MAX = 13;

type Part =
  | 'size'
  | 'extension'
  | 'size-lf'
  | 'data'
  | 'data-cr'
  | 'data-lf'
  | 'line'
  | 'name'
  | 'value'
  | 'value-lf'
  | 'end-lf';

/**
 * Takes a chunked body apart (RFC 9112 §7.1): extensions and trailer fields are read and dropped, together
 * `HEADER_BYTES_MAX` of them. What is malformed is reported in `problem`, and never guessed at.
 */
export class Http1Chunks {
  #part: Part = 'size';
  #left = 0;
  #digits = 0;
  #droppedBytes = 0;
  /** Where `read` stopped: behind the body, once it is whole, else at the end of what there was. */
  end = 0;
  isWhole = false;
  problem = '';

  /**
   * Reads on from `from`. The bytes of the body among them are moved together to `from`, so that small chunks make one piece.
   * Returns their number. O(to - from), allocates nothing.
   */
  read(bytes: Buffer, from: number, to: number): number {
    let into = from;
    let at = from;
    while (at < to && !this.isWhole && this.problem === '') {
      if (this.#part === 'data') {
        const count = Math.min(this.#left, to - at);
        if (into !== at) bytes.copyWithin(into, at, at + count);
        into += count;
        at += count;
        this.#left -= count;
        if (this.#left === 0) this.#part = 'data-cr';
        continue;
      }
      this.#step(bytes[at] ?? 0);
      at += 1;
    }
    this.end = at;
    return into - from;
  }

  #step(byte: number): void {
    switch (this.#part) {
      case 'size':
        this.#size(byte);
        return;
      case 'extension':
        if (byte === CR) this.#part = 'size-lf';
        else this.#drop(byte);
        return;
      case 'size-lf':
        if (byte !== LF) this.problem = 'the size of a chunk does not end with CR LF';
        else this.#part = this.#left === 0 ? 'line' : 'data';
        this.#digits = 0;
        return;
      case 'data-cr':
      case 'data-lf':
        this.#dataEnd(byte);
        return;
      case 'end-lf':
        if (byte === LF) this.isWhole = true;
        else this.problem = 'a chunked body does not end with CR LF';
        return;
      default:
        this.#trailer(byte);
    }
  }

  #size(byte: number): void {
    const digit = hexDigit(byte);
    if (digit >= 0) {
      this.#digits += 1;
      if (this.#digits > SIZE_DIGITS_MAX) this.problem = 'the size of a chunk is too long';
      this.#left = this.#left * 16 + digit;
      return;
    }
    if (this.#digits === 0) this.problem = 'a chunk begins without its size';
    else if (byte === CR) this.#part = 'size-lf';
    else if (byte === SEMICOLON || byte === SP || byte === TAB) {
      this.#part = 'extension';
      this.#drop(byte);
    } else this.problem = 'the size of a chunk is no number';
  }

  #dataEnd(byte: number): void {
    if (byte !== (this.#part === 'data-cr' ? CR : LF)) {
      this.problem = 'a chunk is longer than its size';
    } else this.#part = this.#part === 'data-cr' ? 'data-lf' : 'size';
  }

  #trailer(byte: number): void {
    if (this.#part === 'value-lf') {
      if (byte === LF) this.#part = 'line';
      else this.problem = 'a trailer field does not end with CR LF';
    } else if (this.#part === 'line' && byte === CR) this.#part = 'end-lf';
    else if (this.#part === 'value' && byte === CR) this.#part = 'value-lf';
    else if (this.#part === 'value') this.#drop(byte);
    else if (byte === COLON && this.#part === 'name') this.#part = 'value';
    else if (byte > SP && byte < DEL && byte !== COLON) {
      this.#part = 'name';
      this.#drop(byte);
    } else this.problem = 'a trailer field is no name with a colon behind it';
  }

  #drop(byte: number): void {
    this.#droppedBytes += 1;
    if (this.#droppedBytes > HEADER_BYTES_MAX) {
      this.problem = 'there are too many chunk extensions or trailer fields';
    } else if ((byte < SP && byte !== TAB) || byte === DEL) {
      this.problem = 'a chunk extension or trailer field has a character that it may not have';
    }
  }
}

function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 0x20;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
