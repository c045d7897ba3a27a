import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import { FairRound } from './fair-round.ts';
import type { PendingRequest, RequestFifo } from './shard-queue.ts';

const BATCH_REQUESTS_MAX = 512;
/** Bytes of the small requests of a message, and of its large ones. */
const BATCH_BYTES_MAX = 1024 * 1024;
/**
 * Bytes of large requests of one shard that its worker has at once: what keeps it busy, no more. The others wait here,
 * where a caller that goes or a deadline that ends costs nothing.
 */
const LARGE_SENT_BYTES_MAX = 4 * 1024 * 1024;

/**
 * The requests that wait for one worker. Shards take turns by bytes, small requests and large ones each in a round of
 * their own, of which every message has its part. So a small one waits neither for large ones, nor for longer than a
 * turn of each other shard. O(1) a request.
 */
export class FairQueue {
  readonly #small = new FairRound();
  readonly #large = new FairRound();
  /** Lines with something waiting of which the worker has enough. */
  readonly #held = new Set<RequestFifo>();

  /** Takes one of state `queued` to the end of its line. */
  enqueue(request: PendingRequest, nowMs: () => number): void {
    const { shard } = request;
    const fifo = shard.fifoFor(request.bytes);
    fifo.append(request, shard.pendingBytes, nowMs);
    if (fifo === shard.small) this.#small.enter(fifo);
    else if (!this.#held.has(fifo)) this.#large.enter(fifo);
  }

  /** The next message, marked as sent: at most 512 requests, and 1 MiB of small and of large ones. */
  takeBatch(): PendingRequest[] {
    const taken: PendingRequest[] = [];
    this.#takeFrom(this.#small, taken);
    this.#takeFrom(this.#large, taken);
    return taken;
  }

  #takeFrom(round: FairRound, taken: PendingRequest[]): void {
    let bytes = 0;
    while (taken.length < BATCH_REQUESTS_MAX) {
      const fifo = round.first;
      if (fifo === undefined) return;
      const request = fifo.front();
      if (request === null) {
        round.leave();
        continue;
      }
      if (isHeld(fifo, request)) {
        round.leave();
        this.#held.add(fifo);
        continue;
      }
      if (bytes > 0 && bytes + request.bytes > BATCH_BYTES_MAX) return;
      if (request.bytes > fifo.credit) {
        round.turn(request.bytes);
        continue;
      }
      if (DEBUG_ASSERTIONS) assert(request.state === 'queued', 'a request is sent once');
      fifo.shift();
      fifo.credit -= request.bytes;
      fifo.sentBytes += request.bytes;
      bytes += request.bytes;
      request.state = 'sent';
      taken.push(request);
    }
  }

  /** The worker has answered `request`, or was sent its cancel; returns true if more may be sent for that. */
  answered(request: PendingRequest): boolean {
    const fifo = request.shard.fifoFor(request.bytes);
    fifo.sentBytes -= request.bytes;
    if (!this.#held.has(fifo)) return false;
    const next = fifo.front();
    if (next !== null && isHeld(fifo, next)) return false;
    this.#held.delete(fifo);
    if (next !== null) this.#large.enter(fifo);
    return next !== null;
  }

  /** All that wait. O(waiting). */
  waiting(): PendingRequest[] {
    const lines = [...this.#small.fifos(), ...this.#large.fifos(), ...this.#held];
    return lines.flatMap((fifo) => fifo.waiting());
  }
}

function isHeld(fifo: RequestFifo, request: PendingRequest): boolean {
  return (
    fifo === request.shard.large &&
    fifo.sentBytes > 0 &&
    fifo.sentBytes + request.bytes > LARGE_SENT_BYTES_MAX
  );
}
