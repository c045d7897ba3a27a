import { ENVELOPE_BYTES } from './envelope.ts';

const NEWLINE = 0x0a;

/** Finds in a body that comes in chunks where its units end: messages, lines. */
export interface UnitEnds {
  /**
   * Bytes of `chunk`, from its start, behind which the last unit ends that ends in it; 0: none. Of a unit that is longer than
   * may be it is all of the chunk, so that its reader learns of it.
   */
  endIn(chunk: Uint8Array): number;
}

/** Messages in envelopes of gRPC, gRPC-Web and Connect: flags, a length of four bytes, and so many more. */
export class EnvelopeEnds implements UnitEnds {
  readonly #bytesMax: number;
  #headBytes = 0;
  #length = 0;
  /** Of the message: what is still to come. */
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

/** Lines, their newline included. */
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
