import type { Pool } from 'pg';
import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey, TupleChange } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { IdSource } from '../../shared/ids.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { classifyPgError } from '../../store/postgres/pg-errors.ts';
import type { WriteAdmission, WriteMeta } from '../ports.ts';
import type { WriteOptions } from '../write-groups/update-modes.ts';
import type { WriteResult } from '../write-groups/write-group.ts';
import type { QueuedWrite, WriteQueue } from '../write-groups/write-queue.ts';
import { CommitPublisher, type PublisherOptions } from './commit-publisher.ts';
import { ExclusiveWriter, type Preparation } from './exclusive-writer.ts';
import { GroupAttempts, toAppError } from './group-attempts.ts';
import { type GroupRunner, NotAppliedError, outcomeUnknown } from './group-runner.ts';
import { OpenCommits } from './open-commits.ts';
import { ShardLocks } from './shard-locks.ts';
import type { TupleWrites } from './tuple-writes.ts';
import { WriteLane } from './write-lane.ts';
import type { WriteRules } from './write-rules.ts';
import type { WriteTransaction } from './write-transaction.ts';

export type TupleWriterOptions = PublisherOptions & {
  /** Needs a connection per lane and some more for `exclusive`. */
  readonly pool: Pool;
  readonly admission: WriteAdmission;
  /** Rules that written tuples must fit. */
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
  /** Notified of each error of the database that ends a write, or keeps one waiting. */
  readonly onStoreError?: ((error: unknown) => void) | undefined;
};

const SWEEP_MS = 50;
/**
 * Delay after which writes behind a group of unknown outcome are refused, not kept until their
 * deadline.
 */
const REFUSE_AFTER_MS = 1_000;
/** How long a prepared transaction waits for a shard's turn before it checks whether others wait for it. */
const PREPARED_TURN_MS = 20;

/**
 * All writes of this process to tuples pass here: per shard in order of arrival, grouped into one
 * commit with what else waits in the same lane.
 *
 * W1 A shard is held by one group or one exclusive caller at a time, so that this process has at
 *    most one connection on its row lock. [tuple-writer.pg.test.ts]
 * W2 Before a writer is answered its revision was raised in HeadRevisions and handed to CommittedChanges.
 *    [tuple-writer.pg.test.ts]
 * W3 A write whose deadline passes is answered: DEADLINE_EXCEEDED if it was never sent, otherwise
 *    WRITE_OUTCOME_UNKNOWN, and its shard counts as unknown in HeadRevisions until the outcome is
 *    known. So are, after REFUSE_AFTER_MS, those in flight while the server refuses, and as not
 *    applied those behind a group that an absent server keeps waiting. [tuple-writer.pg.test.ts]
 * W4 What is sent fits the rules of its project whose version it names (R1 of WriteRules).
 *    [src/services/models/staged-models.pg.test.ts]
 */
