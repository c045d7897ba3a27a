import { IndexDamage } from '../../cache/index-tally.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError, errorToData } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { ReadJob, JobShard } from '../jobs/job.ts';
import { isFutile } from './load-forecast.ts';
import {
  behind,
  deadlineExceeded,
  loadsLong,
  settingsOld,
  unavailable,
  waitOver,
} from './shard-errors.ts';
import type { ShardJobs } from './shard-jobs.ts';
import type { ShardRevision, Verdict } from './shard-revision.ts';

/** The shard of a mailbox, as that sees it. */
export interface MailboxShard extends JobShard {
  readonly key: ShardKey;
  readonly changes: {
    /** Whether one waits for the end of the begun evaluations. */
    readonly isWaiting: boolean;
    /** The last begun evaluation has ended. */
    resumed(): void;
  };
  /** There are short jobs that can run. */
  shortWork(): void;
  /** There are long ones, or begun ones. */
  longWork(): void;
  /** Jobs wait for a newer state of the shard: it is swept until none does. */
  waits(): void;
  /** A job waits: the shard is loaded, or catches up. */
  wake(): void;
  /** The index is of another history than a job: it is loaded anew. */
  reload(): void;
  /** An assertion found that the index is damaged. */
  damaged(error: unknown): void;
}

type MailboxHost = {
  readonly clock: Clock;
  report(event: string, shard: ShardKey, error: unknown): void;
};

/** The jobs of one shard: which can be served, wait or are refused, which may begin, for how long they run, and what becomes of one that fails. Hot. */
export class ShardMailbox {
  readonly #shard: MailboxShard;
  readonly #host: MailboxHost;
  readonly #jobs: ShardJobs;
  readonly #revision: ShardRevision;

  constructor(shard: MailboxShard, host: MailboxHost, jobs: ShardJobs, revision: ShardRevision) {
    this.#shard = shard;
    this.#host = host;
    this.#jobs = jobs;
    this.#revision = revision;
  }

  /**
   * Takes a job: it runs soon, waits for a newer state of the shard, or fails. What cannot run yet is read before: what cannot be read
   * fails for that, and waits for nothing.
   */
  submit(job: ReadJob): void {
    if (job.isReadFirst) this.#readLater(job);
    else if (this.#revision.judge(job) === 'serve') this.#admit(job);
    else {
      this.#read(job, 0, ignoreMark);
      // A shard that nobody waits for any more goes after its turn.
      if (this.#jobs.count === 0) this.#shard.longWork();
    }
  }

  /** Reads a job for as long as it may, and finds where it belongs once it is read. */
  #read(job: ReadJob, sliceEndMs: number, mark: (requestId: number) => void): void {
    if (job.isCancelled) return job.drop();
    mark(job.requestId);
    try {
      if (!job.read(sliceEndMs)) return this.#readLater(job);
    } catch (error) {
      return this.#failed(job, error);
    } finally {
      mark(0);
    }
    this.#dispatch(job, this.#revision.judge(job));
  }

  #readLater(job: ReadJob): void {
    this.#jobs.readLater(job);
    this.#shard.longWork();
  }

