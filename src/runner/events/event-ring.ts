import type { FrameBatch } from './event-frames.ts';

/** How many evicted places are kept at the front before the array is cut. */
const SLACK = 1_024;

/** The newest frames, for subscribers that come back. Bounded by count and by bytes. */
export class EventRing {
  readonly #framesMax: number;
  readonly #bytesMax: number;
  #batches: FrameBatch[] = [];
  #head = 0;
  #frames = 0;
  #bytes = 0;

  constructor(framesMax: number, bytesMax: number) {
    this.#framesMax = framesMax;
    this.#bytesMax = bytesMax;
  }

  /**
   * Adds a batch; its first sequence follows the last one here. Whole batches leave at the other end
   * as long as `framesMax` frames remain, and sooner when the bytes demand it. O(1) amortized.
   */
  add(batch: FrameBatch): void {
    this.#batches.push(batch);
    this.#frames += batch.count;
    this.#bytes += batch.estimatedBytes;
    for (;;) {
      const oldest = this.#batches[this.#head];
      if (oldest === undefined || oldest === batch) break;
      const isSpare = this.#frames - oldest.count >= this.#framesMax;
      if (!isSpare && this.#bytes <= this.#bytesMax) break;
      this.#head += 1;
      this.#frames -= oldest.count;
      this.#bytes -= oldest.estimatedBytes;
    }
    if (this.#head > SLACK && this.#head * 2 > this.#batches.length) {
      this.#batches = this.#batches.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Sequence of the oldest frame kept; `next` when there is none. */
  oldest(next: number): number {
    return this.#batches[this.#head]?.firstSeq ?? next;
  }

  get frameCount(): number {
    return this.#frames;
  }

  /** The batch that holds frame `seq`, which lies within the ring. O(log batches). */
  find(seq: number): FrameBatch | undefined {
    let low = this.#head;
    let high = this.#batches.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const batch = this.#batches[middle];
      if (batch === undefined) return undefined;
      if (seq < batch.firstSeq) high = middle - 1;
      else if (seq >= batch.firstSeq + batch.count) low = middle + 1;
      else return batch;
    }
    return undefined;
  }
}
