const BLOCK_BYTES_MIN = 256;
const BLOCK_BYTES_MAX = 64 * 1024;
const NO_BYTES = new Uint8Array(0);

/**
 * Gathers bytes that come in pieces of any size. They are copied into blocks, so that no memory of a piece is kept. A
 * block is as long as all that was held before it, within bounds, or as long as its piece. `capacity` is never more
 * than twice what came since it was last empty, plus 256 bytes. Copies each byte once on its way in and at most once
 * on its way out.
 */
export class PieceGatherer {
  #blocks: Uint8Array[] = [];
  /** Bytes of the first block that were taken. */
  #taken = 0;
  /** Bytes of the last block that are filled. */
  #filled = 0;
  #length = 0;
  #capacity = 0;

  /** Bytes held. */
  get length(): number {
    return this.#length;
  }

  /** Bytes of memory that hold them. */
  get capacity(): number {
    return this.#capacity;
  }

  /** Appends a copy of the piece; its owner may reuse the memory on return. */
  append(piece: Uint8Array): void {
    let from = 0;
    const last = this.#blocks.at(-1);
    if (last !== undefined) {
      from = Math.min(piece.length, last.length - this.#filled);
      last.set(from === piece.length ? piece : piece.subarray(0, from), this.#filled);
      this.#filled += from;
    }
    const rest = piece.length - from;
    if (rest > 0) {
      const likely = Math.min(Math.max(this.#length, BLOCK_BYTES_MIN), BLOCK_BYTES_MAX);
      const block = Buffer.allocUnsafeSlow(Math.max(rest, likely));
      block.set(from === 0 ? piece : piece.subarray(from));
      this.#blocks.push(block);
      this.#filled = rest;
      this.#capacity += block.length;
    }
    this.#length += piece.length;
  }

  /** Moves all bytes to the beginning of `whole`; holds nothing afterwards. */
  moveTo(whole: Uint8Array): void {
    let at = 0;
    const last = this.#blocks.length - 1;
    for (const [i, block] of this.#blocks.entries()) {
      const part = block.subarray(i === 0 ? this.#taken : 0, i === last ? this.#filled : undefined);
      whole.set(part, at);
      at += part.length;
    }
    this.clear();
  }

  /** Takes the oldest contiguous bytes; empty where nothing is held. Copies nothing. */
  shift(): Uint8Array {
    const block = this.#blocks.shift();
    if (block === undefined) return NO_BYTES;
    const isLast = this.#blocks.length === 0;
    const bytes = block.subarray(this.#taken, isLast ? this.#filled : undefined);
    this.#taken = 0;
    this.#length -= bytes.length;
    this.#capacity -= block.length;
    return bytes;
  }

  /** Takes the oldest `count` bytes in one piece, which the caller owns. `count` is at most `length`. */
  consume(count: number): Uint8Array {
    if (count === this.#length && this.#blocks.length === 1) return this.shift();
    const whole = Buffer.allocUnsafeSlow(count);
    if (count === this.#length) {
      this.moveTo(whole);
      return whole;
    }
    let at = 0;
    while (at < count) {
      const block = this.#blocks[0] as Uint8Array;
      const isLast = this.#blocks.length === 1;
      const end = isLast ? this.#filled : block.length;
      const part = block.subarray(this.#taken, Math.min(end, this.#taken + count - at));
      whole.set(part, at);
      at += part.length;
      this.#taken += part.length;
      this.#length -= part.length;
      if (this.#taken < end) break;
      this.#taken = 0;
      this.#blocks.shift();
      this.#capacity -= block.length;
    }
    return whole;
  }

  clear(): void {
    this.#blocks = [];
    this.#taken = 0;
    this.#filled = 0;
    this.#length = 0;
    this.#capacity = 0;
  }
}
