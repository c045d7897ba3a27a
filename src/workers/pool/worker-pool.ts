import type { CarriedChanges, CommittedChange } from '../../model/packed-changes.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { rawOpcode, type WorkerReport, type WorkerStats } from '../../protocol/messages.ts';
import { ModelStore } from '../../protocol/model-store.ts';
import type { QueryAnswer, QueryArgs, QueryCall, QueryKind } from '../../protocol/queries.ts';
import type { BudgetRefusal } from '../../protocol/read-figures.ts';
import type {
  CallOrigin,
  Cancellable,
  RawAnswer,
  RawMethod,
  RawScope,
  ReadScope,
  ShardClient,
  WireFormat,
} from '../../protocol/shard-client.ts';
import type { AppError } from '../../shared/app-error.ts';
import { systemClock } from '../../shared/time/clock.ts';
import { type ParsedRequest, PendingRawRequest } from '../queues/pending-request.ts';
import type { QueueBound } from '../queues/queue-bound.ts';
import type { PendingRequest } from '../queues/shard-queue.ts';
import { WorkerSlot } from '../slot/worker-slot.ts';
import { FsckCounter, type FsckTotals } from './fsck-totals.ts';
import { LocalReplicas, type LocalReplicaFigures } from './local-replicas.ts';
import { callWorker, cancelled } from './parsed-call.ts';
import { PoolAdmission } from './pool-admission.ts';
import { RefusedRequests } from './refused-requests.ts';
import type { ReplicatedShards } from './replicated-shards.ts';
import { ShardHolders } from './shard-holders.ts';
import { ShardQueues } from './shard-queues.ts';
import { ShardReplication } from './shard-replication.ts';
import type { WorkerPoolOptions } from './worker-pool-options.ts';

/** The decision side of one instance: a ShardClient with a life. Each step is idempotent. */
export interface WorkerPool extends ShardClient {
  /** Resolves when every worker sent hello. Errors: rejects with the cause when one cannot start. */
  start(): Promise<void>;
  readonly isReady: boolean;
  /** Shards that several workers answer for. */
  readonly replicatedCount: number;
  /** Figures of the replicas on this thread. */
  readonly localReplicas: LocalReplicaFigures;
  /** Loads a shard before anybody asks; resolves when it is there, or could not be loaded. */
  warm(shard: ShardKey): Promise<void>;
  /** Requests queued or in flight over all workers. */
  readonly pendingCount: number;
  /**
   * Compares every loaded index with what is stored, without pauses; resolves with what was counted meanwhile. A worker that
   * is lost has nothing left to compare.
   */
  checkIndexes(): Promise<FsckTotals>;
  /** New requests fail with SHUTTING_DOWN; resolves when none is in flight, or after `timeoutMs`. */
  drain(timeoutMs: number): Promise<void>;
  /** Fails what is left with SHUTTING_DOWN and ends the workers. */
  stop(): Promise<void>;
}

/** The pool over any transport; `createPiscinaTransport` is the real one. */
export function createWorkerPool(options: WorkerPoolOptions): WorkerPool {
  return new SlotPool(options);
}

const NO_REPLICAS: LocalReplicaFigures = { shards: 0, indexBytes: 0, answered: 0, left: 0 };
const ALLOWED: RawAnswer = { kind: 'allowed' };
const DENIED: RawAnswer = { kind: 'denied' };

class SlotPool implements WorkerPool {
  /** The slots of the workers. */
  readonly #slots: readonly WorkerSlot[];
  /** On this thread; null if none. */
  readonly #replicas: LocalReplicas | null = null;
  readonly #models = new ModelStore();
  readonly #replication: ShardReplication;
  readonly #replicated: ReplicatedShards;
  readonly #queues: ShardQueues;
  readonly #holders: ShardHolders;
  #requestId = 0;
  readonly #admission: PoolAdmission;
  readonly #fsck = new FsckCounter();

