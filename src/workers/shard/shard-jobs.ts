import type { AppError } from '../../shared/app-error.ts';
import type { ReadJob } from '../jobs/job.ts';

/** Evaluations of one shard that are begun at once, and how many of them may be long from the start. */
const SUSPENDED_MAX = 16;
const LONG_BEGUN_MAX = 8;
const NO_JOBS: readonly ReadJob[] = [];
/** The empty list for each kind without jobs, for all shards: never changed. */
const NONE: ReadJob[] = [];

/**
 * Jobs of one shard, each kind in arrival order: unread ones, short and long ones that may begin, begun
 * ones suspended between two slices, and those that wait for a newer state of the shard. Keeps no index and
 * runs nothing. O(1) unless stated.
 */
export class ShardJobs {
  #short = NONE;
  #shortFirst = 0;
  #long = NONE;
  #waiting = NONE;
  #unread = NONE;
  #suspended = NONE;
  #isTurnOfSuspended = false;
  #isTurnOfUnread = false;

  /** Jobs of all kinds. */
  get count(): number {
    const running = this.#shortCount + this.#long.length + this.#suspended.length;
    return running + this.#waiting.length + this.#unread.length;
  }

  get hasShort(): boolean {
    return this.#shortCount > 0;
  }

  /** Whether there are begun ones, long ones that may begin, or some to be read. */
  get hasLong(): boolean {
    return this.#suspended.length > 0 || this.#long.length > 0 || this.#unread.length > 0;
  }

  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Whether an evaluation is begun, over the present revision. */
  get hasBegun(): boolean {
    return this.#suspended.length > 0;
  }

  /** Whether one more may be begun, should the next job not end within its slice. */
  get canAcquire(): boolean {
    return this.#suspended.length < SUSPENDED_MAX;
  }

  get #shortCount(): number {
    return this.#short.length - this.#shortFirst;
  }

  /** Takes one that may begin. */
  admit(job: ReadJob): void {
    if (job.isLong) this.#long = added(this.#long, job);
    else this.#short = added(this.#short, job);
  }

  /** Takes one that needs a newer state. */
  wait(job: ReadJob): void {
    this.#waiting = added(this.#waiting, job);
  }

  /** Takes one that is to be read before it is known what becomes of it. */
  readLater(job: ReadJob): void {
    this.#unread = added(this.#unread, job);
  }

  /** The next job whose body is unread; null if none, and in every other slice while there is other long work. */
  takeUnread(): ReadJob | null {
    const isAlone = this.#suspended.length === 0 && this.#long.length === 0;
    this.#isTurnOfUnread = isAlone || !this.#isTurnOfUnread;
    return this.#isTurnOfUnread ? (this.#unread.shift() ?? null) : null;
  }

  /** Puts back a begun job, which continues in a later slice. */
  suspend(job: ReadJob): void {
    this.#suspended = added(this.#suspended, job);
  }

  /** The next short job; null if none. */
  takeShort(): ReadJob | null {
    if (this.#shortFirst === this.#short.length) return null;
    const job = this.#short[this.#shortFirst] as ReadJob; // below length
    this.#shortFirst += 1;
    // The last one is not kept until the shard is asked again.
    if (this.#shortFirst === this.#short.length) this.#forgetShort();
    return job;
  }

  #forgetShort(): void {
    this.#short = NONE;
    this.#shortFirst = 0;
  }

  /**
   * The next long job of a slice; null if none. Begun jobs take turns. A new job comes first at the start of
   * every other slice, else when no begun one is left. `mayBegin`: whether new jobs may begin.
   */
  takeLong(isFirstOfSlice: boolean, mayBegin: () => boolean): ReadJob | null {
    if (isFirstOfSlice) this.#isTurnOfSuspended = !this.#isTurnOfSuspended;
    const isSuspendedFirst = isFirstOfSlice && !this.#isTurnOfSuspended;
    return isSuspendedFirst
      ? (this.#suspended.shift() ?? this.#takeNew(mayBegin))
      : (this.#takeNew(mayBegin) ?? this.#suspended.shift() ?? null);
  }

  #takeNew(mayBegin: () => boolean): ReadJob | null {
    if (this.#suspended.length >= LONG_BEGUN_MAX || !mayBegin()) return null;
    return this.#long.shift() ?? null;
  }

  /** Takes those of the waiting ones that `canBegin`, without the cancelled. O(waiting). */
  takeReady(canBegin: (job: ReadJob) => boolean): readonly ReadJob[] {
    if (this.#waiting.length === 0) return NO_JOBS;
    const ready: ReadJob[] = [];
    const kept: ReadJob[] = [];
    for (const job of this.#waiting) {
      if (job.isCancelled) {
        job.drop();
        continue;
      }
      (canBegin(job) ? ready : kept).push(job);
    }
    this.#waiting = kept.length === 0 ? NONE : kept;
    return ready;
  }

  /** The index has gone: all begin anew once there is one, before those that wait already. O(jobs). */
  waitAgain(): void {
    for (const job of this.#suspended) job.restart();
    const admitted = [...this.#suspended, ...this.#short.slice(this.#shortFirst), ...this.#long];
    this.#forgetShort();
    this.#long = NONE;
    this.#suspended = NONE;
    this.#waiting = [...admitted, ...this.#waiting];
  }

  /** Fails those of the waiting ones that `isFailed`; forgets the cancelled. O(waiting). */
  failWaiting(
    error: (job: ReadJob) => AppError,
    isFailed: (job: ReadJob) => boolean = () => true,
  ): void {
    for (const job of this.takeReady(isFailed)) job.fail(error(job));
  }
}

function added(jobs: ReadJob[], job: ReadJob): ReadJob[] {
  if (jobs === NONE) return [job];
  jobs.push(job);
  return jobs;
}
