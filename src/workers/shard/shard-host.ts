import type { IndexDifference } from '../../cache/index-audit.ts';
import type { NamespaceModel } from '../../model/namespace-model.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type {
  AnswerBatch,
  ControlMessage,
  RecentShard,
  RequestBatch,
  ScopeEntry,
  WorkerRequest,
  WorkerStats,
} from '../../protocol/messages.ts';
import { RAW_FIELDS } from '../../protocol/messages.ts';
import { shardHash } from '../../protocol/shard-routing.ts';
import { type ShownPlace, ShownSeqs } from '../../protocol/shown-seqs.ts';
import { AppError, errorToData } from '../../shared/app-error.ts';
import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import { AnswerWriter } from '../jobs/answer-writer.ts';
import { BatchBodies } from '../jobs/batch-bodies.ts';
import { DecisionStats } from '../jobs/decision-stats.ts';
import { JobContext } from '../jobs/job-context.ts';
import type { Job } from '../jobs/job.ts';
import { parsedJob } from '../jobs/parsed-jobs.ts';
import { rawJob } from '../jobs/raw-jobs.ts';
import { questionJob } from '../questions/question-job.ts';
import { textOfError } from './error-text.ts';
import { IndexBudget } from './index-budget.ts';
import { IndexFsck } from './index-fsck.ts';
import { LoadPlaces } from './load-places.ts';
import { ModelRegistry } from './model-registry.ts';
import { ModelWaiters } from './model-waiters.ts';
import { type ActorHost, ShardActor } from './shard-actor.ts';
import { unavailable } from './shard-errors.ts';
import type { ShardHostOptions } from './shard-host-options.ts';
import type { ShardReason } from './shard-reason.ts';
import { ShardTurns } from './shard-turns.ts';
import { SmallShards } from './small-shards.ts';

const SWEEP_MS = 20;
const STATS_MS = 250;
const HEADS_PER_QUERY_MAX = 1_000;
/** With every eighth report, so every two seconds, and after loads with every second one. */
const RECENT_EVERY = 8;
const RECENT_EVERY_AFTER_LOADS = 2;
const RECENT_SHARDS_MAX = 1_000;
/**
 * Of the caches of one loaded shard and model, split as HotEvaluator does. What each cache gains at 101 k and at 1.008 M
 * tuples stands in docs/caching.md (engine-caches).
 */
const CLOSURE_BYTES_MAX = 32 * 1024 * 1024;
const CANCELLED_MAX = 65_536;
const INDEX_DIFFERS = 'index_differs';

/**
 * One worker without its thread: the actors of its shards, their turns, models, memory and
 * statistics. A batch is handled without awaiting: what short requests can be answered within one
 * slice is in the reply, the rest is posted when it is ready. Shards take turns of one slice each,
 * and between two looks at the messages there is at most one slice of long work.
 */
