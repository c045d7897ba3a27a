import type { ShardLine } from './shard-queue.ts';

/** Bytes that a line may send in its turn: some 180 Checks, or a part of the credit for a large batch. */
const TURN_BYTES = 64 * 1024;

/**
 * Lines that take turns by bytes: deficit round robin (Shreedhar and Varghese 1995). A line whose first request is
 * larger than its credit goes to the end with more of it. O(1) a turn.
 */
export class FairRound {
  #lines: ShardLine[] = [];
  #head = 0;

  /** The line whose turn it is. */
  get first(): ShardLine | undefined {
    return this.#lines[this.#head];
  }

  /** Lets a line in, unless it is. */
  enter(line: ShardLine): void {
    if (line.isInRound) return;
    line.isInRound = true;
    line.credit = TURN_BYTES;
    this.#lines.push(line);
  }

  /** The first one has nothing to send any more. */
  leave(): void {
    const line = this.first;
    if (line === undefined) return;
    line.isInRound = false;
    this.#next();
  }

  /** The turn of the first one ends, which wants to send `bytes`. The only one need not come round again. */
  turn(bytes: number): void {
    const line = this.first;
    if (line === undefined) return;
    if (this.#lines.length - this.#head === 1) {
      line.credit = Math.max(bytes, TURN_BYTES);
      return;
    }
    line.credit += TURN_BYTES;
    this.#next();
    this.#lines.push(line);
  }

  lines(): readonly ShardLine[] {
    return this.#lines.slice(this.#head);
  }

  #next(): void {
    this.#head += 1;
    if (this.#head === this.#lines.length) {
      this.#lines = [];
      this.#head = 0;
    } else if (this.#head > 4_096) {
      this.#lines = this.#lines.slice(this.#head);
      this.#head = 0;
    }
  }
}
