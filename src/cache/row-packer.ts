import type { RowBytes } from './tuple-row.ts';
import { ROW_BOUNDS, ROW_COLUMNS } from './tuple-row.ts';

/** Columns that every row has; those behind are null unless a tuple carries something. */
const PLAIN_COLUMNS = 6;
const SUBJECT_ID = 4;
/** The first byte of a row: bit c: column c is that of the row before; this bit: a byte of columns that are carried follows. */
const CARRIES = 0x80;
/** Bits of that byte: expiry (8 bytes), condition, parameters. */
const CARRIED_FIRST = 6;
const BYTES_FIRST = 1024;
/** Bytes before the content of a column at most: a length in groups of 7 bits. */
const LENGTH_BYTES_MAX = 5;

/**
 * Packs rows as a snapshot gives them: each column behind its length, but for those that are the same as in the row before.
 * In the order of keys a row takes little more than the id of its subject. O(bytes).
 */
export class RowPacker {
  #bytes = new Uint8Array(BYTES_FIRST);
  #size = 0;
  #rows = 0;
  /** Bounds of the columns of the row before, in `#bytes`. */
  readonly #starts = new Int32Array(PLAIN_COLUMNS);
  readonly #ends = new Int32Array(PLAIN_COLUMNS);

  /** Rows since the start, or since `clear`. */
  get rows(): number {
    return this.#rows;
  }

  /** Bytes that they take. */
  get size(): number {
    return this.#size;
  }

  /** The packed bytes; valid until the next call. */
  get packed(): Uint8Array {
    return this.#bytes.subarray(0, this.#size);
  }

  /** Forgets all rows; keeps its memory. */
  clear(): void {
    this.#size = 0;
    this.#rows = 0;
  }

  /** Adds one row, as in `SnapshotSink.row`. */
  add(bytes: Uint8Array, bounds: Int32Array): void {
    let capacity = 2;
    for (let i = 0; i < ROW_BOUNDS; i += 2) {
      capacity += LENGTH_BYTES_MAX + (bounds[i + 1] as number) - (bounds[i] as number);
    }
    this.#reserve(capacity);
    const first = this.#size++;
    let flags = 0;
    let carried = 0;
    for (let column = PLAIN_COLUMNS; column < ROW_COLUMNS; column++) {
      if ((bounds[column * 2] as number) >= 0) carried |= 1 << (column - CARRIED_FIRST);
    }
    if (carried !== 0) {
      flags |= CARRIES;
      this.#bytes[this.#size++] = carried;
    }
    for (let column = 0; column < PLAIN_COLUMNS; column++) {
      const start = bounds[column * 2] as number;
      const end = bounds[column * 2 + 1] as number;
      if (this.#isSame(column, bytes, start, end)) {
        flags |= 1 << column;
        continue;
      }
      this.#copy(bytes, start, end);
      this.#ends[column] = this.#size;
      this.#starts[column] = this.#size - (end - start);
    }
    for (let column = PLAIN_COLUMNS; column < ROW_COLUMNS; column++) {
      const start = bounds[column * 2] as number;
      if (start >= 0) this.#copy(bytes, start, bounds[column * 2 + 1] as number);
    }
    this.#bytes[first] = flags;
    this.#rows += 1;
  }

  #isSame(column: number, bytes: Uint8Array, start: number, end: number): boolean {
    if (this.#rows === 0 || column === SUBJECT_ID) return false;
    const known = this.#starts[column] as number;
    const length = end - start;
    if ((this.#ends[column] as number) - known !== length) return false;
    const own = this.#bytes;
    for (let i = 0; i < length; i++) if (own[known + i] !== bytes[start + i]) return false;
    return true;
  }

  #copy(bytes: Uint8Array, start: number, end: number): void {
    const own = this.#bytes;
    let at = this.#size;
    let length = end - start;
    while (length > 0x7f) {
      own[at++] = 0x80 | (length & 0x7f);
      length >>>= 7;
    }
    own[at++] = length;
    // Columns are short: a loop costs less than a view for `set`.
    for (let i = start; i < end; i++) own[at++] = bytes[i] as number;
    this.#size = at;
  }

  #reserve(capacity: number): void {
    const wanted = this.#size + capacity;
    if (wanted <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(wanted, this.#bytes.length * 2));
    grown.set(this.#bytes.subarray(0, this.#size));
    this.#bytes = grown;
  }
}

/**
 * Finds the columns of packed rows without moving them: nothing but bounds is written. `bounds` has a capacity of
 * ROW_BOUNDS numbers a row. O(rows). Errors: throws when the bytes are not those of so many rows.
 */
export function unpackRows(bytes: Uint8Array, rows: number, bounds: Int32Array): RowBytes {
  let position = 0;
  for (let at = 0; at < rows * ROW_BOUNDS; at += ROW_BOUNDS) {
    const flags = bytes[position++] as number;
    const carried = (flags & CARRIES) === 0 ? 0 : (bytes[position++] as number);
    for (let column = 0; column < ROW_COLUMNS; column++) {
      const to = at + column * 2;
      if (column < PLAIN_COLUMNS && (flags & (1 << column)) !== 0) {
        bounds[to] = bounds[to - ROW_BOUNDS] as number;
        bounds[to + 1] = bounds[to + 1 - ROW_BOUNDS] as number;
        continue;
      }
      if (column >= CARRIED_FIRST && (carried & (1 << (column - CARRIED_FIRST))) === 0) {
        bounds[to] = -1;
        bounds[to + 1] = -1;
        continue;
      }
      let length = 0;
      let byte = 0x80;
      for (let shift = 0; (byte & 0x80) !== 0; shift += 7) {
        byte = bytes[position++] as number;
        length |= (byte & 0x7f) << shift;
      }
      bounds[to] = position;
      position += length;
      bounds[to + 1] = position;
    }
  }
  if (position !== bytes.length) throw new Error('packed rows that do not end with their bytes');
  return { bytes, bounds, rows, expiryFormat: 'binary' };
}
