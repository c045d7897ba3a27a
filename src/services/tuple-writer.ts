import type { Pool } from 'pg';
import type { ShardKey, TupleChange } from '../model/relation-tuple.ts';
import { AppError } from '../shared/app-error.ts';
import { assert } from '../shared/assert.ts';
import type { Clock } from '../shared/clock.ts';
import type { IdSource } from '../shared/ids.ts';
import { type PgFailure, classifyPgError, projectsWithOtherRules } from '../store/pg-errors.ts';
import { storeError } from '../store/store-error.ts';
import { CommitPublisher, type PublisherOptions } from './commit-publisher.ts';
import {
  ExclusiveWriter,
  type Preparation,
  storeUnavailable,
  type WriteTransaction,
} from './exclusive-writer.ts';
import { GroupRunner, NotAppliedError, outcomeUnknown } from './group-runner.ts';
import { OpenCommits } from './open-commits.ts';
import type { WriteMeta } from './ports.ts';
import type { ServicesReason } from './services-reason.ts';
import { type QueuedWrite, ShardQueue } from './shard-queue.ts';
import type { TupleWrites } from './tuple-writes.ts';
import type { WriteAdmission } from './write-admission.ts';
import type { WriteResult } from './write-group.ts';
import {
  certainRefusal,
  type ProjectRules,
  refusalOfUpdates,
  type WriteRules,
} from './write-rules.ts';

export type TupleWriterOptions = PublisherOptions & {
  /** Needs a connection per lane and some more for `exclusive`. */
  readonly pool: Pool;
  readonly admission: WriteAdmission;
  /** What is written must fit them. */
  readonly rules: WriteRules;
  readonly clock: Clock;
  readonly ids: IdSource;
  /** Groups in flight at once; the ordinary writes of a shard always take the same lane. */
  readonly lanes: number;
  /** One more lane, for writes of more updates than this, so that those of other shards do not wait behind them; absent: none. */
  readonly largeUpdatesMin?: number | undefined;
  /** Writes that wait or are in flight, at most; beyond, QUEUE_FULL. */
  readonly queuedWritesMax: number;
  /** Updates of all those writes, at most. */
  readonly queuedUpdatesMax: number;
  /** Writes and updates of one group, at most; a larger single write goes alone. */
  readonly groupWritesMax: number;
  readonly groupUpdatesMax: number;
  /** A write without a shorter deadline is answered after this long. */
  readonly writeTimeoutMs: number;
  readonly answerTimeoutMs: number;
  readonly attemptsMax: number;
  readonly retryDelayMs: number;
  /** Told of each error of the database that ends a write, or keeps one waiting. */
  readonly onStoreError?: ((error: unknown) => void) | undefined;
};

type Lane = {
  readonly runner: GroupRunner;
  ready: ShardQueue[];
  inFlight: readonly QueuedWrite[];
  /** False while what is in flight waits to be let in: it may then be answered as not applied. */
  isSent: boolean;
  isRunning: boolean;
  isScheduled: boolean;
  /** Shards that ShardHeads counts as unknown because of the group in flight. */
  unknown: ShardKey[];
};

const SWEEP_MS = 50;
/** What waits behind a group whose outcome cannot be known meanwhile is refused from then on, not kept until its deadline. */
const REFUSE_AFTER_MS = 1_000;
/** How long a prepared transaction waits for a shard's turn before it looks whether others wait for it. */
const PREPARED_TURN_MS = 20;

/**
 * All writes of this process to tuples pass here: per shard in order of arrival, grouped into one
 * commit with what else waits in the same lane.
 *
 * W1 A shard is held by one group or one exclusive caller at a time, so that this process has at
 *    most one connection on its row lock.
 * W2 Before a writer is answered its seq was raised in ShardHeads and handed to CommittedChanges.
 * W3 A write whose deadline passes is answered: DEADLINE_EXCEEDED if it was never sent, otherwise
 *    WRITE_OUTCOME_UNKNOWN, and its shard counts as unknown in ShardHeads until the outcome is known.
 *    So are, after REFUSE_AFTER_MS, those in flight while the server refuses, and as not applied those behind
 *    a group that an absent server keeps waiting.
 * W4 What is sent fits the rules of its project whose version it names (R1 of WriteRules).
 */
