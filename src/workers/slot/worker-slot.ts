import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type {
  AnswerBatch,
  ControlMessage,
  WorkerReport,
  WorkerStats,
} from '../../protocol/messages.ts';
import type { BudgetRefusal } from '../../protocol/read-figures.ts';
import type { CallOrigin } from '../../protocol/shard-client.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import type { Clock } from '../../shared/clock.ts';
import type { BatchStages } from '../../shared/stage-times.ts';
import { Acknowledgements } from './acknowledgements.ts';
import { deliverParsed, deliverRaw } from './answer-delivery.ts';
import { ControlQueue } from './control-queue.ts';
import { FairQueue } from './fair-queue.ts';
import { type QueueBound, refusalOf, type SlotLimits } from './queue-bound.ts';
import { batchOfRequests } from './request-batcher.ts';
import { RestartPace } from './restart-pace.ts';
import { SentRequests } from './sent-requests.ts';
import type { PendingRequest, ShardQueue } from './shard-queue.ts';
import type { CreateTransport, SlotTransport } from './slot-transport.ts';

/** Batches that a worker holds at once: one under work, one waiting, so that it never idles. */
const BATCHES_IN_FLIGHT_MAX = 2;
/**
 * The part of its time that a request may wait, by what others waited lately: the rest is for the way, and as what
 * was given up at its deadline says too little.
 */
const WAIT_SHARE_MAX = 0.75;
const SWEEP_MS = 50;
/** The worker answers an expired request itself; the client only when that did not come. */
const DEADLINE_GRACE_MS = 100;
/** A batch takes some slices; a worker that is silent this long with one at hand is stuck. */
const SILENT_MS_MAX = 30_000;
/** What a slot notifies the pool. */
export type SlotReports = {
  readonly onStats: (slot: number, stats: WorkerStats) => void;
  readonly onReport: (slot: number, report: WorkerReport) => void;
  readonly onReady: (slot: number) => void;
  /** `killer` was under evaluation when the worker died. */
  readonly onLost: (slot: number, cause: unknown, killer: PendingRequest | null) => void;
  readonly onFatal: (slot: number, cause: unknown) => void;
  readonly onRefused: (bound: QueueBound) => void;
  /** `origin` is that of the request, where it is known and waits for its answer. */
  readonly onBudgetRefused: (refusal: BudgetRefusal, origin: CallOrigin | undefined) => void;
  readonly modelJson: (projectId: string, modelVersion: number) => string | undefined;
};

type SlotState = 'idle' | 'starting' | 'ready' | 'waiting to restart' | 'failed' | 'stopped';

/**
 * Slot k of the pool: a bounded queue before one worker at a time. Requests never leave their
 * slot; when the worker is lost, those that it held fail with WORKER_LOST at once, those still
 * queued wait for the next life of the worker or for their deadline.
 */
export class WorkerSlot {
  readonly index: number;
  readonly #createTransport: CreateTransport;
  readonly #limits: SlotLimits;
  readonly #reports: SlotReports;
  readonly #clock: Clock;
  readonly #control = new ControlQueue();
  readonly #acks = new Acknowledgements();
  readonly #sent = new SentRequests();
  #state: SlotState = 'idle';
  #transport: SlotTransport | null = null;
  readonly #queue = new FairQueue();
  readonly #nowMs: () => number;
  readonly #onAnswered = (request: PendingRequest): void => this.#finish(request);
  #cancelled: number[] = [];
  #pendingCount = 0;
  #pendingBytes = 0;
  #batchesInFlight = 0;
  #flushScheduled = false;
  readonly #stages: BatchStages | undefined;
  /** Since when the next batch is waited for, 0 while it is not; only where stages are measured. */
  #scheduledMs = 0;
  readonly #restarts = new RestartPace();
  /** When the worker last answered, or got a batch while it had none. */
  #heardAtMs = 0;
  #sweeper: NodeJS.Timeout | null = null;
  #started: { resolve(): void; reject(error: unknown): void } | null = null;

