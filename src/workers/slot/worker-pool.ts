import type { CarriedChanges } from '../../model/carried-changes.ts';
import type { CheckQuery } from '../../model/check-query.ts';
import type { CommittedChange } from '../../model/committed-change.ts';
import type { ExpandTree } from '../../model/expand-tree.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type {
  ArgsMap,
  FsckStats,
  Method,
  ResultMap,
  WorkerReport,
  WorkerStats,
} from '../../protocol/messages.ts';
import { rawOpcode } from '../../protocol/messages.ts';
import { ModelStore } from '../../protocol/model-store.ts';
import type {
  QuestionAnswer,
  QuestionArgs,
  QuestionCall,
  QuestionKind,
} from '../../protocol/questions.ts';
import type { BudgetRefusal } from '../../protocol/read-figures.ts';
import type {
  BatchItem,
  BatchItemResult,
  CallOrigin,
  Cancellable,
  RawAnswer,
  RawMethod,
  RawScope,
  ReadScope,
  ShardClient,
  WireFormat,
} from '../../protocol/shard-client.ts';
import { slotOfShard } from '../../protocol/shard-routing.ts';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/clock.ts';
import { systemClock } from '../../shared/clock.ts';
import type { BatchStages } from '../../shared/stage-times.ts';
import type { NearAnswer, NearCheck } from '../shard/near-host.ts';
import type { NearTransport } from './near-transport.ts';
import { labelOfRaw, ParsedRequest, RawRequest } from './pending-request.ts';
import { type QueueBound, refusalOf } from './queue-bound.ts';
import { RefusedRequests } from './refused-requests.ts';
import { type PendingRequest, ShardQueue } from './shard-queue.ts';
import { ShardSpreading, type SpreadEvent, type SpreadingOptions } from './shard-spreading.ts';
import type { SlotReason } from './slot-reason.ts';
import type { CreateTransport } from './slot-transport.ts';
import type { SpreadShard } from './spread-shard.ts';
import { WorkerSlot } from './worker-slot.ts';

export type WorkerPoolEvent =
  | { readonly kind: 'workerReport'; readonly slot: number; readonly report: WorkerReport }
  | { readonly kind: 'workerReady'; readonly slot: number }
  | { readonly kind: 'shardSpread'; readonly slot: number; readonly spread: SpreadEvent }
  | {
      readonly kind: 'workerLost';
      readonly slot: number;
      readonly cause: unknown;
      readonly requestRemembered: boolean;
    };

export type WorkerPoolOptions = {
  readonly workerCount: number;
  readonly createTransport: CreateTransport;
  /** Requests queued or in flight, per worker and per shard; beyond it: QUEUE_FULL. */
  readonly queueDepthMax: number;
  readonly shardQueueDepthMax: number;
  /**
   * Bytes of requests queued or in flight, per worker. One shard has at most what is left for the others.
   */
  readonly queueBytesMax: number;
  /** A request was refused with QUEUE_FULL. */
  readonly onRefused?: ((bound: QueueBound) => void) | undefined;
  /** An evaluation or a batch ran out of its read budget; some of those of a project are told of. */
  readonly onBudgetRefused?:
    | ((refusal: BudgetRefusal, origin: CallOrigin | undefined) => void)
    | undefined;
  /** A worker failed to start twice in a row: the instance must become not ready and exit. */
  readonly onFatal: (cause: unknown) => void;
  readonly onStats: (slot: number, stats: WorkerStats) => void;
  readonly onEvent: (event: WorkerPoolEvent) => void;
  /** The document of a model that the pool itself no longer holds, from who sets them. */
  readonly findModel?:
    | ((projectId: string, modelVersion: number) => string | undefined)
    | undefined;
  readonly clock?: Clock | undefined;
  /** Makes each life of the replicas on this thread; absent: there are none. */
  readonly createNear?: ((onTooMuch: (shard: ShardKey) => void) => NearTransport) | undefined;
  /** How far shards are spread that one worker cannot answer for; absent: not at all. */
  readonly spreading?: SpreadingOptions | undefined;
  /** Where stages are measured. */
  readonly stages?: BatchStages | undefined;
};

/** What comparisons of indexes have counted; see FsckStats. */
export type FsckTotals = Omit<FsckStats, 'ageMs'>;

