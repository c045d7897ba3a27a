import type { RequestFifo } from './shard-queue.ts';

/** Bytes that a line may send in its turn: some 180 Checks, or a part of the credit for a large batch. */
const TURN_BYTES = 64 * 1024;

/**
 * Lines that take turns by bytes: deficit round robin (Shreedhar and Varghese 1995). A line whose first request is
 * larger than its credit goes to the end with more of it. O(1) a turn.
 */
export class FairRound {
  #fifos: RequestFifo[] = [];
  #head = 0;

  /** The line whose turn it is. */
  get first(): RequestFifo | undefined {
    return this.#fifos[this.#head];
  }

  /** Lets a line in, unless it is. */
  enter(fifo: RequestFifo): void {
    if (fifo.isInRound) return;
    fifo.isInRound = true;
    fifo.credit = TURN_BYTES;
    this.#fifos.push(fifo);
  }

  /** The first one has nothing to send any more. */
  leave(): void {
    const fifo = this.first;
    if (fifo === undefined) return;
    fifo.isInRound = false;
    this.#next();
  }

  /** The turn of the first one ends, which wants to send `bytes`. The only one need not come round again. */
  turn(bytes: number): void {
    const fifo = this.first;
    if (fifo === undefined) return;
    if (this.#fifos.length - this.#head === 1) {
      fifo.credit = Math.max(bytes, TURN_BYTES);
      return;
    }
    fifo.credit += TURN_BYTES;
    this.#next();
    this.#fifos.push(fifo);
  }

  fifos(): readonly RequestFifo[] {
    return this.#fifos.slice(this.#head);
  }

  #next(): void {
    this.#head += 1;
    if (this.#head === this.#fifos.length) {
      this.#fifos = [];
      this.#head = 0;
    } else if (this.#head > 4_096) {
      this.#fifos = this.#fifos.slice(this.#head);
      this.#head = 0;
    }
  }
}
