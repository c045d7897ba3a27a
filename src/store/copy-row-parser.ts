import { assert } from '../shared/assert.ts';

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');
/** Signature, flags, length of the header extension. */
const HEADER_BYTES = SIGNATURE.length + 8;

/**
 * Cuts the binary COPY format (PostgreSQL documentation, COPY, "Binary Format") into rows. The
 * stream may be cut anywhere; a row that lies in one chunk, as the server sends them, is not copied.
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

  /** Takes the next bytes and hands over every row that is complete with them. */
  push(chunk: Buffer): void {
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
  end(): void {
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
    const length = bytes.length;
    if (at + 2 > length) return -1;
    const count = ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
    if (count === 0xffff) {
      this.#ended = true;
      return at + 2;
    }
    assert(!this.#ended && count === this.#columns, 'columns of a COPY row');
    const bounds = this.#bounds;
    let position = at + 2;
    for (let i = 0; i < count; i++) {
      if (position + 4 > length) return -1;
      // Reads of typed arrays inside the bounds just checked; -1 means null.
      const size =
        ((bytes[position] as number) << 24) |
        ((bytes[position + 1] as number) << 16) |
        ((bytes[position + 2] as number) << 8) |
        (bytes[position + 3] as number);
      position += 4;
      if (size < 0) {
        bounds[2 * i] = -1;
        bounds[2 * i + 1] = -1;
        continue;
      }
      bounds[2 * i] = position;
      position += size;
      if (position > length) return -1;
      bounds[2 * i + 1] = position;
    }
    this.#onRow(bytes, bounds);
    return position;
  }
}

const EMPTY: Buffer = Buffer.alloc(0);
