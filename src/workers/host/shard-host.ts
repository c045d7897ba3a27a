import type { IndexDifference } from '../../cache/index-audit.ts';
import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type {
  AnswerBatch,
  ControlMessage,
  RequestBatch,
  ScopeEntry,
} from '../../protocol/messages.ts';
import { PublishedWatermarks } from '../../protocol/published-watermarks.ts';
import { shardHash } from '../../protocol/shard-routing.ts';
import { DecisionStats } from '../counts/decision-stats.ts';
import { IndexBudget } from '../indexes/index-budget.ts';
import { IndexFsck } from '../indexes/index-fsck.ts';
import { SmallShards } from '../indexes/small-shards.ts';
import { AnswerWriter } from '../jobs/answer-writer.ts';
import { BatchBodies } from '../jobs/batch-bodies.ts';
import { JobContext } from '../jobs/job-context.ts';
import type { ActorHost, ShardActor } from '../shard/shard-actor.ts';
import { textOfError } from '../shard/shard-errors.ts';
import { LoadSlots } from '../source/batched-loads.ts';
import { HeadPoll } from './head-poll.ts';
import { HostModels } from './host-models.ts';
import { HostStatistics } from './host-statistics.ts';
import { HostTurns } from './host-turns.ts';
import { ShardActors } from './shard-actors.ts';
import type { ShardHostOptions } from './shard-host-options.ts';
import { ShardInbox } from './shard-inbox.ts';
import { ShardTurns } from './shard-turns.ts';

const SWEEP_MS = 20;
const STATS_MS = 250;
/**
 * Bounds of the caches of one loaded shard and model, split as HotEvaluator does. The gain of each cache at 101 k and
 * at 1.008 M tuples is in docs/caching.md.
 */
const MEMBERSHIP_BYTES_MAX = 32 * 1024 * 1024;
const CANCELLED_MAX = 65_536;
const INDEX_DIFFERS = 'index_differs';

/**
 * One worker without its thread: the actors of its shards, their turns, models, memory and
 * statistics. A batch is handled without awaiting: what short requests can be answered within one
 * slice is in the reply, the rest is posted when it is ready. Shards take turns of one slice each,
 * and between two polls of the messages there is at most one slice of long work.
 */
export class ShardHost {
  readonly #options: ShardHostOptions;
  readonly #writer = new AnswerWriter();
  readonly #models: HostModels;
  readonly #actors: ShardActors;
  readonly #inbox: ShardInbox;
  readonly #statistics: HostStatistics;
  readonly #poll: HeadPoll;
  readonly #budget: IndexBudget;
  readonly #small: SmallShards;
  readonly #context: JobContext;
  readonly #timers: NodeJS.Timeout[] = [];
  /** Shards with requests that wait for a newer state of them. */
  readonly #waiting = new Set<ShardActor>();
  readonly #shardTurns: ShardTurns;
  readonly #turns: HostTurns;
  readonly #fsck: IndexFsck;

