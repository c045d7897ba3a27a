import { FRAME_BYTES_MAX, FRAME_HEAD_BYTES } from './protocol.ts';

/** Takes the frames of a connection one by one. */
export interface FrameSink {
  /**
   * Takes one frame. The payload is in `bytes` from `from` to `to`, until this returns. Returns false if no more frames are
   * wanted.
   */
  frame(
    type: number,
    flags: number,
    streamId: number,
    bytes: Uint8Array,
    from: number,
    to: number,
  ): boolean;
  /** Called for a frame that is longer than we allow; no more frames follow. */
  frameTooLong(): void;
}

/**
 * Cuts what a connection receives into frames (RFC 9113 section 4.1), wherever the pieces end. Copies only a frame
 * that comes in several pieces; holds at most one, of `FRAME_BYTES_MAX`. Each byte is copied once at most.
 */
export class FrameCutter {
  readonly #head = new Uint8Array(FRAME_HEAD_BYTES);
  #headFilled = 0;
  /** The payload of a frame that has come in part. */
  #held: Buffer | null = null;
  #filled = 0;

  /** Bytes of the memory reserved for a frame that has not come whole. */
  get heldCapacity(): number {
    return this.#held === null ? 0 : this.#held.length;
  }

  /** Bytes held of a frame that has not come whole. */
  get heldBytes(): number {
    return this.#headFilled + this.#filled;
  }

  /**
   * Hot. Passes to `sink` all frames that `chunk`, from `from` on, completes. Returns the position behind a frame after which
   * the sink wanted no more; else the chunk's length.
   */
  cut(chunk: Uint8Array, from: number, sink: FrameSink): number {
    let at = from;
    if (this.#headFilled > 0) {
      at = this.#goOn(chunk, at, sink);
      if (at < 0) return -at - 1;
    }
    while (at + FRAME_HEAD_BYTES <= chunk.length) {
      const length = lengthAt(chunk, at);
      if (length > FRAME_BYTES_MAX) {
        sink.frameTooLong();
        return chunk.length;
      }
      const begin = at + FRAME_HEAD_BYTES;
      const end = begin + length;
      if (end > chunk.length) break;
      if (!given(sink, chunk, at, chunk, begin, end)) return end;
      at = end;
    }
    if (at < chunk.length) this.#hold(chunk, at);
    return chunk.length;
  }

  #hold(chunk: Uint8Array, from: number): void {
    const count = Math.min(FRAME_HEAD_BYTES, chunk.length - from);
    this.#head.set(chunk.subarray(from, from + count));
    this.#headFilled = count;
    this.#filled = 0;
    this.#held = null;
    if (count < FRAME_HEAD_BYTES) return;
    this.#held = Buffer.allocUnsafeSlow(lengthAt(this.#head, 0));
    const rest = chunk.subarray(from + FRAME_HEAD_BYTES);
    this.#held.set(rest);
    this.#filled = rest.length;
  }

  /**
   * Completes the frame that is held. Returns the position in the chunk behind it; -1 minus that position where nothing more
   * is to be cut now.
   */
  #goOn(chunk: Uint8Array, from: number, sink: FrameSink): number {
    let at = from;
    while (this.#headFilled < FRAME_HEAD_BYTES) {
      if (at === chunk.length) return -1 - at;
      this.#head[this.#headFilled] = chunk[at] as number;
      this.#headFilled += 1;
      at += 1;
    }
    if (this.#held === null) {
      const length = lengthAt(this.#head, 0);
      if (length > FRAME_BYTES_MAX) {
        sink.frameTooLong();
        return -1 - chunk.length;
      }
      this.#held = Buffer.allocUnsafeSlow(length);
    }
    const held = this.#held;
    const count = Math.min(held.length - this.#filled, chunk.length - at);
    held.set(chunk.subarray(at, at + count), this.#filled);
    this.#filled += count;
    at += count;
    if (this.#filled < held.length) return -1 - at;
    this.#headFilled = 0;
    this.#held = null;
    this.#filled = 0;
    return given(sink, this.#head, 0, held, 0, held.length) ? at : -1 - at;
  }
}

function lengthAt(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number)
  );
}

function given(
  sink: FrameSink,
  head: Uint8Array,
  at: number,
  bytes: Uint8Array,
  from: number,
  to: number,
): boolean {
  const streamId = uint32At(head, at + 5) & 0x7fff_ffff;
  return sink.frame(head[at + 3] as number, head[at + 4] as number, streamId, bytes, from, to);
}

/** Reads four bytes as an unsigned number. */
export function uint32At(bytes: Uint8Array, at: number): number {
  return (
    (((bytes[at] as number) << 24) |
      ((bytes[at + 1] as number) << 16) |
      ((bytes[at + 2] as number) << 8) |
      (bytes[at + 3] as number)) >>>
    0
  );
}