export class TupleWriter implements TupleWrites {
  readonly #options: TupleWriterOptions;
  readonly #commits: OpenCommits;
  readonly #exclusive: ExclusiveWriter;
  readonly #locks: ShardLocks;
  readonly #attempts: GroupAttempts;
  readonly #lanes: readonly WriteLane[];
  #writes = 0;
  #updates = 0;
  #sweep: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(options: TupleWriterOptions) {
    assert(options.lanes > 0, 'at least one lane');
    this.#options = options;
    const publisher = new CommitPublisher(options);
    const commits = new OpenCommits(options);
    this.#commits = commits;
    this.#exclusive = new ExclusiveWriter({ ...options, publisher, commits });
    this.#attempts = new GroupAttempts({
      ...options,
      publisher,
      commits,
      settle: (write) => this.#settle(write),
    });
    this.#locks = new ShardLocks({
      ...options,
      nowMs: () => this.#nowMs(),
      onReady: (queue) => (this.#lanes[queue.lane] as WriteLane).add(queue), // below length
    });
    const lanes = options.lanes + (options.largeUpdatesMin === undefined ? 0 : 1);
    this.#lanes = Array.from(
      { length: lanes },
      (_, at) => new WriteLane(options, this.#locks, this.#attempts, at === options.lanes),
    );
  }

  /** Writes that wait or are in flight. */
  get depth(): number {
    return this.#writes;
  }

  /** To be called before reads are answered from memory again: see OpenCommits. */
  hideOpenCommits(): void {
    this.#commits.hideAll();
  }

  write(
    shard: ShardKey,
    updates: readonly TupleChange[],
    meta: WriteMeta,
    { modes, isByVersion }: WriteOptions = {},
  ): Promise<WriteResult> {
    const refusal = this.#refusal(updates.length);
    if (refusal !== undefined) return Promise.reject(refusal);
    assert(updates.length > 0, 'a write has updates');
    const { promise, resolve, reject } = Promise.withResolvers<WriteResult>();
    const queue = this.#locks.queueOf(shard);
    queue.enqueue({
      shard: queue.shard,
      updates,
      modes,
      isByVersion,
      meta,
      commitId: this.#options.ids.uuid(),
      forkId: this.#options.ids.forkId(),
      deadlineMs: Math.min(meta.deadlineMs, this.#nowMs() + this.#options.writeTimeoutMs),
      resolve,
      reject,
      isSettled: false,
    });
    this.#writes++;
    this.#updates += updates.length;
    this.#sweep ??= setInterval(() => this.#settleOverdue(), SWEEP_MS).unref();
    this.#locks.wake(queue);
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
    const held: WriteQueue[] = [];
    const sorted = sortShards(shards);
    try {
      for (const shard of sorted) held.push(await this.#locks.hold(shard, meta.deadlineMs));
      const deadlineMs = Math.min(meta.deadlineMs, this.#nowMs() + this.#options.writeTimeoutMs);
      const isOverdue = (): boolean => this.#isClosing || this.#nowMs() >= deadlineMs;
      return await this.#noted(this.#exclusive.run(sorted, isOverdue, work));
    } finally {
      this.#writes--;
      for (const queue of held) this.#locks.release(queue);
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
        const queue = await this.#locks.hold(shard, this.#nowMs() + PREPARED_TURN_MS);
        return () => this.#locks.release(queue);
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
    this.#attempts.isStopped = true;
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
      return new AppError<AuthzReason>('SHUTTING_DOWN', 'the instance is shutting down');
    const { queuedWritesMax, queuedUpdatesMax } = this.#options;
    const isFull = this.#writes >= queuedWritesMax || this.#updates + updates > queuedUpdatesMax;
    // One write that is larger than the whole bound is let through alone.
    if (!isFull || this.#writes === 0) return undefined;
    return new AppError<AuthzReason>(
      'QUEUE_FULL',
      `more than ${queuedWritesMax} writes are waiting`,
      {
        queue: 'writes',
      },
    );
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
        lane.markUnknown(write.shard);
        write.reject(outcomeUnknown());
      }
    }
    for (const queue of this.#locks.queues()) {
      const trouble = troubles[queue.lane];
      for (const write of queue.writes()) {
        const isOverdue = write.deadlineMs <= nowMs;
        if ((!isOverdue && trouble === undefined) || !this.#settle(write)) continue;
        write.reject(isOverdue || trouble === undefined ? overdue() : trouble);
      }
    }
  }

  /** The refusal of writes that were not sent yet. */
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
  return new AppError<AuthzReason>('DEADLINE_EXCEEDED', 'the deadline passed before the write');
}

/** Sorted as the database sorts them, without duplicates; all ids are ASCII. */
function sortShards(shards: readonly ShardKey[]): ShardKey[] {
  const keyed = new Map(
    shards.map((shard) => [`${shard.projectId}\u0000${shard.tenantId}`, shard]),
  );
  return [...keyed.keys()].toSorted().map((key) => keyed.get(key) as ShardKey);
}
