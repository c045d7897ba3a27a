import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type { AnswerBatch, ControlMessage } from '../../protocol/messages.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { BatchStages } from '../../shared/time/stage-times.ts';
import { type QueueBound, refusalOf, type SlotLimits } from '../queues/queue-bound.ts';
import type { PendingRequest } from '../queues/shard-queue.ts';
import { SlotRequests } from '../queues/slot-requests.ts';
import { type AnswerReports, BatchDispatcher } from './batch-dispatcher.ts';
import type { ControlQueue } from './control-queue.ts';
import type { CreateTransport } from './slot-transport.ts';
import { WorkerLife } from './worker-life.ts';

const SWEEP_MS = 50;
/** The worker answers an expired request itself; the client only when that did not come. */
const DEADLINE_GRACE_MS = 100;

/** Callbacks of a slot for the pool. */
export type SlotReports = AnswerReports & {
  readonly onReady: (slot: number) => void;
  /** `killer` was under evaluation when the worker died. */
  readonly onLost: (slot: number, cause: unknown, killer: PendingRequest | null) => void;
  readonly onFatal: (slot: number, cause: unknown) => void;
  readonly onRefused: (bound: QueueBound) => void;
};

/**
 * Slot k of the pool: a bounded queue before one worker at a time. Requests never leave their slot. When
 * the worker is lost, those that it held fail with WORKER_LOST at once; queued ones wait for its next life
 * or their deadline.
 */
export class WorkerSlot {
  readonly index: number;
  readonly requests: SlotRequests;
  readonly #reports: SlotReports;
  readonly #clock: Clock;
  readonly #life: WorkerLife;
  readonly #batches: BatchDispatcher;
  #sweeper: NodeJS.Timeout | null = null;

  constructor(
    index: number,
    createTransport: CreateTransport,
    limits: SlotLimits,
    reports: SlotReports,
    clock: Clock,
    stages?: BatchStages,
  ) {
    this.index = index;
    this.#reports = reports;
    this.#clock = clock;
    this.requests = new SlotRequests(limits, clock);
    const events = {
      onAnswers: (answers: AnswerBatch) => this.#batches.arrived(answers),
      onReady: () => {
        reports.onReady(index);
        this.#batches.schedule();
      },
      onLost: (cause: unknown, requestId: number) => this.#workerLost(cause, requestId),
      onStopFailed: (error: unknown) => reports.onLost(index, error, null),
      onFailed: () => this.#failAll(cannotStart()),
      onFatal: (cause: unknown) => reports.onFatal(index, cause),
    };
    this.#life = new WorkerLife(index, createTransport, events, clock);
    this.#batches = new BatchDispatcher(index, this.requests, this.#life, reports, clock, stages);
  }

  get isReady(): boolean {
    return this.#life.isReady;
  }

  /** Whether no message waits to be sent to the worker, and it is there. */
  get isInSync(): boolean {
    return this.#life.isReady && this.#batches.control.isEmpty;
  }