export class ShardHost {
  readonly #options: ShardHostOptions;
  readonly #actors = new Map<string, Map<string, ShardActor>>();
  readonly #models = new ModelRegistry();
  readonly #writer = new AnswerWriter();
  readonly #modelWaiters = new ModelWaiters((projectId, version) =>
    this.#writer.modelWanted(projectId, version),
  );
  readonly #stats = new DecisionStats((refusal) => this.#writer.refusal(refusal));
  readonly #budget: IndexBudget;
  readonly #small: SmallShards;
  readonly #loads: LoadPlaces;
  readonly #context: JobContext;
  readonly #actorHost: ActorHost;
  readonly #timers: NodeJS.Timeout[] = [];
  /** Shards with requests that wait for a newer state of them. */
  readonly #waiting = new Set<ShardActor>();
  /** Of shards for which other workers answer as well, by key. Outlives the index. */
  readonly #shown = new Map<string, ShownPlace>();
  readonly #counts = { load: 0, loadFailure: 0, catchUp: 0 };
  readonly #turns: ShardTurns;
  readonly #fsck: IndexFsck;
  /** Of the message being accepted. */
  #lastScope: ScopeEntry | null = null;
  #lastActor: ShardActor | null = null;
  #lastModel: NamespaceModel | null = null;
  #reportCount = 0;
  #hasNewLoads = false;
  #isInTurn = false;
  #isTurnScheduled = false;
  #isPolling = false;
  #isStoreAway = false;
  #isStopped = false;

  constructor(options: ShardHostOptions) {
    this.#options = options;
    const { settings, clock } = options;
    const { underEvaluation } = options;
    this.#small = new SmallShards({
      bytesMax: settings.indexBytesMax,
      cacheBytesOf: (reader) => this.#context.cacheBytesOf(reader),
    });
    this.#budget = new IndexBudget(settings.indexBytesMax, () => this.#small.bytes);
    this.#turns = new ShardTurns({
      clock,
      sliceMs: settings.sliceMs,
      mark: (requestId) => {
        underEvaluation[0] = requestId;
      },
      onWork: (actor) => {
        this.#budget.touch(actor);
        if (!this.#isInTurn) this.#scheduleTurn();
      },
      onRan: (actor) => {
        if (actor.isEvictable === this.#budget.isPinned(actor)) this.#settled(actor);
      },
    });
    // One connection stays free for catching up while snapshots are being read.
    this.#loads = new LoadPlaces(options.source.loadPlaces ?? Math.max(1, settings.poolMax - 1));
    this.#context = new JobContext({
      writer: this.#writer,
      stats: this.#stats,
      clock,
      batchBudgetFactor: settings.batchBudgetFactor,
      batchItemsMax: settings.batchItemsMax,
      evaluator: {
        depthMax: settings.depthMax,
        closureBytesMax: CLOSURE_BYTES_MAX,
        ...options.engine,
      },
    });
    this.#fsck = new IndexFsck({
      clock,
      source: options.source,
      rowsPerSecond: settings.fsckRowsPerSecond,
      intervalMs: settings.fsckIntervalMs,
      sliceMs: options.pace?.fsckSliceMs,
      onFailed: (error) => this.#failed(error),
      onDifference: (actor, difference) => this.#differs(actor, difference),
      onUnfinished: (actor, error) => this.#report('index_not_compared', actor.key, error),
    });
    this.#actorHost = {
      clock,
      source: options.source,
      loadTimeoutMs: settings.loadTimeoutMs,
      createIndex: (user) => options.createIndex(this.#small, user),
      cacheBytesOf: (index) => {
        const reader = index.ownReader === undefined ? index.reader : index.ownReader;
        return reader === null ? 0 : this.#context.cacheBytesOf(reader);
      },
      pace: options.pace,
      failed: (error) => this.#failed(error),
      withLoadPlace: (load) => this.#loads.run(load),
      runnable: (actor) => this.#turns.addShort(actor),
      longRunnable: (actor) => this.#turns.addLong(actor),
      waits: (actor) => void this.#waiting.add(actor),
      settled: (actor) => this.#settled(actor),
      counted: (what) => {
        this.#counts[what] += 1;
      },
      report: (event, shard, error) => this.#report(event, shard, error),
    };
  }

  /** Starts the timers: deadlines of waiting requests, statistics, the poll backstop. */
  start(): void {
    this.#every(SWEEP_MS, () => this.#sweep());
    this.#every(STATS_MS, () => this.#postStats());
    this.#every(this.#options.settings.pollMs, () => void this.poll());
    this.#fsck.start();
  }

  stop(): void {
    this.#isStopped = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#fsck.stop();
  }

  /** One message of the gateway. Never awaits. The answers must be sent before anything else happens (see AnswerWriter). */
  handle(batch: RequestBatch): AnswerBatch {
    assert(!this.#isInTurn, 'messages and turns come one after the other');
    this.#isInTurn = true;
    try {
      // The port hands over messages without a turn of the loop while there are more.
      if (this.#turns.isLongOverdue) this.#turns.runLong();
      for (const message of batch.control) this.#control(message);
      for (const requestId of batch.cancelled) this.#context.cancelled.add(requestId);
      const bodies = new BatchBodies(batch.bodies);
      this.#acceptRaw(batch, bodies);
      for (const request of batch.requests) this.#acceptParsed(batch, request);
      this.#lastScope = null;
      this.#lastActor = null;
      this.#turns.runShort();
      bodies.leave();
    } finally {
      this.#isInTurn = false;
    }
    this.#scheduleTurn();
    return this.#writer.take();
  }

  /** The loaded shard, for tests and statistics. */
  actor(shard: ShardKey): ShardActor | undefined {
    return this.#actors.get(shard.projectId)?.get(shard.tenantId);
  }

  /** What the jobs of this host share. */
  get jobs(): JobContext {
    return this.#context;
  }

  /** The model that a scope names, for a question that does not wait for it; undefined: it is asked for. */
  modelOf({
    projectId,
    modelVersion,
  }: Pick<ScopeEntry, 'projectId' | 'modelVersion'>): NamespaceModel | undefined {
    const model = this.#models.get(projectId, modelVersion);
    if (model !== undefined) return model;
    this.#modelWaiters.add(projectId, modelVersion, null);
    if (!this.#isInTurn) this.#scheduleTurn();
    return undefined;
  }

  get indexBytes(): number {
    return this.#budget.bytes;
  }

  /** Asks the store for the heads of all loaded shards: the backstop for lost hints. */
  async poll(): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      const loaded = [...this.#eachActor()].filter((actor) => actor.isLoaded);
      this.#small.reaccount();
      for (const actor of loaded) this.#budget.reaccount(actor);
      for (let i = 0; i < loaded.length; i += HEADS_PER_QUERY_MAX) {
        await this.#pollSome(loaded.slice(i, i + HEADS_PER_QUERY_MAX));
      }
      this.#isStoreAway = false;
    } catch (error) {
      if (!this.#isStoreAway && !this.#isStopped) this.#report('poll_failed', null, error);
      this.#isStoreAway = true;
    } finally {
      this.#isPolling = false;
    }
  }

  async #pollSome(actors: readonly ShardActor[]): Promise<void> {
    const heads = await this.#options.source.readHeads(actors.map((actor) => actor.key));
    for (const head of heads) {
      const actor = this.actor(head);
      if (actor === undefined || !actor.isLoaded) continue;
      const { epoch, seq, stamp } = actor.position;
      // A watermark that moved past the head meanwhile is caught up with, which finds nothing.
      const isSame = head.epoch === epoch && head.seq === seq && head.stamp === stamp;
      if (!isSame) actor.hint(0);
    }
  }

  // --- requests -------------------------------------------------------------------------------

  #acceptRaw(batch: RequestBatch, bodies: BatchBodies): void {
    const { raw } = batch;
    const waitUntilMs = this.#waitUntilMs;
    for (let field = 0; field < raw.length; field += RAW_FIELDS) {
      const job = rawJob(this.#context, batch, bodies, field, waitUntilMs);
      this.#accept(job);
    }
  }

  #acceptParsed(batch: RequestBatch, request: WorkerRequest): void {
    const scope = batch.scopes[request.scope];
    if (scope === undefined) {
      this.#writer.error(request.requestId, errorToData(new Error('a request without scope')));
      return;
    }
    const waitUntilMs = this.#waitUntilMs;
    this.#accept(
      request.method === 'question'
        ? questionJob(this.#context, request, scope, waitUntilMs)
        : parsedJob(this.#context, request, scope, waitUntilMs),
    );
  }

  /** How long a request without a nearer deadline waits for its shard. */
  get #waitUntilMs(): number {
    const { clock, settings } = this.#options;
    return performance.timeOrigin + clock.monotonicMs() + settings.loadTimeoutMs;
  }

  #accept(job: Job): void {
    const { scope } = job;
    // Requests of one shard come in runs, which share their scope object within a message.
    if (scope === this.#lastScope && this.#lastActor !== null) {
      if (DEBUG_ASSERTIONS) {
        const { projectId, tenantId } = this.#lastActor.key;
        const isItsShard = projectId === scope.projectId && tenantId === scope.tenantId;
        assert(isItsShard, 'a scope goes to the actor of its shard');
      }
      job.model = this.#lastModel;
      this.#lastActor.submit(job);
      return;
    }
    const model = this.#models.get(scope.projectId, scope.modelVersion);
    if (model === undefined) {
      this.#modelWaiters.add(scope.projectId, scope.modelVersion, job);
      return;
    }
    const actor = this.#actorOf(scope);
    this.#lastScope = scope;
    this.#lastActor = actor;
    this.#lastModel = model;
    job.model = model;
    actor.submit(job);
  }

  #control(message: ControlMessage): void {
    switch (message.kind) {
      case 'setModel':
        this.#setModel(message.ackId, message.projectId, message.modelVersion, message.modelJson);
        break;
      case 'modelUnknown':
        for (const job of this.#modelWaiters.take(message.projectId, message.modelVersion)) {
          job.fail(unavailable('the model of the project is not known yet'));
        }
        break;
      case 'fsck':
        void this.#fsck.checkAll().then(() => {
          this.#writer.ack(message.ackId);
          this.#postStats();
        });
        break;
      case 'committed':
        this.actor(message.change)?.committed(message.change);
        break;
      case 'warm':
        this.#warm(this.#actorOf(message.shard), message.ackId);
        break;
      case 'join': {
        const { ackId, shard, memory, place } = message;
        const shown = { seqs: new ShownSeqs(memory), place };
        this.#shown.set(keyOf(shard), shown);
        const actor = this.#actorOf(shard);
        actor.shown = shown;
        actor.tellShown();
        this.#warm(actor, ackId);
        break;
      }
      case 'leave':
        this.#leave(message.shard, message.isOwner);
        break;
      case 'carried':
        this.actor(message.carried)?.carried(message.carried);
        break;
      case 'hint':
        if (message.shard === null) void this.poll();
        else this.actor(message.shard)?.hint(message.seq);
        break;
    }
  }

  #warm(actor: ShardActor, ackId: number): void {
    actor.warm(() => {
      this.#writer.ack(ackId);
      if (!this.#isInTurn) this.#scheduleTurn();
    });
  }

  /** A replica in use goes later, as the index used least recently. */
  #leave(shard: ShardKey, isOwner: boolean): void {
    this.#shown.delete(keyOf(shard));
    const actor = this.actor(shard);
    if (actor === undefined) return;
    actor.shown = null;
    if (!isOwner && actor.isEvictable) actor.evict();
  }

  #setModel(ackId: number, projectId: string, modelVersion: number, modelJson: string): void {
    try {
      this.#models.set(projectId, modelVersion, modelJson);
    } catch (error) {
      if (ackId !== 0) this.#writer.ack(ackId, errorToData(error));
      for (const job of this.#modelWaiters.take(projectId, modelVersion)) {
        job.fail(new AppError<ShardReason>('INTERNAL', 'internal error', {}, error));
      }
      return;
    }
    if (ackId !== 0) this.#writer.ack(ackId);
    for (const job of this.#modelWaiters.take(projectId, modelVersion)) this.#accept(job);
  }

  // --- turns ----------------------------------------------------------------------------------

  #scheduleTurn(): void {
    if (this.#isTurnScheduled || this.#isStopped) return;
    if (this.#turns.isIdle && this.#writer.isEmpty) return;
    this.#isTurnScheduled = true;
    setImmediate(() => {
      this.#isTurnScheduled = false;
      this.#guarded(() => this.#turn());
    });
  }

  #turn(): void {
    this.#isInTurn = true;
    try {
      this.#turns.runShort();
      // Finished answers do not wait for the slice of others.
      this.#postAnswers();
      this.#turns.runLong();
    } finally {
      this.#isInTurn = false;
    }
    this.#postAnswers();
    this.#scheduleTurn();
  }

  #postAnswers(): void {
    if (!this.#writer.isEmpty && !this.#isStopped) this.#options.post(this.#writer.take());
  }

  #settled(actor: ShardActor): void {
    this.#budget.settled(actor);
    this.#fsck.settled(actor);
    if (actor.state === 'unloaded' && actor.depth === 0) this.#forget(actor);
    // Failures were written outside of a turn.
    if (!this.#isInTurn) this.#scheduleTurn();
  }

  #actorOf(shard: ShardKey): ShardActor {
    let tenants = this.#actors.get(shard.projectId);
    if (tenants === undefined) {
      tenants = new Map();
      this.#actors.set(shard.projectId, tenants);
    }
    let actor = tenants.get(shard.tenantId);
    if (actor === undefined) {
      const key = { projectId: shard.projectId, tenantId: shard.tenantId };
      // Before its snapshot is asked for: see HeldShards.
      this.#options.held?.add(key);
      actor = new ShardActor(key, this.#actorHost);
      actor.shown = this.#shown.get(keyOf(key)) ?? null;
      tenants.set(shard.tenantId, actor);
    }
    return actor;
  }

  #forget(actor: ShardActor): void {
    const { projectId, tenantId } = actor.key;
    const tenants = this.#actors.get(projectId);
    if (tenants?.get(tenantId) !== actor) return;
    tenants.delete(tenantId);
    this.#waiting.delete(actor);
    this.#options.held?.remove(actor.key);
    if (tenants.size === 0) this.#actors.delete(projectId);
  }

  *#eachActor(): Generator<ShardActor> {
    for (const tenants of this.#actors.values()) yield* tenants.values();
  }

  #report(event: string, shard: ShardKey | null, error: unknown): void {
    this.#writer.report({
      event,
      shardHash: shard === null ? '' : shardHash(shard).toString(16).padStart(8, '0'),
      error: textOfError(error),
    });
    if (!this.#isInTurn) this.#scheduleTurn();
  }

  // --- time -----------------------------------------------------------------------------------

  #every(ms: number, work: () => void): void {
    const timer = setInterval(() => this.#guarded(work), ms);
    timer.unref();
    this.#timers.push(timer);
  }

  /** Runs what nobody waits for. */
  #guarded(work: () => void): void {
    const { onFailed } = this.#options;
    if (onFailed === undefined) return work();
    try {
      work();
    } catch (error) {
      onFailed(error);
    }
  }

  #failed(error: unknown): void {
    this.#guarded(() => {
      throw error;
    });
  }

  #sweep(): void {
    const nowMs = performance.timeOrigin + this.#options.clock.monotonicMs();
    let open = 0;
    for (const actor of this.#waiting) {
      actor.sweep(nowMs);
      if (!actor.hasWaiting) this.#waiting.delete(actor);
      open += actor.depth;
    }
    if (open === 0 && !this.#turns.isIdle) open = 1;
    open += this.#modelWaiters.sweep(nowMs, () =>
      unavailable('the model of the project did not arrive'),
    );
    const { cancelled } = this.#context;
    if (open === 0 || cancelled.size > CANCELLED_MAX) cancelled.clear();
    this.#postAnswers();
  }

  #postStats(): void {
    this.#writer.stats(this.#takeStats());
    this.#postAnswers();
  }

  #takeStats(): WorkerStats {
    let shardsLoaded = 0;
    let tuples = 0;
    let watermarkLagMax = 0;
    let queueDepth = 0;
    for (const actor of this.#eachActor()) {
      if (actor.isLoaded) shardsLoaded += 1;
      tuples += actor.tupleCount;
      watermarkLagMax = Math.max(watermarkLagMax, actor.lag);
      queueDepth += actor.depth;
    }
    const { load, loadFailure, catchUp } = this.#counts;
    this.#hasNewLoads ||= load > 0;
    const every = this.#hasNewLoads ? RECENT_EVERY_AFTER_LOADS : RECENT_EVERY;
    const isRecentDue = this.#reportCount++ % every === 0;
    if (isRecentDue) this.#hasNewLoads = false;
    this.#counts.load = 0;
    this.#counts.loadFailure = 0;
    this.#counts.catchUp = 0;
    return {
      ...this.#stats.take(),
      indexBytes: this.#budget.bytes,
      shardsLoaded,
      tuples,
      watermarkLagMax,
      queueDepth,
      shardLoads: load,
      shardLoadFailures: loadFailure,
      shardEvictions: this.#budget.takeEvictions(),
      catchUps: catchUp,
      fsck: this.#fsck.takeStats(),
      ...(isRecentDue ? { recentShards: this.#recentShards() } : {}),
    };
  }

  #recentShards(): readonly RecentShard[] {
    return this.#budget
      .recent(RECENT_SHARDS_MAX)
      .map(({ key, indexBytes }) => ({ ...key, indexBytes }));
  }

  /** An index that is not what is stored may answer wrongly: it goes at once. */
  #differs(actor: ShardActor, { part, message, rows, differing }: IndexDifference): void {
    const counts = `${differing} of ${rows} rows compared differ, ${actor.tupleCount} tuples in the index`;
    this.#report(
      INDEX_DIFFERS,
      actor.key,
      `${part}: ${message} (${counts}, seq ${actor.watermark})`,
    );
    actor.reload();
  }
}

function keyOf({ projectId, tenantId }: ShardKey): string {
  return `${projectId}\0${tenantId}`;
}
