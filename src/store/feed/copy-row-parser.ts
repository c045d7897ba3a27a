import { assert } from '../../shared/assert.ts';

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');
/** Signature, flags, length of the header extension. */
const HEADER_BYTES = SIGNATURE.length + 8;

/**
 * Cuts the binary COPY format (PostgreSQL documentation, COPY, "Binary Format") into rows. The
 * stream may be cut anywhere; a row that is within one chunk, as the server sends them, is not copied.
 * Cost: O(columns) a row, nothing allocated.
 */
export class CopyRowParser {
  readonly #columns: number;
  readonly #onRow: (bytes: Uint8Array, bounds: Int32Array) => void;
  readonly #bounds: Int32Array;
  #carry: Buffer = Buffer.alloc(0);
  #headerSeen = false;
  #ended = false;

  constructor(columns: number, onRow: (bytes: Uint8Array, bounds: Int32Array) => void) {
    this.#columns = columns;
    this.#onRow = onRow;
    this.#bounds = new Int32Array(2 * columns);
  }

  /** Whether the next bytes begin a row, or the trailer: none is begun, and the header was there. */
  get isAtRow(): boolean {
    return this.#headerSeen && this.#carry.length === 0;
  }

  /** Takes the next bytes and hands over every row that is complete with them. */
  feed(chunk: Buffer): void {
    const bytes = this.#carry.length === 0 ? chunk : Buffer.concat([this.#carry, chunk]);
    let at = 0;
    if (!this.#headerSeen) {
      at = this.#readHeader(bytes);
      if (at < 0) {
        this.#carry = Buffer.from(bytes);
        return;
      }
      this.#headerSeen = true;
    }
    while (at < bytes.length) {
      const next = this.#readRow(bytes, at);
      if (next < 0) break;
      at = next;
    }
    this.#carry = at === bytes.length ? EMPTY : Buffer.from(bytes.subarray(at));
  }

  /** Says that no more bytes come. Errors: an assertion when the stream was cut short. */
  finish(): void {
    assert(this.#ended && this.#carry.length === 0, 'COPY data ends with its trailer');
  }

  #readHeader(bytes: Buffer): number {
    if (bytes.length < HEADER_BYTES) return -1;
    assert(bytes.compare(SIGNATURE, 0, SIGNATURE.length, 0, SIGNATURE.length) === 0, 'COPY header');
    const end = HEADER_BYTES + bytes.readInt32BE(HEADER_BYTES - 4);
    return end > bytes.length ? -1 : end;
  }

  /** Position after the row at `at`, or -1 when it is not complete. Hot. */
  #readRow(bytes: Buffer, at: number): number {
    if (at + 2 > bytes.length) return -1;
    if (bytes[at] === 0xff && bytes[at + 1] === 0xff) {
      this.#ended = true;
      return at + 2;
    }
    assert(!this.#ended, 'rows come before the trailer');
    const bounds = this.#bounds;
    const next = readCopyRow(bytes, at, bytes.length, this.#columns, bounds, 0);
    if (next >= 0) this.#onRow(bytes, bounds);
    return next;
  }
}

/**
 * Finds the columns of the row at `at`, which is no trailer: writes start and end of each to
 * `bounds` from `to` on. Returns the position behind the row, or -1 if it is not complete before
 * `end`; the content of `bounds` is then void. Errors: an assertion for another number of columns.
 * O(columns). Hot.
 */
export function readCopyRow(
  bytes: Uint8Array,
  at: number,
  end: number,
  columns: number,
  bounds: Int32Array,
  to: number,
): number {
  if (at + 2 > end) return -1;
  const count = ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
  assert(count === columns, 'columns of a COPY row');
  let position = at + 2;
  for (let i = to; i < to + 2 * count; i += 2) {
    if (position + 4 > end) return -1;
    // Reads of typed arrays inside the bounds just checked; -1 means null.
    const size =
      ((bytes[position] as number) << 24) |
      ((bytes[position + 1] as number) << 16) |
      ((bytes[position + 2] as number) << 8) |
      (bytes[position + 3] as number);
    position += 4;
    if (size < 0) {
      bounds[i] = -1;
      bounds[i + 1] = -1;
      continue;
    }
    bounds[i] = position;
    position += size;
    if (position > end) return -1;
    bounds[i + 1] = position;
  }
  return position;
}

const EMPTY: Buffer = Buffer.alloc(0);
