import type { ReadScope } from '../../protocol/shard-client.ts';
import type { AppError } from '../../shared/app-error.ts';

export type PendingState = 'queued' | 'sent' | 'done';

/** One request between its call and its single answer. */
export interface PendingRequest {
  readonly id: number;
  readonly shard: ShardQueue;
  readonly scope: ReadScope;
  /** Bytes that count against the slot's bound. */
  readonly bytes: number;
  state: PendingState;
  /** Fails the caller; only while not done. */
  fail(error: AppError): void;
  /** Identity for the memory of killer requests. */
  label(): string;
  bodyBytes(): Uint8Array;
}

/** Requests of more bytes than this wait in a line of their own, as in the worker they are evaluated in slices. */
export const LARGE_REQUEST_BYTES = 16 * 1024;

/** The gateway's state of one shard that has requests in flight. */
export class ShardQueue {
  readonly projectId: string;
  readonly tenantId: string;
  readonly slot: number;
  /** Requests queued or in flight; bounded per shard. */
  pendingCount = 0;
  /** Their bytes. */
  pendingBytes = 0;
  /** Epoch of the last read. */
  epoch = 0;
  /** Single Checks of one sample, and of which: kept by BusyChecks. */
  checks = 0;
  checksSample = 0;
  readonly small = new RequestFifo();
  readonly large = new RequestFifo();

  constructor(projectId: string, tenantId: string, slot: number) {
    this.projectId = projectId;
    this.tenantId = tenantId;
    this.slot = slot;
  }

  /** The line in which a request of `bytes` waits. */
  fifoFor(bytes: number): RequestFifo {
    return bytes > LARGE_REQUEST_BYTES ? this.large : this.small;
  }
}

/** Requests of one shard that wait for the worker, in the order of their arrival. */
export class RequestFifo {
  /** Bytes that it may still send in its present turn. */
  credit = 0;
  /** Whether it is in the round of turns. */
  isInRound = false;
  /** Bytes that the worker has and did not answer yet. */
  sentBytes = 0;
  #waiting: (PendingRequest | null)[] = [];
  #head = 0;
  /** Requests among the waiting ones that are answered already, as their callers have gone or their time ended. */
  #goneCount = 0;
  #goneBytes = 0;
  #probe: PendingRequest | null = null;
  #probeSinceMs = 0;
  #probeAheadBytes = 0;
  #lastAheadBytes = 0;
  #lastWaitMs = 0;

  /** `pendingBytes`: those that its shard had before it. */
  append(request: PendingRequest, pendingBytes: number, nowMs: () => number): void {
    this.#waiting.push(request);
    if (this.#probe === null && pendingBytes >= PROBE_AHEAD_BYTES_MIN) {
      this.#probe = request;
      this.#probeSinceMs = nowMs();
      this.#probeAheadBytes = pendingBytes;
    }
  }

  /** The first that still waits for an answer, or null. */
  front(): PendingRequest | null {
    for (;;) {
      const request = this.#waiting[this.#head];
      if (request === undefined || request === null) {
        this.#waiting = [];
        this.#head = 0;
        this.#goneCount = 0;
        this.#goneBytes = 0;
        return null;
      }
      if (request.state === 'queued') return request;
      this.shift();
      this.#goneCount -= 1;
      this.#goneBytes -= request.bytes;
    }
  }

  /** Removes the result of `front`. */
  shift(): void {
    // It may be large, and is not kept until the others have gone.
    this.#waiting[this.#head] = null;
    this.#head += 1;
    if (this.#head > 4_096) this.#compact();
  }

  /** A request that waits here has got its answer: its memory goes before its turn comes if there is much of it. */
  gone(request: PendingRequest): void {
    this.#goneCount += 1;
    this.#goneBytes += request.bytes;
    const left = this.#waiting.length - this.#head;
    if (
      this.#goneBytes > GONE_BYTES_MAX ||
      (this.#goneCount > 1_024 && this.#goneCount * 2 > left)
    ) {
      this.#compact();
    }
  }

  /** A request of this line got its answer, from whomever. */
  finished(request: PendingRequest, nowMs: () => number): void {
    if (request !== this.#probe) return;
    this.#probe = null;
    this.#lastWaitMs = nowMs() - this.#probeSinceMs;
    this.#lastAheadBytes = this.#probeAheadBytes;
  }

  /** Whether the wait behind so many bytes is known well enough to ask `isTooLong`. */
  isWaitKnown(pendingBytes: number): boolean {
    return this.#probe !== null && pendingBytes >= PROBE_AHEAD_BYTES_MIN;
  }

  /**
   * Whether a request behind `pendingBytes` would wait longer than `timeLeftMs`, by the waits of two others. One is
   * the last request that was measured, whose wait counts in part if it was behind more bytes. The other is the one
   * being measured, if it is behind no more. While none is being measured, the request is not refused, and measures
   * the wait itself. O(1).
   */
  isTooLong(pendingBytes: number, timeLeftMs: number, nowMs: number): boolean {
    if (!this.isWaitKnown(pendingBytes)) return false;
    const isBehindProbe = pendingBytes >= this.#probeAheadBytes;
    if (isBehindProbe && nowMs - this.#probeSinceMs > timeLeftMs) return true;
    if (this.#lastAheadBytes === 0) return false;
    // A share of it for a shorter queue, but no more for a longer one: a part of it may have been a load, or a pause.
    const share = Math.min(1, pendingBytes / this.#lastAheadBytes);
    return this.#lastWaitMs * share > timeLeftMs;
  }

  /** The waiting requests, in order. O(waiting). */
  waiting(): PendingRequest[] {
    return this.#waiting.filter((request) => request?.state === 'queued') as PendingRequest[];
  }

  #compact(): void {
    this.#waiting = this.waiting();
    this.#head = 0;
    this.#goneCount = 0;
    this.#goneBytes = 0;
  }
}

const GONE_BYTES_MAX = 1024 * 1024;
/** Behind fewer bytes no request waits long, and the wait of one predicts little for the next. */
const PROBE_AHEAD_BYTES_MIN = 32 * 1024;