  constructor(
    index: number,
    createTransport: CreateTransport,
    limits: SlotLimits,
    reports: SlotReports,
    clock: Clock,
    stages?: BatchStages,
  ) {
    this.index = index;
    this.#stages = stages;
    this.#createTransport = createTransport;
    this.#limits = limits;
    this.#reports = reports;
    this.#clock = clock;
    this.#nowMs = () => clock.monotonicMs();
  }

  get isReady(): boolean {
    return this.#state === 'ready';
  }

  /** Whether nothing waits to be notified to the worker, and it is there. */
  get isReported(): boolean {
    return this.#state === 'ready' && this.#control.isEmpty;
  }

  /** Requests queued or in flight. */
  get pendingCount(): number {
    return this.#pendingCount;
  }

  /** Starts the worker. Errors: rejects when the first bootstraps failed (onFatal is called too). */
  start(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#started = { resolve, reject };
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS);
    this.#sweeper.unref();
    this.#launch();
    return promise;
  }

  /** Takes one request, or returns why not. The request is answered exactly once afterwards. */
  enqueue(request: PendingRequest): AppError | null {
    assert(request.shard.slot === this.index, 'a shard has its requests in one slot');
    if (this.#state === 'stopped') return stopping();
    if (this.#state === 'failed') return cannotStart();
    const { shard, bytes, scope } = request;
    const bound = this.boundReached(shard, bytes, scope.deadlineMs);
    if (bound !== null) {
      this.#reports.onRefused(bound);
      return refusalOf(bound);
    }
    this.#pendingCount += 1;
    this.#queue.push(request, this.#nowMs);
    this.#pendingBytes += bytes;
    shard.pendingCount += 1;
    shard.pendingBytes += bytes;
    this.#schedule();
    return null;
  }

  /** The bound that leaves no room for a request of `bytes`; null: none. Without `shard` only those of the worker. */
  boundReached(
    shard: ShardQueue | undefined,
    bytes: number,
    deadlineMs: number,
  ): QueueBound | null {
    const { queueDepthMax, queueBytesMax } = this.#limits;
    if (this.#pendingCount >= queueDepthMax) return 'worker_requests';
    const freeBytes = queueBytesMax - this.#pendingBytes;
    if (bytes > freeBytes) return 'worker_bytes';
    if (shard === undefined) return null;
    // What one tenant may have is what is left for all others (Choudhury and Hahne 1998): half of it all for the
    // only one, a third each of two. A first request is always let in.
    if (shard.pendingBytes > 0 && shard.pendingBytes + bytes > freeBytes) return 'tenant_bytes';
    const line = shard.lineOf(bytes);
    if (line.isWaitKnown(shard.pendingBytes)) {
      const nowMs = this.#clock.monotonicMs();
      const timeLeftMs = deadlineMs - performance.timeOrigin - nowMs;
      if (line.isTooLong(shard.pendingBytes, timeLeftMs * WAIT_SHARE_MAX, nowMs)) return 'deadline';
    }
    return null;
  }

  /** The caller has gone: nothing is answered, and the worker stops at its next slice. */
  cancel(request: PendingRequest): void {
    if (request.state === 'done') return;
    if (request.state === 'sent') {
      this.#cancelled.push(request.id);
      this.#schedule();
    }
    this.#finish(request);
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
    const { index: place } = this;
    return this.#acknowledged((ackId) => ({ kind: 'join', ackId, shard, memory, place }));
  }

  /** The part of the time since the last call that the worker was busy. */
  utilization(): number {
    return this.#state === 'ready' ? (this.#transport?.utilization() ?? 0) : 0;
  }

  #acknowledged(messageOf: (ackId: number) => ControlMessage): Promise<void> {
    if (this.#state !== 'ready') return Promise.resolve();
    const { ackId, done } = this.#acks.next();
    this.#control.push(messageOf(ackId));
    this.#schedule();
    return done;
  }

  /** Changes and hints for the shards of this slot. A worker that is not up needs none. */
  get control(): ControlQueue | null {
    if (this.#state !== 'ready') return null;
    this.#schedule();
    return this.#control;
  }

  /** Fails everything that waits with SHUTTING_DOWN and ends the worker. Idempotent. */
  async stop(): Promise<void> {
    if (this.#state === 'stopped') return;
    const transport = this.#transport;
    this.#transport = null;
    this.#state = 'stopped';
    if (this.#sweeper !== null) clearInterval(this.#sweeper);
    this.#acks.settleAll();
    this.#failAll(stopping());
    await transport?.stop();
  }

  #launch(): void {
    const transport = this.#createTransport(this.index);
    this.#transport = transport;
    this.#state = 'starting';
    let isLost = false;
    const onLost = (cause: unknown): void => {
      if (isLost || this.#transport !== transport) return;
      isLost = true;
      this.#workerLost(transport, cause);
    };
    const onAnswers = (answers: AnswerBatch): void => {
      if (this.#transport === transport) this.#answersArrived(answers);
    };
    transport.start({ onAnswers, onLost }).then(
      () => {
        if (this.#transport !== transport) return;
        this.#state = 'ready';
        this.#restarts.ready(this.#clock.monotonicMs());
        this.#started?.resolve();
        this.#started = null;
        this.#reports.onReady(this.index);
        this.#schedule();
      },
      (cause: unknown) => onLost(cause),
    );
  }

  #workerLost(transport: SlotTransport, cause: unknown): void {
    const wasReady = this.#state === 'ready';
    const killerId = transport.underEvaluation();
    this.#transport = null;
    this.#batchesInFlight = 0;
    this.#cancelled = [];
    this.#control.clear();
    this.#acks.settleAll();
    transport.stop().catch((error: unknown) => this.#reports.onLost(this.index, error, null));
    const killer = wasReady ? (this.#sent.get(killerId) ?? null) : null;
    const lost = this.#sent.values();
    this.#reports.onLost(this.index, cause, killer);
    for (const request of lost) {
      this.#finish(request);
      request.fail(
        new AppError<AuthzReason>('WORKER_LOST', 'the decision worker was lost; try again'),
      );
    }
    const delayMs = this.#restarts.lost(wasReady, this.#clock.monotonicMs());
    if (delayMs === undefined) return this.#becomeFailed(cause);
    this.#state = 'waiting to restart';
    setTimeout(() => {
      if (this.#state === 'waiting to restart') this.#launch();
    }, delayMs);
  }

  #becomeFailed(cause: unknown): void {
    this.#state = 'failed';
    this.#failAll(cannotStart());
    this.#started?.reject(cause);
    this.#started = null;
    this.#reports.onFatal(this.index, cause);
  }

  #schedule(): void {
    if (this.#flushScheduled || this.#state !== 'ready') return;
    this.#flushScheduled = true;
    if (this.#stages !== undefined && this.#scheduledMs === 0)
      this.#scheduledMs = performance.now();
    setImmediate(() => {
      this.#flushScheduled = false;
      this.#flush();
    });
  }

  /** Sends at most what the worker takes now; the rest goes with the next reply. */
  #flush(): void {
    const stages = this.#stages;
    while (this.#state === 'ready' && this.#batchesInFlight < BATCHES_IN_FLIGHT_MAX) {
      const sinceMs = stages === undefined ? 0 : performance.now();
      const requests = this.#queue.take();
      for (const request of requests) this.#sent.add(request);
      if (requests.length === 0 && this.#cancelled.length === 0 && this.#control.isEmpty) return;
      const transport = this.#transport;
      if (transport === null) return;
      const cancelled = this.#cancelled;
      this.#cancelled = [];
      const batch = batchOfRequests(requests, cancelled, this.#control.take(), transport);
      if (this.#batchesInFlight === 0) this.#heardAtMs = this.#clock.monotonicMs();
      this.#batchesInFlight += 1;
      const sent = transport.send(batch);
      stages?.sent(this.#scheduledMs, sinceMs, requests.length);
      this.#scheduledMs = 0;
      sent.then(
        (answers) => {
          if (this.#transport !== transport) return;
          this.#batchesInFlight -= 1;
          this.#heardAtMs = this.#clock.monotonicMs();
          this.#answersArrived(answers);
          this.#flush();
        },
        (cause: unknown) => {
          if (this.#transport === transport) this.#workerLost(transport, cause);
        },
      );
    }
  }

  #answersArrived(answers: AnswerBatch): void {
    // First: requests that are answered are forgotten.
    for (const refusal of answers.refusals) {
      const origin = this.#sent.get(refusal.requestId)?.scope.origin;
      this.#reports.onBudgetRefused(refusal, origin);
    }
    if (this.#stages === undefined) deliverRaw(answers, this.#sent, this.#onAnswered);
    else {
      const mark = this.#stages.mark();
      deliverRaw(answers, this.#sent, this.#onAnswered);
      this.#stages.answered(mark, answers.ids.length);
    }
    for (const response of answers.responses) deliverParsed(response, this.#sent, this.#onAnswered);
    this.#acks.arrived(answers.acks);
    for (const { projectId, modelVersion } of answers.modelsWanted) {
      const modelJson = this.#reports.modelJson(projectId, modelVersion);
      this.#control.push(
        modelJson === undefined
          ? { kind: 'modelUnknown', projectId, modelVersion }
          : { kind: 'setModel', ackId: 0, projectId, modelVersion, modelJson },
      );
      this.#schedule();
    }
    if (answers.stats !== null) this.#reports.onStats(this.index, answers.stats);
    for (const report of answers.reports) this.#reports.onReport(this.index, report);
  }

  #finish(request: PendingRequest): void {
    if (DEBUG_ASSERTIONS) assert(request.state !== 'done', 'a request ends once');
    const { shard, bytes } = request;
    const line = shard.lineOf(request.bytes);
    const wasSent = request.state === 'sent';
    request.state = 'done';
    this.#pendingCount -= 1;
    this.#pendingBytes -= bytes;
    shard.pendingCount -= 1;
    shard.pendingBytes -= bytes;
    line.finished(request, this.#nowMs);
    if (wasSent) {
      this.#sent.delete(request.id);
      if (this.#queue.answered(request)) this.#schedule();
    } else line.gone(request);
    if (DEBUG_ASSERTIONS) {
      const ofShard = Math.min(shard.pendingCount, shard.pendingBytes, line.sentBytes);
      const least = Math.min(this.#pendingCount, this.#pendingBytes, ofShard);
      assert(least >= 0 && this.#sent.size <= this.#pendingCount, 'what is pending is counted');
    }
  }

  #failAll(error: AppError): void {
    for (const request of [...this.#sent.values(), ...this.#queue.waiting()]) {
      this.#finish(request);
      request.fail(error);
    }
  }

  /** Deadlines of requests that the worker did not answer: queued ones, or held by a busy worker. */
  #sweep(): void {
    this.#endSilentWorker();
    if (this.#pendingCount === 0) return;
    const nowMs = performance.timeOrigin + this.#clock.monotonicMs();
    for (const request of this.#queue.waiting()) {
      if (request.scope.deadlineMs <= nowMs) this.#expire(request);
    }
    for (const request of this.#sent.values()) {
      if (request.scope.deadlineMs + DEADLINE_GRACE_MS <= nowMs) {
        this.#cancelled.push(request.id);
        this.#schedule();
        this.#expire(request);
      }
    }
  }

  #endSilentWorker(): void {
    const transport = this.#transport;
    if (transport === null || this.#batchesInFlight === 0) return;
    if (this.#clock.monotonicMs() - this.#heardAtMs < SILENT_MS_MAX) return;
    this.#workerLost(transport, new Error(`the worker was silent for ${SILENT_MS_MAX} ms`));
  }

  #expire(request: PendingRequest): void {
    this.#finish(request);
    request.fail(
      this.#state === 'ready' || request.scope.isDeadlineStated === true
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
