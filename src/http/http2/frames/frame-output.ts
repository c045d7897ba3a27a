import {
  CONTINUATION,
  END_HEADERS,
  FRAME_BYTES_MAX,
  FRAME_HEAD_BYTES,
  HEADERS,
} from './protocol.ts';

/** Bytes up to which a payload is copied; a longer one is sent from its own memory. */
const COPIED_BYTES_MAX = 2_048;
const CAPACITY_BYTES_MIN = 1_024;
const CAPACITY_BYTES_MAX = 65_536;
const NONE: readonly Uint8Array[] = [];

/** Gathers the frames that a connection sends, so that those of one turn leave as one write. */
export class FrameOutput {
  /** Null while empty: an array that is kept grows old, and keeps its chunks until the next full collection. */
  #chunks: Uint8Array[] | null = null;
  #bytes = 0;
  #buffer: Buffer | null = null;
  /** Range of the buffer that is not among the chunks yet. */
  #from = 0;
  #to = 0;
  #space = CAPACITY_BYTES_MIN;

  /** Bytes gathered. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Hot. Appends a frame. A payload beyond 2 KiB must not change afterwards. */
  frame(type: number, flags: number, streamId: number, payload: Uint8Array): void {
    const { length } = payload;
    const isCopied = length <= COPIED_BYTES_MAX;
    const buffer = this.#reserve(FRAME_HEAD_BYTES + (isCopied ? length : 0));
    let to = putHead(buffer, this.#to, length, type, flags, streamId);
    if (isCopied) {
      for (let i = 0; i < length; i++) buffer[to + i] = payload[i] as number;
      to += length;
    }
    this.#to = to;
    this.#bytes += FRAME_HEAD_BYTES + length;
    if (isCopied) return;
    this.#cutBuffer();
    this.#append(payload);
  }

  /** Appends a frame whose payload is one number of four bytes. */
  numberFrame(type: number, streamId: number, value: number): void {
    const buffer = this.#reserve(FRAME_HEAD_BYTES + 4);
    const to = putHead(buffer, this.#to, 4, type, 0, streamId);
    this.#to = buffer.writeUInt32BE(value, to);
    this.#bytes += FRAME_HEAD_BYTES + 4;
  }

  /** Hot. Appends a header block in as many frames as it takes. The block may change afterwards. */
  block(flags: number, streamId: number, block: Uint8Array): void {
    if (block.length <= COPIED_BYTES_MAX) {
      this.frame(HEADERS, flags | END_HEADERS, streamId, block);
      return;
    }
    // `slice` of a Buffer copies nothing.
    const kept: Uint8Array = Uint8Array.prototype.slice.call(block);
    for (let from = 0; from < kept.length; from += FRAME_BYTES_MAX) {
      const part = kept.subarray(from, from + FRAME_BYTES_MAX);
      const isLast = from + FRAME_BYTES_MAX >= kept.length;
      const own = from === 0 ? flags : 0;
      this.frame(
        from === 0 ? HEADERS : CONTINUATION,
        own | (isLast ? END_HEADERS : 0),
        streamId,
        part,
      );
    }
  }

  /** Removes and returns what was gathered, in order. */
  drain(): readonly Uint8Array[] {
    this.#cutBuffer();
    const chunks = this.#chunks ?? NONE;
    this.#chunks = null;
    // The next turn is likely to need as much space as this one did.
    const copied = this.#to;
    if (copied > this.#space) this.#space = Math.min(CAPACITY_BYTES_MAX, this.#space * 2);
    else if (copied < this.#space / 4) this.#space = Math.max(CAPACITY_BYTES_MIN, this.#space / 2);
    this.#buffer = null;
    this.#from = 0;
    this.#to = 0;
    this.#bytes = 0;
    return chunks;
  }

  #reserve(count: number): Buffer {
    let buffer = this.#buffer;
    if (buffer !== null && this.#to + count <= buffer.length) return buffer;
    this.#cutBuffer();
    if (buffer !== null) this.#space = Math.min(CAPACITY_BYTES_MAX, this.#space * 2);
    buffer = Buffer.allocUnsafe(Math.max(this.#space, count));
    this.#buffer = buffer;
    this.#from = 0;
    this.#to = 0;
    return buffer;
  }

  #cutBuffer(): void {
    const buffer = this.#buffer;
    if (buffer === null || this.#to === this.#from) return;
    this.#append(buffer.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }

  #append(chunk: Uint8Array): void {
    if (this.#chunks === null) this.#chunks = [chunk];
    else this.#chunks.push(chunk);
  }
}

/** Writes the head of a frame. Returns where the payload begins. */
function putHead(
  buffer: Uint8Array,
  at: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): number {
  buffer[at] = length >>> 16;
  buffer[at + 1] = length >>> 8;
  buffer[at + 2] = length;
  buffer[at + 3] = type;
  buffer[at + 4] = flags;
  buffer[at + 5] = streamId >>> 24;
  buffer[at + 6] = streamId >>> 16;
  buffer[at + 7] = streamId >>> 8;
  buffer[at + 8] = streamId;
  return at + FRAME_HEAD_BYTES;
}
