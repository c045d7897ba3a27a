import { ENVELOPE_BYTES } from './envelope.ts';

const NEWLINE = 0x0a;

/** Finds where units, such as messages or lines, end in a body that comes in chunks. */
export interface UnitEnds {
  /**
   * Returns the number of bytes of `chunk` up to the end of the last unit that ends in it; 0 if none does. For a unit
   * over the limit it is the whole chunk, so that the reader gets to see it.
   */
  endIn(chunk: Uint8Array): number;
}

/**
 * Finds messages in envelopes of gRPC, gRPC-Web and Connect: a byte of flags, a length of four bytes, and the
 * message.
 */
export class EnvelopeEnds implements UnitEnds {
  readonly #bytesMax: number;
  #headBytes = 0;
  #length = 0;
  /** Bytes of the message that are still to come. */
  #left = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  endIn(chunk: Uint8Array): number {
    let end = 0;
    let at = 0;
    while (at < chunk.length) {
      if (this.#headBytes < ENVELOPE_BYTES) {
        if (this.#headBytes > 0) this.#length = this.#length * 256 + (chunk[at] as number);
        this.#headBytes += 1;
        at += 1;
        if (this.#headBytes < ENVELOPE_BYTES) continue;
        this.#left = this.#length;
        if (this.#length > this.#bytesMax) return chunk.length;
      }
      const count = Math.min(this.#left, chunk.length - at);
      this.#left -= count;
      at += count;
      if (this.#left > 0) continue;
      end = at;
      this.#headBytes = 0;
      this.#length = 0;
    }
    return end;
  }
}

/** Finds lines, newline included. */
export class LineEnds implements UnitEnds {
  readonly #bytesMax: number;
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  endIn(chunk: Uint8Array): number {
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    this.#length = end === 0 ? this.#length + chunk.length : chunk.length - end;
    return this.#length > this.#bytesMax ? chunk.length : end;
  }
}
