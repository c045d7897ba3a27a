import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import type { PendingRequest } from './pending-request.ts';
import type { ShardLine } from './shard-queue.ts';

const BATCH_REQUESTS_MAX = 512;
const BATCH_BYTES_MAX = 1024 * 1024;
/** What a line may send in its turn: some 180 Checks, or a part of the credit for a large batch. */
const TURN_BYTES = 64 * 1024;
/**
 * Bytes of large requests of one shard that its worker has at once: what keeps it busy, no more. The others wait here,
 * where a caller that goes or a deadline that ends costs nothing.
 */
const LARGE_SENT_BYTES_MAX = 4 * 1024 * 1024;

/**
 * The requests that wait for one worker. Shards take turns by bytes (deficit round robin, Shreedhar and Varghese 1995),
 * so that what one asks next waits for at most a turn of each other that has anything waiting, however much another has.
 * Large requests of a shard wait in a line of their own, beside its small ones. O(1) a request and turn.
 */
export class FairQueue {
  #round: ShardLine[] = [];
  #roundHead = 0;
  /** Lines with something waiting that the worker has enough of. */
  readonly #held = new Set<ShardLine>();

  /** Whether something waits that may be sent. */
  get hasNext(): boolean {
    return this.#roundHead < this.#round.length;
  }

  /** Takes one of state `queued` to the end of its line. */
  push(request: PendingRequest, nowMs: () => number): void {
    const { shard } = request;
    const line = shard.lineOf(request);
    line.push(request, shard.pendingBytes, nowMs);
    if (!this.#held.has(line)) this.#enter(line);
  }

  /** What goes into the next message, marked as sent: at most 512 requests and, but for a single one, 1 MiB. */
  take(): PendingRequest[] {
    const taken: PendingRequest[] = [];
    let bytes = 0;
    while (taken.length < BATCH_REQUESTS_MAX) {
      const line = this.#round[this.#roundHead];
      if (line === undefined) break;
      const request = line.front();
      if (request === null || isHeld(line, request)) {
        this.#leave(line, request !== null);
        continue;
      }
      if (request.bytes > line.credit) {
        this.#giveTurn(line, request.bytes);
        continue;
      }
      if (taken.length > 0 && bytes + request.bytes > BATCH_BYTES_MAX) break;
      if (DEBUG_ASSERTIONS) assert(request.state === 'queued', 'a request is sent once');
      line.shift();
      line.credit -= request.bytes;
      line.sentBytes += request.bytes;
      bytes += request.bytes;
      request.state = 'sent';
      taken.push(request);
    }
    return taken;
  }

  /** The worker has answered `request`, or was told to forget it; true if more may be sent for that. */
  answered(request: PendingRequest): boolean {
    const line = request.shard.lineOf(request);
    line.sentBytes -= request.bytes;
    if (!this.#held.has(line)) return false;
    const next = line.front();
    if (next !== null && isHeld(line, next)) return false;
    this.#held.delete(line);
    if (next !== null) this.#enter(line);
    return next !== null;
  }

  /** All that wait. O(waiting). */
  waiting(): PendingRequest[] {
    const lines = [...this.#round.slice(this.#roundHead), ...this.#held];
    return lines.flatMap((line) => line.waiting());
  }

  #enter(line: ShardLine): void {
    if (line.isInRound) return;
    line.isInRound = true;
    line.credit = TURN_BYTES;
    this.#round.push(line);
  }

  #leave(line: ShardLine, isHeldBack: boolean): void {
    this.#next();
    line.isInRound = false;
    if (isHeldBack) this.#held.add(line);
  }

  /** To the end of the round, with more credit. The only one in it need not come round again. */
  #giveTurn(line: ShardLine, wantedBytes: number): void {
    if (this.#round.length - this.#roundHead === 1) {
      line.credit = Math.max(wantedBytes, TURN_BYTES);
      return;
    }
    line.credit += TURN_BYTES;
    this.#next();
    this.#round.push(line);
  }

  #next(): void {
    this.#roundHead += 1;
    if (this.#roundHead === this.#round.length) {
      this.#round = [];
      this.#roundHead = 0;
    } else if (this.#roundHead > 4_096) {
      this.#round = this.#round.slice(this.#roundHead);
      this.#roundHead = 0;
    }
  }
}

function isHeld(line: ShardLine, request: PendingRequest): boolean {
  return (
    line === request.shard.large &&
    line.sentBytes > 0 &&
    line.sentBytes + request.bytes > LARGE_SENT_BYTES_MAX
  );
}