/** Shards with a replica on the gateway's thread, and what became of their single Checks since the start. */
export type NearFigures = {
  readonly shards: number;
  /** Of their indexes and what is remembered beside them. */
  readonly indexBytes: number;
  readonly answered: number;
  /** To workers. */
  readonly left: number;
};

/** The decision side of one instance: a ShardClient with a life. Each step is idempotent. */
export interface WorkerPool extends ShardClient {
  /** Resolves when every worker said hello. Errors: rejects with the cause when one cannot start. */
  start(): Promise<void>;
  readonly isReady: boolean;
  /** Shards that several workers answer for. */
  readonly spreadCount: number;
  /** Of replicas on this thread. */
  readonly near: NearFigures;
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

const ALLOWED: RawAnswer = { kind: 'allowed' };
const DENIED: RawAnswer = { kind: 'denied' };

/** A longer one is not parsed for the replicas on this thread, on which it would take milliseconds. */
const NEAR_MODEL_LENGTH_MAX = 128 * 1024;

/** Queues that are kept, of idle shards too; each takes about 700 bytes. More while more have requests. */
const SHARD_QUEUES_MAX = 4_096;

class SlotPool implements WorkerPool {
  readonly #options: WorkerPoolOptions;
  /** Of the workers. */
  readonly #slots: readonly WorkerSlot[];
  /** Of the replicas on this thread, behind them. */
  readonly #nearSlot: WorkerSlot | null = null;
  #nearTransport: NearTransport | null = null;
  readonly #models = new ModelStore();
  readonly #refused: RefusedRequests;
  readonly #spreading: ShardSpreading;
  readonly #shards = new Map<string, Map<string, ShardQueue>>();
  #shardCount = 0;
  #shardCountMax = SHARD_QUEUES_MAX;
  #requestId = 0;
  #isDraining = false;
  #nearAnswered = 0;
  #nearLeft = 0;
  #nearIndexBytes = 0;
  #fsck: FsckTotals = { shards: 0, rows: 0, differences: 0, unfinished: 0 };

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    const clock = options.clock ?? systemClock;
    this.#refused = new RefusedRequests(() => clock.monotonicMs());
    const limits = { queueDepthMax: options.queueDepthMax, queueBytesMax: options.queueBytesMax };
    const reports = {
      onStats: (slot: number, stats: WorkerStats) => {
        this.#fsck = sumOf(this.#fsck, stats.fsck, 1);
        this.#spreading.report(slot, stats);
        if (slot === options.workerCount) this.#nearIndexBytes = stats.indexBytes;
        options.onStats(slot, stats);
      },
      onReport: (slot: number, report: WorkerReport) =>
        options.onEvent({ kind: 'workerReport', slot, report }),
      onReady: (slot: number) => {
        this.#spreading.ready(slot);
        options.onEvent({ kind: 'workerReady', slot });
      },
      onLost: (slot: number, cause: unknown, killer: PendingRequest | null) => {
        this.#spreading.lost(slot);
        if (killer !== null) this.#refused.add(killer.label(), killer.bodyBytes());
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
    this.#slots = Array.from(
      { length: options.workerCount },
      (_, index) =>
        new WorkerSlot(index, options.createTransport, limits, reports, clock, options.stages),
    );
    const { createNear } = options;
    if (createNear !== undefined) {
      const createTransport = (): NearTransport => {
        this.#nearTransport = createNear((shard) => this.#tooMuch(shard));
        return this.#nearTransport;
      };
      const modelJson = (projectId: string, version: number): string | undefined => {
        const json = reports.modelJson(projectId, version);
        return json !== undefined && json.length > NEAR_MODEL_LENGTH_MAX ? undefined : json;
      };
      const told = { ...reports, modelJson };
      this.#nearSlot = new WorkerSlot(options.workerCount, createTransport, limits, told, clock);
    }
    this.#spreading = new ShardSpreading(
      options.spreading ?? { workersMax: 1, indexBytesMax: 0 },
      this.#holders,
      () => this.#eachShard(),
      (spread) => {
        const [slot = 0] = spread.slots;
        options.onEvent({ kind: 'shardSpread', slot, spread });
      },
    );
  }

