import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { FairQueue } from './fair-queue.ts';
import type { QueueBound, SlotLimits } from './queue-bound.ts';
import { SentRequests } from './sent-requests.ts';
import type { PendingRequest, ShardQueue } from './shard-queue.ts';

/**
 * The part of its time that a request may wait, by the recent waits of others. The rest is for the way, and because
 * requests that were given up at their deadline predict too little.
 */
const WAIT_SHARE_MAX = 0.75;

/** The requests of one slot that have no answer yet, queued or held by the worker: how many there may be, and what is counted of each until it ends. */
export class SlotRequests {
  /** Requests that the worker has. */
  readonly sent = new SentRequests();
  readonly #limits: SlotLimits;
  readonly #clock: Clock;
  readonly #queue = new FairQueue();
  readonly #nowMs: () => number;
  #count = 0;
  #bytes = 0;

  constructor(limits: SlotLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
    this.#nowMs = () => clock.monotonicMs();
  }

  /** Queued or in flight. */
  get count(): number {
    return this.#count;
  }

  /** The bound that a request of `bytes` would exceed; null: none. Without `shard` only those of the worker. */
  boundReached(
    shard: ShardQueue | undefined,
    bytes: number,
    deadlineMs: number,
  ): QueueBound | null {
    const { queueDepthMax, queueBytesMax } = this.#limits;
    if (this.#count >= queueDepthMax) return 'worker_requests';
    const freeBytes = queueBytesMax - this.#bytes;
    if (bytes > freeBytes) return 'worker_bytes';
    if (shard === undefined) return null;
    // A tenant may use as much as remains free (Choudhury and Hahne 1998): half of the memory if it is alone,
    // a third each if there are two. A first request is always admitted.
    if (shard.pendingBytes > 0 && shard.pendingBytes + bytes > freeBytes) return 'tenant_bytes';
    const fifo = shard.fifoFor(bytes);
    if (fifo.isWaitKnown(shard.pendingBytes)) {
      const nowMs = this.#clock.monotonicMs();
      const timeLeftMs = deadlineMs - performance.timeOrigin - nowMs;
      if (fifo.isTooLong(shard.pendingBytes, timeLeftMs * WAIT_SHARE_MAX, nowMs)) return 'deadline';
    }
    return null;
  }

  /** Adds a request of state `queued` that is within the bounds. Hot. */
  enqueue(request: PendingRequest): void {
    const { shard, bytes } = request;
    this.#count += 1;
    this.#queue.enqueue(request, this.#nowMs);
    this.#bytes += bytes;
    shard.pendingCount += 1;
    shard.pendingBytes += bytes;
  }

  /** The requests of the next batch, sent from now on. */
  takeBatch(): PendingRequest[] {
    const requests = this.#queue.takeBatch();
    for (const request of requests) this.sent.add(request);
    return requests;
  }

  /** A request has ended, for whatever reason: it is counted no more. Returns whether more may be sent for that. Hot. */
  finish(request: PendingRequest): boolean {
    if (DEBUG_ASSERTIONS) assert(request.state !== 'done', 'a request ends once');
    const { shard, bytes } = request;
    const fifo = shard.fifoFor(request.bytes);
    const wasSent = request.state === 'sent';
    request.state = 'done';
    this.#count -= 1;
    this.#bytes -= bytes;
    shard.pendingCount -= 1;
    shard.pendingBytes -= bytes;
    fifo.finished(request, this.#nowMs);
    let isMoreAllowed = false;
    if (wasSent) {
      this.sent.delete(request.id);
      isMoreAllowed = this.#queue.answered(request);
    } else fifo.gone(request);
    if (DEBUG_ASSERTIONS) {
      const ofShard = Math.min(shard.pendingCount, shard.pendingBytes, fifo.sentBytes);
      const least = Math.min(this.#count, this.#bytes, ofShard);
      assert(least >= 0 && this.sent.size <= this.#count, 'what is pending is counted');
    }
    return isMoreAllowed;
  }

  /** Requests that the worker does not have yet. O(waiting). */
  waiting(): PendingRequest[] {
    return this.#queue.waiting();
  }
}