  constructor(options: WorkerPoolOptions) {
    const clock = options.clock ?? systemClock;
    const refused = new RefusedRequests(() => clock.monotonicMs());
    const limits = { queueDepthMax: options.queueDepthMax, queueBytesMax: options.queueBytesMax };
    const reports = this.#reportsTo(options, refused);
    this.#slots = Array.from(
      { length: options.workerCount },
      (_, index) =>
        new WorkerSlot(index, options.createTransport, limits, reports, clock, options.stages),
    );
    this.#queues = new ShardQueues(options.workerCount, (queue) =>
      this.#replicated.isReplicated(queue),
    );
    this.#admission = new PoolAdmission({
      ...options,
      slots: this.#slots,
      queues: this.#queues,
      refused,
    });
    const { createLocalReplicas, stages, shardQueueDepthMax } = options;
    if (createLocalReplicas !== undefined) {
      this.#replicas = new LocalReplicas({
        slotIndex: options.workerCount,
        createLocalReplicas,
        onOverload: (shard) => this.#dropLocalReplica(shard),
        limits,
        reports,
        clock,
        stages,
        shardQueueDepthMax,
        refused,
        admission: this.#admission,
      });
    }
    const holders = this.#replicas === null ? this.#slots : [...this.#slots, this.#replicas.slot];
    this.#replication = new ShardReplication(
      options.replication ?? { workersMax: 1, indexBytesMax: 0 },
      holders,
      () => this.#queues.all(),
      (replicated) => {
        const [slot = 0] = replicated.slots;
        options.onEvent({ kind: 'shardSpread', slot, replicated });
      },
    );
    this.#replicated = this.#replication.shards;
    this.#holders = new ShardHolders(holders, this.#slots, this.#queues, this.#replicated);
  }

  /** Callbacks for the reports of slots, which are counted here and handed on. */
  #reportsTo(options: WorkerPoolOptions, refused: RefusedRequests) {
    return {
      onStats: (slot: number, stats: WorkerStats) => {
        this.#fsck.add(stats.fsck);
        this.#replication.report(slot, stats);
        if (slot === this.#replicas?.slot.index) this.#replicas.indexBytes = stats.indexBytes;
        options.onStats(slot, stats);
      },
      onReport: (slot: number, report: WorkerReport) =>
        options.onEvent({ kind: 'workerReport', slot, report }),
      onReady: (slot: number) => {
        this.#replicated.ready(slot);
        options.onEvent({ kind: 'workerReady', slot });
      },
      onLost: (slot: number, cause: unknown, killer: PendingRequest | null) => {
        this.#replicated.lost(slot);
        if (killer !== null) refused.remember(killer.label(), killer.bodyBytes());
        options.onEvent({ kind: 'workerLost', slot, cause, requestRemembered: killer !== null });
      },
      onFatal: (slot: number, cause: unknown) => {
        // Without replicas on this thread workers answer.
        if (slot < options.workerCount) options.onFatal(cause);
      },
      onRefused: (bound: QueueBound) => options.onRefused?.(bound),
      onBudgetRefused: (refusal: BudgetRefusal, origin: CallOrigin | undefined) =>
        options.onBudgetRefused?.(refusal, origin),
      modelJson: (projectId: string, version: number) =>
        this.#models.get(projectId, version) ?? options.findModel?.(projectId, version),
    };
  }

  async start(): Promise<void> {
    await Promise.all(this.#slots.map((slot) => slot.start()));
    await this.#replicas?.slot.start();
    this.#replication.start();
  }

  get isReady(): boolean {
    return this.#slots.every((slot) => slot.isReady);
  }

  get replicatedCount(): number {
    return this.#replicated.count;
  }

  get localReplicas(): LocalReplicaFigures {
    return this.#replicas?.figures(this.#replicated.localReplicaCount) ?? NO_REPLICAS;
  }

  get pendingCount(): number {
    return this.#slots.reduce((sum, slot) => sum + slot.requests.count, 0);
  }

  raw(
    method: RawMethod,
    format: WireFormat,
    body: Uint8Array,
    scope: ReadScope,
    expected: RawScope,
    onAnswer: (answer: RawAnswer) => void,
  ): Cancellable | null {
    const owner = this.#queues.of(scope);
    const opcode = rawOpcode(method, format);
    let onWorkerAnswer = onAnswer;
    const replicated = method === 'check' ? this.#replicated.localReplicaOf(owner) : null;
    if (replicated !== null && this.#replicas !== null) {
      const check = { format, body, scope, expected };
      const answer = this.#replicas.check(replicated, opcode, check);
      if (answer === 'allowed' || answer === 'denied') {
        onAnswer(answer === 'allowed' ? ALLOWED : DENIED);
        return null;
      }
      if (answer !== 'left') {
        onWorkerAnswer = (given) => {
          if (given.kind === 'allowed' || given.kind === 'denied') answer.isProven = true;
          onAnswer(given);
        };
      }
    }
    this.#requestId += 1;
    const route = this.#replicated.routeOf(owner, scope);
    const request = new PendingRawRequest(
      this.#requestId,
      route?.queue ?? owner,
      route?.scope ?? scope,
      opcode,
      body,
      expected,
      onWorkerAnswer,
    );
    return this.#submit(request);
  }

  refusalBefore(shard: ShardKey | undefined, bytes: number, deadlineMs: number): AppError | null {
    return this.#admission.refusalBefore(shard, bytes, deadlineMs);
  }

  async query<K extends QueryKind>(
    scope: ReadScope,
    kind: K,
    args: QueryArgs[K],
    signal?: AbortSignal,
    onPart?: (part: QueryAnswer<K>) => void,
  ): Promise<QueryAnswer<K>> {
    // Kind and args are correlated by the parameters, and the worker answers a query with the result of its kind.
    const call = { kind, args } as QueryCall;
    const toPart = onPart as ((part: QueryAnswer) => void) | undefined;
    return (await this.#call(scope, call, signal, toPart)) as QueryAnswer<K>;
  }

  async setModel(projectId: string, modelVersion: number, modelJson: string): Promise<void> {
    this.#models.set(projectId, modelVersion, modelJson);
    await Promise.all(this.#slots.map((slot) => slot.setModel(projectId, modelVersion, modelJson)));
  }

  checkIndexes(): Promise<FsckTotals> {
    return this.#fsck.during(() => Promise.all(this.#holders.all.map((slot) => slot.fsck())));
  }

  applyCommitted(changes: readonly CommittedChange[]): void {
    for (const change of changes) {
      for (const slot of this.#holders.of(change)) slot.control?.committed(change);
    }
  }

  applyCarried(carried: CarriedChanges): void {
    for (const slot of this.#holders.of(carried)) slot.control?.carried(carried);
  }

  hint(shard: ShardKey | null, revision: number): void {
    if (shard !== null) {
      for (const slot of this.#holders.of(shard)) slot.control?.hint(shard, revision);
      return;
    }
    for (const slot of this.#holders.all) slot.control?.hint(null, revision);
  }

  warm(shard: ShardKey): Promise<void> {
    return this.#holders.ownerOf(shard).warm(shard);
  }

  async drain(timeoutMs: number): Promise<void> {
    this.#admission.isDraining = true;
    const untilMs = performance.now() + timeoutMs;
    while (this.pendingCount > 0 && performance.now() < untilMs) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async stop(): Promise<void> {
    this.#admission.isDraining = true;
    this.#replication.stop();
    await Promise.all(this.#holders.all.map((slot) => slot.stop()));
  }

  #call(
    scope: ReadScope,
    query: QueryCall,
    signal: AbortSignal | undefined,
    onPart?: (part: QueryAnswer) => void,
  ): Promise<QueryAnswer> {
    if (signal?.aborted === true) return Promise.reject(cancelled());
    this.#requestId += 1;
    const owner = this.#queues.of(scope);
    const route = this.#replicated.routeOf(owner, scope);
    const call = {
      requestId: this.#requestId,
      queue: route?.queue ?? owner,
      scope: route?.scope ?? scope,
      query,
      signal,
      onPart,
    };
    return callWorker(call, (request) => this.#submit(request));
  }

  #submit(request: PendingRawRequest | ParsedRequest): Cancellable {
    const slot = this.#slots[request.shard.slot] as WorkerSlot; // by slotOfShard
    request.shard.epoch = request.scope.epoch;
    const problem = this.#admission.refusalOf(request) ?? slot.enqueue(request);
    if (problem !== null) {
      // Never inside the call: the caller has no handle yet.
      queueMicrotask(() => {
        if (request.state === 'done') return;
        request.state = 'done';
        request.fail(problem);
      });
      return { cancel: () => void (request.state = 'done') };
    }
    return { cancel: () => slot.cancel(request) };
  }

  #dropLocalReplica(shard: ShardKey): void {
    const owner = this.#queues.peek(shard);
    if (owner !== undefined) this.#replicated.dropLocalReplica(owner);
  }
}