  #dispatch(job: ReadJob, verdict: Verdict): void {
    if (verdict === 'serve') this.#admit(job);
    else if (job.scope.isHeldOnly && verdict !== 'settingsOld') job.fail(behind());
    else if (verdict === 'wait') {
      this.#wait(job);
      this.#shard.wake();
    } else this.#turnAway(job, verdict);
  }

  /** Moves waiting jobs that the watermark now allows on, in arrival order. */
  promote(): void {
    const isOver = (job: ReadJob): boolean => this.#revision.judge(job) !== 'wait';
    for (const job of this.#jobs.takeReady(isOver)) {
      const verdict = this.#revision.judge(job);
      if (verdict === 'serve') this.#admit(job);
      else if (verdict === 'wait') this.#wait(job);
      else this.#turnAway(job, verdict);
    }
  }

  /** Fails jobs whose deadline has passed, or passes before the load under way can end, `leftMs` from now. */
  sweep(nowMs: number, leftMs: number | undefined): void {
    this.#jobs.failWaiting(
      (job) => waitOver(job, nowMs, 'the shard was not ready before the deadline'),
      (job) => job.waitUntilMs <= nowMs,
    );
    if (leftMs === undefined) return;
    this.#jobs.failWaiting(
      () => loadsLong(leftMs),
      (job) => isFutile(leftMs, job.waitUntilMs - nowMs),
    );
  }

  /** See ShardActor.runShort. */
  runShort(shareEndMs: number, sliceEndMs: number, mark: (requestId: number) => void): boolean {
    const { clock } = this.#host;
    let nowMs = clock.monotonicMs();
    while (this.#mayStart) {
      const job = this.#jobs.takeShort();
      if (job === null) return false;
      this.#runOne(job, nowMs, sliceEndMs, mark);
      nowMs = clock.monotonicMs();
      if (nowMs >= shareEndMs) return this.#mayRunShort;
    }
    return false;
  }

  /** See ShardActor.runLong. */
  runLong(sliceEndMs: number, mark: (requestId: number) => void): boolean {
    const { clock } = this.#host;
    let nowMs = clock.monotonicMs();
    const unread = this.#jobs.takeUnread();
    if (unread !== null) {
      if (unread.deadlineMs <= performance.timeOrigin + nowMs) unread.fail(deadlineExceeded());
      else this.#read(unread, sliceEndMs, mark);
      nowMs = clock.monotonicMs();
    }
    for (let isFirst = true; unread === null || nowMs < sliceEndMs; isFirst = false) {
      const job = this.#jobs.takeLong(isFirst, this.#mayBegin);
      if (job === null) break;
      this.#runOne(job, nowMs, sliceEndMs, mark);
      nowMs = clock.monotonicMs();
      if (nowMs >= sliceEndMs) break;
    }
    // Work that waited until a begun evaluation ended.
    if (this.#mayRunShort) this.#shard.shortWork();
    return this.#jobs.hasLong;
  }

  /** Refuses a job that cannot wait. */
  #turnAway(job: ReadJob, verdict: Exclude<Verdict, 'serve' | 'wait'>): void {
    if (verdict === 'epochOver') job.fail(unavailable('the epoch of the shard has changed'));
    else if (verdict === 'settingsOld') job.fail(settingsOld(this.#revision.settingsVersion));
    else if (job.hasDropped) {
      // The index that was loaded for it is of another history again: the job's own is gone.
      job.fail(unavailable('the history of the shard has changed'));
    } else {
      job.hasDropped = true;
      this.#wait(job);
      this.#shard.reload();
    }
  }

  #wait(job: ReadJob): void {
    this.#jobs.wait(job);
    this.#shard.waits();
  }

  #admit(job: ReadJob): void {
    this.#jobs.admit(job);
    if (job.isLong) this.#shard.longWork();
    else this.#shard.shortWork();
  }

  get #mayRunShort(): boolean {
    return this.#jobs.hasShort && this.#mayStart;
  }

  /** New jobs wait once a change waits for the begun ones: else it would wait for ever. */
  get #mayStart(): boolean {
    if (!this.#jobs.hasBegun) return true;
    return this.#jobs.canAcquire && !this.#shard.changes.isWaiting;
  }

  readonly #mayBegin = (): boolean => this.#mayStart;

  #runOne(
    job: ReadJob,
    nowMs: number,
    sliceEndMs: number,
    mark: (requestId: number) => void,
  ): void {
    if (job.isCancelled) job.drop();
    else if (this.#runJob(job, nowMs, sliceEndMs, mark) === 'more') {
      this.#jobs.suspend(job);
      this.#shard.longWork();
      return;
    }
    if (!this.#jobs.hasBegun) this.#shard.changes.resumed();
  }

  #runJob(
    job: ReadJob,
    nowMs: number,
    sliceEndMs: number,
    mark: (requestId: number) => void,
  ): 'done' | 'more' {
    if (job.deadlineMs <= performance.timeOrigin + nowMs) {
      job.fail(deadlineExceeded());
      return 'done';
    }
    // Changes under newer settings may have arrived since the job was admitted.
    if (this.#revision.judge(job) === 'settingsOld') {
      this.#turnAway(job, 'settingsOld');
      return 'done';
    }
    mark(job.requestId);
    try {
      // Also in every later slice: an evaluation ends over the revision that it began with (I4).
      assert(this.#revision.canServe(job), 'a job runs over a revision that serves it');
      return job.run(this.#shard, sliceEndMs);
    } catch (error) {
      this.#failed(job, error);
      if (error instanceof IndexDamage) this.#shard.damaged(error);
      return 'done';
    } finally {
      mark(0);
    }
  }

  #failed(job: ReadJob, error: unknown): void {
    if (!(error instanceof AppError)) {
      this.#host.report('evaluation_failed', this.#shard.key, error);
    }
    const { reason, message, metadata } = errorToData(error);
    job.fail(new AppError<string>(reason, message, metadata, error));
  }
}

function ignoreMark(): void {
  // Only scanners run then, which no request ends.
}