  constructor(options: ShardHostOptions) {
    this.#options = options;
    const { settings, clock } = options;
    this.#small = new SmallShards({
      bytesMax: settings.indexBytesMax,
      cacheBytesOf: (reader) => this.#context.engines.cacheBytesOf(reader),
    });
    const { indexBytesMax } = settings;
    this.#models = new HostModels(this.#writer, indexBytesMax, (job) => this.#inbox.accept(job));
    const besideBytes = (): number => this.#small.bytes + this.#models.bytes;
    this.#budget = new IndexBudget(indexBytesMax, besideBytes);
    this.#shardTurns = this.#newShardTurns();
    const { post, onFailed } = options;
    this.#turns = new HostTurns({ turns: this.#shardTurns, writer: this.#writer, post, onFailed });
    const decisions = new DecisionStats((refusal) => this.#writer.refusal(refusal));
    this.#context = new JobContext({
      writer: this.#writer,
      stats: decisions,
      clock,
      batchBudgetFactor: settings.batchBudgetFactor,
      batchItemsMax: settings.batchItemsMax,
      evaluator: {
        depthMax: settings.depthMax,
        membershipBytesMax: MEMBERSHIP_BYTES_MAX,
        ...options.engine,
      },
    });
    this.#fsck = new IndexFsck({
      clock,
      source: options.source,
      rowsPerSecond: settings.fsckRowsPerSecond,
      intervalMs: settings.fsckIntervalMs,
      sliceMs: options.pace?.fsckSliceMs,
      onFailed: (error) => this.#turns.failed(error),
      onDifference: (actor, difference) => this.#differs(actor, difference),
      onUnfinished: (actor, error) => this.#report('index_not_compared', actor.key, error),
    });
    this.#actors = new ShardActors(this.#actorHost(), options.held);
    const actors = this.#actors;
    const budget = this.#budget;
    this.#inbox = new ShardInbox({ context: this.#context, models: this.#models, actors });
    this.#statistics = new HostStatistics({ decisions, actors, budget, fsck: this.#fsck });
    this.#poll = new HeadPoll({
      source: options.source,
      actors,
      onRound: (loaded) => {
        this.#small.reaccount();
        for (const actor of loaded) budget.reaccount(actor);
      },
      onFailed: (error) => {
        if (!this.#turns.isStopped) this.#report('poll_failed', null, error);
      },
    });
  }

  #newShardTurns(): ShardTurns {
    const { clock, settings, underEvaluation } = this.#options;
    return new ShardTurns({
      clock,
      sliceMs: settings.sliceMs,
      mark: (requestId) => {
        underEvaluation[0] = requestId;
      },
      onWork: (actor) => {
        this.#budget.touch(actor);
        this.#turns.scheduleOutside();
      },
      onRan: (actor) => {
        if (actor.isEvictable === this.#budget.isPinned(actor)) this.#settled(actor);
      },
    });
  }

  /** The view that actors have of this worker. */
  #actorHost(): ActorHost {
    const { source, settings, clock, pace, createIndex } = this.#options;
    // One connection stays free for catching up while snapshots are being read.
    const loads = new LoadSlots(source.loadSlots ?? Math.max(1, settings.poolMax - 1));
    return {
      clock,
      source,
      loadTimeoutMs: settings.loadTimeoutMs,
      createIndex: (user) => createIndex(this.#small, user),
      cacheBytesOf: (index) => {
        const reader = index.ownReader === undefined ? index.reader : index.ownReader;
        return reader === null ? 0 : this.#context.engines.cacheBytesOf(reader);
      },
      pace,
      failed: (error) => this.#turns.failed(error),
      withLoadSlot: (load) => loads.run(load),
      runnable: (actor) => this.#shardTurns.addShort(actor),
      longRunnable: (actor) => this.#shardTurns.addLong(actor),
      waits: (actor) => void this.#waiting.add(actor),
      settled: (actor) => this.#settled(actor),
      counted: (what) => this.#statistics.count(what),
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
    this.#turns.stop();
    for (const timer of this.#timers) clearInterval(timer);
    this.#fsck.stop();
  }

  /** One message of the gateway. Never awaits. The answers must be sent before anything else happens (see AnswerWriter). */
  handle(batch: RequestBatch): AnswerBatch {
    this.#turns.enter();
    try {
      // The port hands over messages without a turn of the loop while there are more.
      if (this.#shardTurns.isLongOverdue) this.#shardTurns.runLong();
      for (const message of batch.control) this.#control(message);
      for (const requestId of batch.cancelled) this.#context.cancelled.add(requestId);
      const bodies = new BatchBodies(batch.bodies);
      this.#inbox.acceptAll(batch, bodies, this.#waitUntilMs);
      this.#shardTurns.runShort();
      bodies.leave();
    } finally {
      this.#turns.leave();
    }
    this.#turns.schedule();
    return this.#writer.drain();
  }

  /** The loaded shard, for tests and statistics. */
  actor(shard: ShardKey): ShardActor | undefined {
    return this.#actors.peek(shard);
  }

  /** The context that all jobs of this host share. */
  get jobs(): JobContext {
    return this.#context;
  }

  /** The model that a scope names, for a query that does not wait for it; undefined: it is requested. */
  modelOf(scope: Pick<ScopeEntry, 'projectId' | 'modelVersion'>): NamespaceModel | undefined {
    const model = this.#models.modelFor(scope, null);
    if (model === undefined) this.#turns.scheduleOutside();
    return model;
  }

  get indexBytes(): number {
    return this.#budget.bytes;
  }

  /** Asks the store for the head revisions of all loaded shards: the backstop for lost hints. */
  poll(): Promise<void> {
    return this.#poll.run();
  }

  /** How long a request without a nearer deadline waits for its shard. */
  get #waitUntilMs(): number {
    const { clock, settings } = this.#options;
    return performance.timeOrigin + clock.monotonicMs() + settings.loadTimeoutMs;
  }

  #control(message: ControlMessage): void {
    switch (message.kind) {
      case 'setModel':
        this.#models.install(
          message.ackId,
          message.projectId,
          message.modelVersion,
          message.modelJson,
        );
        break;
      case 'modelUnknown':
        this.#models.unknown(message.projectId, message.modelVersion);
        break;
      case 'fsck':
        void this.#fsck.checkAll().then(() => {
          this.#writer.ack(message.ackId);
          this.#postStats();
        });
        break;
      case 'committed':
        this.actor(message.change)?.changes.committed(message.change);
        break;
      case 'warm':
        this.#warm(this.#actors.of(message.shard), message.ackId);
        break;
      case 'join': {
        const { ackId, shard, memory, slot } = message;
        const actor = this.#actors.join(shard, {
          watermarks: new PublishedWatermarks(memory),
          slot,
        });
        this.#warm(actor, ackId);
        break;
      }
      case 'leave':
        this.#actors.leave(message.shard, message.isOwner);
        break;
      case 'carried':
        this.actor(message.carried)?.changes.carried(message.carried);
        break;
      case 'hint':
        if (message.shard === null) void this.poll();
        else this.actor(message.shard)?.changes.hint(message.revision);
        break;
    }
  }

  #warm(actor: ShardActor, ackId: number): void {
    actor.warm(() => {
      this.#writer.ack(ackId);
      this.#turns.scheduleOutside();
    });
  }

  #settled(actor: ShardActor): void {
    this.#budget.settled(actor);
    this.#fsck.settled(actor);
    if (actor.state === 'unloaded' && actor.depth === 0 && this.#actors.forget(actor)) {
      this.#waiting.delete(actor);
    }
    // Failures were written outside of a turn.
    this.#turns.scheduleOutside();
  }

  #report(event: string, shard: ShardKey | null, error: unknown): void {
    this.#writer.report({
      event,
      shardHash: shard === null ? '' : shardHash(shard).toString(16).padStart(8, '0'),
      error: textOfError(error),
    });
    this.#turns.scheduleOutside();
  }

  // --- time -----------------------------------------------------------------------------------

  #every(ms: number, work: () => void): void {
    const timer = setInterval(() => this.#turns.guarded(work), ms);
    timer.unref();
    this.#timers.push(timer);
  }

  #sweep(): void {
    const nowMs = performance.timeOrigin + this.#options.clock.monotonicMs();
    let open = 0;
    for (const actor of this.#waiting) {
      actor.sweep(nowMs);
      if (!actor.hasWaiting) this.#waiting.delete(actor);
      open += actor.depth;
    }
    if (open === 0 && !this.#shardTurns.isIdle) open = 1;
    open += this.#models.sweep(nowMs);
    const { cancelled } = this.#context;
    if (open === 0 || cancelled.size > CANCELLED_MAX) cancelled.clear();
    this.#turns.postAnswers();
  }

  #postStats(): void {
    this.#writer.stats(this.#statistics.drain());
    this.#turns.postAnswers();
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