  /** Starts the worker. Errors: rejects when the first bootstraps failed (onFatal is called too). */
  start(): Promise<void> {
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS);
    this.#sweeper.unref();
    return this.#life.start();
  }

  /** Takes one request, or returns why not. The request is answered exactly once afterwards. */
  enqueue(request: PendingRequest): AppError | null {
    assert(request.shard.slot === this.index, 'a shard has its requests in one slot');
    const { state } = this.#life;
    if (state === 'stopped') return stopping();
    if (state === 'failed') return cannotStart();
    const { shard, bytes, scope } = request;
    const bound = this.requests.boundReached(shard, bytes, scope.deadlineMs);
    if (bound !== null) {
      this.#reports.onRefused(bound);
      return refusalOf(bound);
    }
    this.requests.enqueue(request);
    this.#batches.schedule();
    return null;
  }

  /** The caller has gone: nothing is answered, and the worker stops at its next slice. */
  cancel(request: PendingRequest): void {
    if (request.state === 'done') return;
    if (request.state === 'sent') this.#batches.cancel(request.id);
    this.#batches.finish(request);
  }

  /** Resolves when the worker holds the model; at once if there is no worker that could hold an older one. */
  setModel(projectId: string, modelVersion: number, modelJson: string): Promise<void> {
    return this.#acknowledged((ackId) => ({
      kind: 'setModel',
      ackId,
      projectId,
      modelVersion,
      modelJson,
    }));
  }

  /** Resolves when the worker holds the shard or could not load it; at once if there is no worker. */
  warm(shard: ShardKey): Promise<void> {
    return this.#acknowledged((ackId) => ({ kind: 'warm', ackId, shard }));
  }

  /** Resolves when the worker has compared its indexes with what is stored; at once if it has none. */
  fsck(): Promise<void> {
    return this.#acknowledged((ackId) => ({ kind: 'fsck', ackId }));
  }

  /** Makes the worker one of those that answer for `shard`; resolves when it holds it, or could not load it. At once if there is no worker. */
  join(shard: ShardKey, memory: SharedArrayBuffer): Promise<void> {
    const { index: slot } = this;
    return this.#acknowledged((ackId) => ({ kind: 'join', ackId, shard, memory, slot }));
  }

  /** The part of the time since the last call that the worker was busy. */
  utilization(): number {
    return this.#life.isReady ? (this.#life.transport?.utilization() ?? 0) : 0;
  }

  #acknowledged(messageOf: (ackId: number) => ControlMessage): Promise<void> {
    if (!this.#life.isReady) return Promise.resolve();
    const { ackId, done } = this.#batches.acks.next();
    this.#batches.control.enqueue(messageOf(ackId));
    this.#batches.schedule();
    return done;
  }

  /** Changes and hints for the shards of this slot. A worker that is not up needs none. */
  get control(): ControlQueue | null {
    if (!this.#life.isReady) return null;
    this.#batches.schedule();
    return this.#batches.control;
  }

  /** Fails everything that waits with SHUTTING_DOWN and ends the worker. Idempotent. */
  async stop(): Promise<void> {
    if (this.#life.state === 'stopped') return;
    const transport = this.#life.retire();
    if (this.#sweeper !== null) clearInterval(this.#sweeper);
    this.#batches.acks.settleAll();
    this.#failAll(stopping());
    await transport?.stop();
  }

  #workerLost(cause: unknown, requestId: number): void {
    this.#batches.reset();
    const { sent } = this.requests;
    const killer = sent.get(requestId) ?? null;
    const lost = sent.values();
    this.#reports.onLost(this.index, cause, killer);
    for (const request of lost) {
      this.#batches.finish(request);
      request.fail(
        new AppError<AuthzReason>('WORKER_LOST', 'the decision worker was lost; try again'),
      );
    }
  }

  #failAll(error: AppError): void {
    for (const request of [...this.requests.sent.values(), ...this.requests.waiting()]) {
      this.#batches.finish(request);
      request.fail(error);
    }
  }

  /** Deadlines of requests that the worker did not answer: queued ones, or held by a busy worker. */
  #sweep(): void {
    this.#batches.endSilentWorker();
    if (this.requests.count === 0) return;
    const nowMs = performance.timeOrigin + this.#clock.monotonicMs();
    for (const request of this.requests.waiting()) {
      if (request.scope.deadlineMs <= nowMs) this.#expire(request);
    }
    for (const request of this.requests.sent.values()) {
      if (request.scope.deadlineMs + DEADLINE_GRACE_MS <= nowMs) {
        this.#batches.cancel(request.id);
        this.#expire(request);
      }
    }
  }

  #expire(request: PendingRequest): void {
    this.#batches.finish(request);
    request.fail(
      this.#life.isReady || request.scope.isDeadlineStated === true
        ? new AppError<AuthzReason>('DEADLINE_EXCEEDED', 'the deadline ended before the decision')
        : new AppError<AuthzReason>(
            'SHARD_UNAVAILABLE',
            'the decision worker of this shard is restarting',
          ),
    );
  }
}

function stopping(): AppError {
  return new AppError<AuthzReason>('SHUTTING_DOWN', 'the service is stopping');
}

function cannotStart(): AppError {
  return new AppError<AuthzReason>(
    'SHARD_UNAVAILABLE',
    'the decision worker of this shard cannot start',
  );
}