export class TupleWriter implements TupleWrites {
  readonly #options: TupleWriterOptions;
  readonly #publisher: CommitPublisher;
  readonly #commits: OpenCommits;
  readonly #exclusive: ExclusiveWriter;
  readonly #lanes: Lane[];
  readonly #queues = new Map<string, Map<string, ShardQueue>>();
  #writes = 0;
  #updates = 0;
  #sweep: NodeJS.Timeout | undefined;
  #isClosing = false;
  #isStopped = false;

  constructor(options: TupleWriterOptions) {
    assert(options.lanes > 0, 'at least one lane');
    this.#options = options;
    this.#publisher = new CommitPublisher(options);
    this.#commits = new OpenCommits(options);
    const parts = { publisher: this.#publisher, commits: this.#commits };
    this.#exclusive = new ExclusiveWriter({ ...options, ...parts });
    const lanes = options.lanes + (options.largeUpdatesMin === undefined ? 0 : 1);
    this.#lanes = Array.from({ length: lanes }, () => ({
      runner: new GroupRunner(options),
      ready: [],
      inFlight: [],
      isSent: false,
      isRunning: false,
      isScheduled: false,
      unknown: [],
    }));
  }

  /** Writes that wait or are in flight. */
  get depth(): number {
    return this.#writes;
  }

  /** To be called before reads are answered from memory again: see OpenCommits. */
  hideOpenCommits(): void {
    this.#commits.hideAll();
  }

  write(shard: ShardKey, updates: readonly TupleChange[], meta: WriteMeta): Promise<WriteResult> {
    const refusal = this.#refusal(updates.length);
    if (refusal !== undefined) return Promise.reject(refusal);
    assert(updates.length > 0, 'a write has updates');
    const { promise, resolve, reject } = Promise.withResolvers<WriteResult>();
    const queue = this.#queueOf(shard);
    queue.push({
      shard: queue.shard,
      updates,
      meta,
      commitId: this.#options.ids.uuid(),
      stamp: this.#options.ids.stamp(),
      deadlineMs: Math.min(meta.deadlineMs, this.#nowMs() + this.#options.writeTimeoutMs),
      resolve,
      reject,
      isSettled: false,
    });
    this.#writes++;
    this.#updates += updates.length;
    this.#sweep ??= setInterval(() => this.#settleOverdue(), SWEEP_MS).unref();
    this.#wake(queue);
    return promise;
  }

  async exclusive<T>(
    shards: readonly ShardKey[],
    meta: WriteMeta,
    work: (transaction: WriteTransaction) => Promise<T>,
  ): Promise<T> {
    const refusal = this.#refusal(1);
    if (refusal !== undefined) throw refusal;
    this.#writes++;
    const held: ShardQueue[] = [];
    const sorted = sortShards(shards);
    try {
      for (const shard of sorted) held.push(await this.#hold(shard, meta.deadlineMs));
      const deadlineMs = Math.min(meta.deadlineMs, this.#nowMs() + this.#options.writeTimeoutMs);
      const isOverdue = (): boolean => this.#isClosing || this.#nowMs() >= deadlineMs;
      return await this.#noted(this.#exclusive.run(sorted, isOverdue, work));
    } finally {
      this.#writes--;
      for (const queue of held) this.#release(queue);
    }
  }

  async prepared<T>(
    shard: ShardKey,
    meta: WriteMeta,
    { prepare, checkQuiet }: Pick<Preparation, 'prepare' | 'checkQuiet'>,
    work: (transaction: WriteTransaction) => Promise<T>,
  ): Promise<T> {
    const refusal = this.#refusal(1);
    if (refusal !== undefined) throw refusal;
    this.#writes++;
    const isOverdue = (): boolean => this.#isClosing || this.#nowMs() >= meta.deadlineMs;
    const hold = async (): Promise<(() => void) | undefined> => {
      try {
        const queue = await this.#hold(shard, this.#nowMs() + PREPARED_TURN_MS);
        return () => this.#release(queue);
      } catch (error) {
        if (error instanceof AppError && error.reason === 'DEADLINE_EXCEEDED') return undefined;
        throw error;
      }
    };
    try {
      const preparation = { prepare, checkQuiet, hold };
      return await this.#noted(this.#exclusive.run([shard], isOverdue, work, preparation));
    } finally {
      this.#writes--;
    }
  }

  async #noted<T>(work: Promise<T>): Promise<T> {
    return await work.catch((error: unknown) => {
      this.#options.onStoreError?.(error);
      throw error;
    });
  }

  /** Refuses new writes, waits for those under way (at most twice `timeoutMs`), closes the connections. */
  async close(timeoutMs: number): Promise<void> {
    this.#isClosing = true;
    const endMs = this.#nowMs() + timeoutMs;
    while (this.#writes > 0 && this.#nowMs() < endMs) {
      await new Promise((done) => setTimeout(done, 5));
    }
    this.#isStopped = true;
    for (const lane of this.#lanes) lane.runner.stop();
    // A server that hangs must not hold the shutdown: its pool ends only when every connection came back.
    const giveUpMs = this.#nowMs() + timeoutMs;
    while (this.#lanes.some((lane) => lane.isRunning) && this.#nowMs() < giveUpMs) {
      await new Promise((done) => setTimeout(done, 5));
    }
    for (const lane of this.#lanes) {
      if (lane.isRunning) lane.runner.abandon();
      else lane.runner.close();
    }
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }

  #refusal(updates: number): AppError | undefined {
    if (this.#isClosing)
      return new AppError<ServicesReason>('SHUTTING_DOWN', 'the instance is shutting down');
    const { queuedWritesMax, queuedUpdatesMax } = this.#options;
    const isFull = this.#writes >= queuedWritesMax || this.#updates + updates > queuedUpdatesMax;
    // One write that is larger than the whole bound is let through alone.
    if (!isFull || this.#writes === 0) return undefined;
    return new AppError<ServicesReason>(
      'QUEUE_FULL',
      `more than ${queuedWritesMax} writes are waiting`,
      {
        queue: 'writes',
      },
    );
  }

  #queueOf(shard: ShardKey): ShardQueue {
    let tenants = this.#queues.get(shard.projectId);
    if (tenants === undefined) this.#queues.set(shard.projectId, (tenants = new Map()));
    let queue = tenants.get(shard.tenantId);
    if (queue === undefined) {
      const key = { projectId: shard.projectId, tenantId: shard.tenantId };
      queue = new ShardQueue(key, laneOf(key, this.#options.lanes));
      tenants.set(shard.tenantId, queue);
    }
    return queue;
  }

  /** Lets the head of a queue go ahead where nobody holds the shard. */
  #wake(queue: ShardQueue): void {
    if (queue.isHeld || queue.isListed) return;
    let gate = queue.takeGate();
    while (gate?.isCancelled === true) gate = queue.takeGate();
    if (gate !== undefined) {
      queue.isHeld = true;
      gate.grant();
      return;
    }
    if (queue.isEmpty) return this.#forget(queue.shard);
    queue.isListed = true;
    queue.lane = this.#laneOfHead(queue);
    const lane = this.#lanes[queue.lane] as Lane;
    lane.ready.push(queue);
    this.#schedule(lane);
  }

  #laneOfHead(queue: ShardQueue): number {
    const { lanes, largeUpdatesMin } = this.#options;
    const updates = queue.peekWrite()?.updates.length ?? 0;
    return largeUpdatesMin !== undefined && updates > largeUpdatesMin ? lanes : queue.homeLane;
  }

  #forget(shard: ShardKey): void {
    const tenants = this.#queues.get(shard.projectId);
    tenants?.delete(shard.tenantId);
    if (tenants?.size === 0) this.#queues.delete(shard.projectId);
  }

  #release(queue: ShardQueue): void {
    queue.isHeld = false;
    this.#wake(queue);
  }

  /** Waits for the shard's turn and holds it. */
  async #hold(shard: ShardKey, deadlineMs: number): Promise<ShardQueue> {
    const queue = this.#queueOf(shard);
    const { promise, resolve, reject } = Promise.withResolvers<ShardQueue>();
    const gate = { grant: () => resolve(queue), isCancelled: false };
    const waitMs = Math.min(deadlineMs - this.#nowMs(), this.#options.writeTimeoutMs);
    const timer = setTimeout(
      () => {
        gate.isCancelled = true;
        reject(
          new AppError<ServicesReason>(
            'DEADLINE_EXCEEDED',
            'the deadline passed before the write began',
          ),
        );
      },
      Math.max(0, waitMs),
    );
    queue.push(gate);
    this.#wake(queue);
    return await promise.finally(() => clearTimeout(timer));
  }

  #schedule(lane: Lane): void {
    if (lane.isRunning || lane.isScheduled) return;
    lane.isScheduled = true;
    // What arrives in the same turn of the event loop joins the group.
    setImmediate(() => {
      lane.isScheduled = false;
      void this.#runLane(lane);
    });
  }

  /** Never rejects. */
  async #runLane(lane: Lane): Promise<void> {
    const queues = lane.ready;
    const group = this.#collect(lane, queues);
    if (group.length > 0) {
      lane.isRunning = true;
      lane.inFlight = group;
      await this.#runGroup(lane, group);
      lane.inFlight = [];
      lane.isRunning = false;
      // Large writes are few: others may have the connection meanwhile.
      if (this.#lanes.indexOf(lane) === this.#options.lanes) lane.runner.release();
    }
    for (const queue of queues) if (!queue.isListed) this.#release(queue);
    if (lane.ready.length > 0) this.#schedule(lane);
  }

  /** Takes the group's writes from the ready shards, a fair share each, and holds those shards. */
  #collect(lane: Lane, queues: readonly ShardQueue[]): QueuedWrite[] {
    const { groupWritesMax, groupUpdatesMax } = this.#options;
    const share = Math.max(1, Math.floor(groupWritesMax / queues.length));
    const group: QueuedWrite[] = [];
    let updates = 0;
    lane.ready = [];
    for (const queue of queues) {
      if (group.length >= groupWritesMax || updates >= groupUpdatesMax) {
        lane.ready.push(queue);
        continue;
      }
      queue.isListed = false;
      queue.isHeld = true;
      for (let taken = 0; taken < share && updates < groupUpdatesMax;) {
        if (this.#laneOfHead(queue) !== queue.lane) break;
        const write = queue.takeWrite();
        if (write === undefined) break;
        if (write.isSettled) continue;
        group.push(write);
        updates += write.updates.length;
        taken++;
      }
    }
    return group;
  }

  async #runGroup(lane: Lane, group: readonly QueuedWrite[]): Promise<void> {
    await this.#tryGroup(lane, group);
    const { heads } = this.#options;
    for (const { projectId, tenantId } of lane.unknown) heads.clearUnknown(projectId, tenantId);
    lane.unknown = [];
  }

  async #tryGroup(lane: Lane, members: readonly QueuedWrite[]): Promise<void> {
    // What was refused for its registration or for rules was not applied: what still waits is sent again.
    for (let group = members; ;) {
      const rules = new Map<string, ProjectRules>();
      group = await this.#fitting(await this.#admitted(group), rules);
      if (group.length === 0 || (await this.#attempt(lane, group, rules))) return;
    }
  }

  /** False: refused for its registration, or for rules, which are known now. */
  async #attempt(
    lane: Lane,
    group: readonly QueuedWrite[],
    rules: ReadonlyMap<string, ProjectRules>,
  ): Promise<boolean> {
    const onOutcomeUnknown = (): void => {
      for (const { shard } of group) this.#markUnknown(lane, shard);
    };
    const open = this.#commits.begin(group.map(({ shard }) => shard));
    lane.isSent = true;
    try {
      const rulesOf = (projectId: string): number => rules.get(projectId)?.version ?? 0;
      const results = await lane.runner.run(group, { onOutcomeUnknown }, rulesOf);
      this.#publisher.publish(group, results);
      group.forEach((write, index) => {
        if (this.#settle(write)) write.resolve(results[index] as WriteResult);
      });
    } catch (error) {
      lane.isSent = false;
      if (error instanceof NotAppliedError && error.failure === 'fenced') return false;
      if (await this.#isOutdated(error)) return false;
      this.#options.onStoreError?.(error);
      const isForData = error instanceof NotAppliedError && !isPassing(error.failure);
      if (isForData && group.length > 1) {
        // Only the culprit may fail.
        for (const write of group) await this.#tryGroup(lane, [write]);
        return true;
      }
      // Stopped before it was known: the shards stay unknown for what is left of this process.
      if (!(error instanceof NotAppliedError)) lane.unknown = [];
      for (const write of group) if (this.#settle(write)) write.reject(toAppError(error));
    } finally {
      lane.isSent = false;
      this.#commits.end(open);
    }
    return true;
  }

  /** Whether that is all; then the rules that hold are known here. Those that cannot be had fail the next look. */
  async #isOutdated(error: unknown): Promise<boolean> {
    if (!(error instanceof NotAppliedError) || error.failure !== 'outdated') return false;
    const projectIds = projectsWithOtherRules(error.cause) ?? [];
    await Promise.allSettled(projectIds.map((id) => this.#options.rules.fresh(id)));
    return true;
  }

  /** Those of `group` that fit the rules of their projects, which are put into `rules`; the others are refused. */
  async #fitting(
    group: readonly QueuedWrite[],
    rules: Map<string, ProjectRules>,
  ): Promise<readonly QueuedWrite[]> {
    const { rules: source } = this.#options;
    const fitting: QueuedWrite[] = [];
    for (const write of group) {
      const { projectId } = write.shard;
      try {
        const known =
          rules.get(projectId) ?? source.peek(projectId) ?? (await source.of(projectId));
        rules.set(projectId, known);
        if (refusalOfUpdates(known, write.updates, 'updates') !== undefined) {
          const refusal = await certainRefusal(source, write.shard, write.updates, 'updates');
          if (refusal !== undefined) throw refusal;
          // Newer rules take it: by these all of the project's are looked at, in the next round.
          rules.clear();
          return await this.#fitting(
            group.filter(({ isSettled }) => !isSettled),
            rules,
          );
        }
        fitting.push(write);
      } catch (error) {
        if (this.#settle(write)) write.reject(toAppError(error));
      }
    }
    // Those answered meanwhile were told that they were not sent.
    return fitting.filter(({ isSettled }) => !isSettled);
  }

  /** Those of `group` that still wait, once this instance may write; the others were not applied. */
  async #admitted(group: readonly QueuedWrite[]): Promise<readonly QueuedWrite[]> {
    const { admission } = this.#options;
    for (;;) {
      const waiting = group.filter((write) => !write.isSettled);
      if (waiting.length === 0 || admission.writeId !== undefined) return waiting;
      try {
        if (this.#isStopped) throw storeUnavailable(undefined);
        await admission.whenAdmitted();
      } catch (error) {
        for (const write of waiting) if (this.#settle(write)) write.reject(toAppError(error));
      }
    }
  }

  #markUnknown(lane: Lane, shard: ShardKey): void {
    this.#options.heads.markUnknown(shard.projectId, shard.tenantId);
    lane.unknown.push(shard);
  }

  /** Whether the caller was still waiting. */
  #settle(write: QueuedWrite): boolean {
    if (write.isSettled) return false;
    write.isSettled = true;
    this.#writes--;
    this.#updates -= write.updates.length;
    return true;
  }

  #settleOverdue(): void {
    const nowMs = this.#nowMs();
    if (this.#writes === 0) {
      clearInterval(this.#sweep);
      this.#sweep = undefined;
      return;
    }
    const troubles = this.#lanes.map(({ runner }) => this.#refusalBehind(runner));
    for (const [at, lane] of this.#lanes.entries()) {
      // Before an operator has done something nothing more will be known.
      const isRefused = troubles[at] !== undefined && troubles[at].reason !== 'STORE_UNAVAILABLE';
      for (const write of lane.inFlight) {
        if ((write.deadlineMs > nowMs && !isRefused) || !this.#settle(write)) continue;
        if (!lane.isSent) {
          write.reject(overdue());
          continue;
        }
        this.#markUnknown(lane, write.shard);
        write.reject(outcomeUnknown());
      }
    }
    for (const tenants of this.#queues.values()) {
      for (const queue of tenants.values()) {
        const trouble = troubles[queue.lane];
        for (const write of queue.writes()) {
          const isOverdue = write.deadlineMs <= nowMs;
          if ((!isOverdue && trouble === undefined) || !this.#settle(write)) continue;
          write.reject(isOverdue || trouble === undefined ? overdue() : trouble);
        }
      }
    }
  }

  /** Of what was not sent yet. */
  #refusalBehind({ trouble }: GroupRunner): AppError | undefined {
    if (trouble === undefined || performance.now() - trouble.sinceMs < REFUSE_AFTER_MS) return;
    this.#options.onStoreError?.(trouble.error);
    return toAppError(new NotAppliedError(classifyPgError(trouble.error), trouble.error));
  }

  #nowMs(): number {
    return performance.timeOrigin + this.#options.clock.monotonicMs();
  }
}

function overdue(): AppError {
  return new AppError<ServicesReason>('DEADLINE_EXCEEDED', 'the deadline passed before the write');
}

function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  if (!(error instanceof NotAppliedError)) {
    return new AppError<ServicesReason>('INTERNAL', 'internal error', {}, error);
  }
  const told = storeError(error.cause);
  if (error.failure === 'refused' && told instanceof AppError) return told;
  return isPassing(error.failure)
    ? new AppError<ServicesReason>(
        'STORE_UNAVAILABLE',
        'the database does not take writes',
        {},
        error.cause,
      )
    : new AppError<ServicesReason>('INTERNAL', 'internal error', {}, error.cause);
}

function isPassing(failure: PgFailure): boolean {
  return (
    failure === 'unavailable' ||
    failure === 'timeout' ||
    failure === 'retryable' ||
    failure === 'refused' ||
    failure === 'fenced'
  );
}

/** Sorted as the database sorts them, without duplicates; all ids are ASCII. */
function sortShards(shards: readonly ShardKey[]): ShardKey[] {
  const keyed = new Map(
    shards.map((shard) => [`${shard.projectId}\u0000${shard.tenantId}`, shard]),
  );
  return [...keyed.keys()].toSorted().map((key) => keyed.get(key) as ShardKey);
}

/** FNV-1a over both ids; which lane it names does not matter outside of this process. */
function laneOf(shard: ShardKey, lanes: number): number {
  let hash = 0x811c9dc5;
  for (const text of [shard.projectId, shard.tenantId]) {
    for (let i = 0; i < text.length; i++) {
      hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    }
  }
  return (hash >>> 0) % lanes;
}