  async start(): Promise<void> {
    await Promise.all(this.#slots.map((slot) => slot.start()));
    await this.#nearSlot?.start();
    this.#spreading.start();
  }

  get isReady(): boolean {
    return this.#slots.every((slot) => slot.isReady);
  }

  get spreadCount(): number {
    return this.#spreading.count;
  }

  get near(): NearFigures {
    const { nearCount: shards } = this.#spreading;
    const indexBytes = this.#nearIndexBytes;
    return { shards, indexBytes, answered: this.#nearAnswered, left: this.#nearLeft };
  }

  get pendingCount(): number {
    return this.#slots.reduce((sum, slot) => sum + slot.pendingCount, 0);
  }

  raw(
    method: RawMethod,
    format: WireFormat,
    body: Uint8Array,
    scope: ReadScope,
    expected: RawScope,
    onAnswer: (answer: RawAnswer) => void,
  ): Cancellable | null {
    const owner = this.#shardQueue(scope);
    const opcode = rawOpcode(method, format);
    let onWorkerAnswer = onAnswer;
    const spread = method === 'check' ? this.#spreading.nearOf(owner) : null;
    if (spread !== null) {
      const { stages } = this.#options;
      const sinceMs = stages === undefined ? 0 : performance.now();
      const answer = this.#nearAnswer(spread, opcode, { format, body, scope, expected });
      stages?.tried(sinceMs);
      if (answer === 'allowed' || answer === 'denied') {
        spread.answered += 1;
        this.#nearAnswered += 1;
        onAnswer(answer === 'allowed' ? ALLOWED : DENIED);
        return null;
      }
      this.#nearLeft += 1;
      if (answer !== 'left') {
        onWorkerAnswer = (given) => {
          if (given.kind === 'allowed' || given.kind === 'denied') answer.isProven = true;
          onAnswer(given);
        };
      }
    }
    this.#requestId += 1;
    const way = this.#spreading.wayOf(owner, scope);
    const request = new RawRequest(
      this.#requestId,
      way?.queue ?? owner,
      way?.scope ?? scope,
      opcode,
      body,
      expected,
      onWorkerAnswer,
    );
    return this.#submit(request);
  }

  /** The answer of the replica on this thread, to what a worker would take and no worker has died of. Hot. */
  #nearAnswer(spread: SpreadShard, opcode: number, check: NearCheck): NearAnswer {
    const { owner } = spread;
    const { scope, body } = check;
    if (this.#isDraining || owner.pendingCount >= this.#options.shardQueueDepthMax) return 'left';
    if (this.#refused.size > 0 && this.#refused.isRefused(() => labelOfRaw(owner, opcode), body))
      return 'left';
    if (scope.deadlineMs <= performance.timeOrigin + performance.now()) return 'left';
    const raised = spread.raised(scope);
    if (raised === null) return 'left';
    const raisedCheck = raised === scope ? check : { ...check, scope: raised };
    return this.#nearTransport?.check(raisedCheck) ?? 'left';
  }

  refusalBefore(shard: ShardKey | undefined, bytes: number, deadlineMs: number): AppError | null {
    if (this.#isDraining) return shuttingDown();
    const bound = this.#boundBefore(shard, bytes, deadlineMs);
    if (bound === null) return null;
    this.#options.onRefused?.(bound);
    return refusalOf(bound);
  }

  #boundBefore(key: ShardKey | undefined, bytes: number, deadlineMs: number): QueueBound | null {
    const shard = key && this.#shards.get(key.projectId)?.get(key.tenantId);
    if (shard !== undefined) {
      if (shard.pendingCount >= this.#options.shardQueueDepthMax) return 'tenant_requests';
      return this.#slotOf(shard).boundReached(shard, bytes, deadlineMs);
    }
    let bound: QueueBound | null = null;
    for (const slot of this.#slots) {
      bound = slot.boundReached(undefined, bytes, deadlineMs);
      if (bound === null) return null;
    }
    return bound;
  }

  check(scope: ReadScope, query: CheckQuery, signal?: AbortSignal): Promise<boolean> {
    return this.#call(scope, 'check', query, signal);
  }

  batchCheck(
    scope: ReadScope,
    items: readonly BatchItem[],
    signal?: AbortSignal,
  ): Promise<readonly BatchItemResult[]> {
    return this.#call(scope, 'batchCheck', items, signal);
  }

  expand(scope: ReadScope, query: ArgsMap['expand'], signal?: AbortSignal): Promise<ExpandTree> {
    return this.#call(scope, 'expand', query, signal);
  }

  listObjects(
    scope: ReadScope,
    query: ArgsMap['listObjects'],
    signal?: AbortSignal,
  ): Promise<readonly string[]> {
    return this.#call(scope, 'listObjects', query, signal);
  }

  async ask<K extends QuestionKind>(
    scope: ReadScope,
    kind: K,
    args: QuestionArgs[K],
    signal?: AbortSignal,
    onPart?: (part: QuestionAnswer<K>) => void,
  ): Promise<QuestionAnswer<K>> {
    // Kind and args are correlated by the parameters, and the worker answers a question with the result of its kind.
    const call = { kind, args } as QuestionCall;
    const toPart = onPart as ((part: QuestionAnswer) => void) | undefined;
    const answer = await this.#call(scope, 'question', call, signal, toPart);
    return answer as QuestionAnswer<K>;
  }

  async setModel(projectId: string, modelVersion: number, modelJson: string): Promise<void> {
    this.#models.set(projectId, modelVersion, modelJson);
    await Promise.all(this.#slots.map((slot) => slot.setModel(projectId, modelVersion, modelJson)));
  }

  async checkIndexes(): Promise<FsckTotals> {
    const before = this.#fsck;
    await Promise.all(this.#holders.map((slot) => slot.fsck()));
    return sumOf(this.#fsck, before, -1);
  }

  applyCommitted(changes: readonly CommittedChange[]): void {
    for (const change of changes) {
      for (const slot of this.#holdersOf(change)) slot.control?.committed(change);
    }
  }

  applyCarried(carried: CarriedChanges): void {
    for (const slot of this.#holdersOf(carried)) slot.control?.carried(carried);
  }

  hint(shard: ShardKey | null, seq: number): void {
    if (shard !== null) {
      for (const slot of this.#holdersOf(shard)) slot.control?.hint(shard, seq);
      return;
    }
    for (const slot of this.#holders) slot.control?.hint(null, seq);
  }

  warm(shard: ShardKey): Promise<void> {
    return this.#slotOf(shard).warm(shard);
  }

  async drain(timeoutMs: number): Promise<void> {
    this.#isDraining = true;
    const untilMs = performance.now() + timeoutMs;
    while (this.pendingCount > 0 && performance.now() < untilMs) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async stop(): Promise<void> {
    this.#isDraining = true;
    this.#spreading.stop();
    await Promise.all(this.#holders.map((slot) => slot.stop()));
  }

  /** The slots whose hosts may hold shards. */
  get #holders(): readonly WorkerSlot[] {
    return this.#nearSlot === null ? this.#slots : [...this.#slots, this.#nearSlot];
  }

  #call<M extends Method>(
    scope: ReadScope,
    method: M,
    args: ArgsMap[M],
    signal: AbortSignal | undefined,
    onPart?: (part: QuestionAnswer) => void,
  ): Promise<ResultMap[M]> {
    const { promise, resolve, reject } = Promise.withResolvers<ResultMap[M]>();
    if (signal?.aborted === true) {
      reject(new AppError<SlotReason>('CANCELLED', 'the call was cancelled'));
      return promise;
    }
    this.#requestId += 1;
    let parts: string[] | null = null;
    let cancellable: Cancellable | null = null;
    const onAbort = (): void => {
      cancellable?.cancel();
      reject(new AppError<SlotReason>('CANCELLED', 'the call was cancelled'));
    };
    const owner = this.#shardQueue(scope);
    const way = this.#spreading.wayOf(owner, scope);
    const request = new ParsedRequest<M>(
      this.#requestId,
      way?.queue ?? owner,
      way?.scope ?? scope,
      method,
      args,
      (response) => {
        if (response.error !== undefined) return;
        if (response.method === 'listObjects' && (response.isPart || parts !== null)) {
          parts ??= [];
          for (const id of response.result) parts.push(id);
          if (response.isPart) return;
          // Of method listObjects, whose result is a list of ids.
          resolve(parts as readonly string[] as ResultMap[M]);
        } else if (response.method === 'question' && response.isPart) {
          onPart?.(response.result);
          return;
        } else {
          // The worker answers a request with the result of the method that it names.
          resolve(response.result as ResultMap[M]);
        }
        signal?.removeEventListener('abort', onAbort);
      },
      (error) => {
        signal?.removeEventListener('abort', onAbort);
        reject(error);
      },
    );
    cancellable = this.#submit(request);
    signal?.addEventListener('abort', onAbort, { once: true });
    return promise;
  }

  #submit(request: RawRequest | ParsedRequest): Cancellable {
    const slot = this.#slots[request.shard.slot] as WorkerSlot; // by slotOfShard
    request.shard.epoch = request.scope.epoch;
    const problem = this.#refusal(request) ?? slot.enqueue(request);
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

  #refusal(request: PendingRequest): AppError | null {
    if (this.#isDraining) return shuttingDown();
    if (request.shard.pendingCount >= this.#options.shardQueueDepthMax) {
      this.#options.onRefused?.('tenant_requests');
      return refusalOf('tenant_requests');
    }
    if (
      this.#refused.size > 0 &&
      this.#refused.isRefused(() => request.label(), request.bodyBytes())
    ) {
      return new AppError<SlotReason>(
        'REQUEST_REFUSED',
        'this request ended a decision worker before',
      );
    }
    return null;
  }

  #slotOf(shard: ShardKey): WorkerSlot {
    return this.#slots[slotOfShard(shard, this.#slots.length)] as WorkerSlot; // below length
  }

  /** The slots whose workers answer for a shard. */
  #holdersOf(shard: ShardKey): readonly WorkerSlot[] {
    const owner = this.#slotOf(shard);
    if (this.#spreading.isEmpty) return [owner];
    const queue = this.#shards.get(shard.projectId)?.get(shard.tenantId);
    const slots = queue && this.#spreading.slotsOf(queue);
    if (slots === null || slots === undefined) return [owner];
    return this.#holders.filter(({ index }) => slots.includes(index));
  }

  #tooMuch({ projectId, tenantId }: ShardKey): void {
    const owner = this.#shards.get(projectId)?.get(tenantId);
    if (owner !== undefined) this.#spreading.tooMuch(owner);
  }

  *#eachShard(): Generator<ShardQueue> {
    for (const tenants of this.#shards.values()) yield* tenants.values();
  }

  /** Two lookups instead of a hash and a joined key per request. */
  #shardQueue(key: ShardKey): ShardQueue {
    const known = this.#shards.get(key.projectId)?.get(key.tenantId);
    if (known !== undefined) return known;
    if (this.#shardCount >= this.#shardCountMax) this.#forgetIdleShards();
    let tenants = this.#shards.get(key.projectId);
    if (tenants === undefined) {
      tenants = new Map();
      this.#shards.set(key.projectId, tenants);
    }
    const { projectId, tenantId } = key;
    const slot = slotOfShard(key, this.#slots.length);
    const made = new ShardQueue(projectId, tenantId, slot);
    tenants.set(tenantId, made);
    this.#shardCount += 1;
    return made;
  }

  #forgetIdleShards(): void {
    for (const [projectId, tenants] of this.#shards) {
      for (const [tenantId, shard] of tenants) {
        if (shard.pendingCount === 0 && !this.#spreading.isSpread(shard)) {
          tenants.delete(tenantId);
          this.#shardCount -= 1;
        }
      }
      if (tenants.size === 0) this.#shards.delete(projectId);
    }
    // Where most of them are busy they are not all looked at for each new one.
    this.#shardCountMax = Math.max(SHARD_QUEUES_MAX, this.#shardCount * 2);
  }
}

function shuttingDown(): AppError {
  return new AppError<SlotReason>('SHUTTING_DOWN', 'the service is stopping');
}

function sumOf(one: FsckTotals, other: FsckTotals, sign: 1 | -1): FsckTotals {
  return {
    shards: one.shards + sign * other.shards,
    rows: one.rows + sign * other.rows,
    differences: one.differences + sign * other.differences,
    unfinished: one.unfinished + sign * other.unfinished,
  };
}
