import type { AppError } from '../../shared/app-error.ts';
import type { Job } from '../jobs/job.ts';

/** Evaluations of one shard that are begun at once, and how many of them may be long from the start. */
const SUSPENDED_MAX = 16;
const LONG_BEGUN_MAX = 8;
const NO_JOBS: readonly Job[] = [];

/**
 * The jobs of one shard: short ones and long ones that may begin, those begun and suspended between two
 * slices, and those that wait for a newer state of the shard. Each in arrival order. Keeps no index and
 * runs nothing; O(1) but where stated.
 */
export class ShardJobs {
  #short: Job[] = [];
  #shortHead = 0;
  #long: Job[] = [];
  #waiting: Job[] = [];
  #suspended: Job[] = [];
  #isTurnOfSuspended = false;

  /** Jobs of all kinds. */
  get count(): number {
    return this.#shortCount + this.#long.length + this.#waiting.length + this.#suspended.length;
  }

  get hasShort(): boolean {
    return this.#shortCount > 0;
  }

  /** Whether there are begun ones, or long ones that may begin. */
  get hasLong(): boolean {
    return this.#suspended.length > 0 || this.#long.length > 0;
  }

  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Whether an evaluation is begun, over the present revision. */
  get hasBegun(): boolean {
    return this.#suspended.length > 0;
  }

  /** Whether there is room for another begun one, should the next job not end within its slice. */
  get hasRoom(): boolean {
    return this.#suspended.length < SUSPENDED_MAX;
  }

  get #shortCount(): number {
    return this.#short.length - this.#shortHead;
  }

  /** Takes one that may begin. */
  admit(job: Job): void {
    if (job.isLong) this.#long.push(job);
    else this.#short.push(job);
  }

  /** Takes one that needs a newer state. */
  wait(job: Job): void {
    this.#waiting.push(job);
  }

  /** Takes back one that was begun and goes on in a later slice. */
  suspend(job: Job): void {
    this.#suspended.push(job);
  }

  /** The next short one; null when there is none. */
  takeShort(): Job | null {
    if (this.#shortHead === this.#short.length) {
      if (this.#shortHead > 0) {
        this.#short = [];
        this.#shortHead = 0;
      }
      return null;
    }
    const job = this.#short[this.#shortHead] as Job; // below length
    this.#shortHead += 1;
    return job;
  }

  /**
   * The next long one of a slice; null when there is none. Begun ones take turns; at the start of every
   * other slice a new one comes first, and otherwise when no begun one is left. `mayBegin`: whether new
   * ones may.
   */
  takeLong(isFirstOfSlice: boolean, mayBegin: () => boolean): Job | null {
    if (isFirstOfSlice) this.#isTurnOfSuspended = !this.#isTurnOfSuspended;
    const isSuspendedFirst = isFirstOfSlice && !this.#isTurnOfSuspended;
    return isSuspendedFirst
      ? (this.#suspended.shift() ?? this.#takeNew(mayBegin))
      : (this.#takeNew(mayBegin) ?? this.#suspended.shift() ?? null);
  }

  #takeNew(mayBegin: () => boolean): Job | null {
    if (this.#suspended.length >= LONG_BEGUN_MAX || !mayBegin()) return null;
    return this.#long.shift() ?? null;
  }

  /** Takes those of the waiting ones that `canBegin`, without the cancelled. O(waiting). */
  takeReady(canBegin: (job: Job) => boolean): readonly Job[] {
    if (this.#waiting.length === 0) return NO_JOBS;
    const ready: Job[] = [];
    const kept: Job[] = [];
    for (const job of this.#waiting) {
      if (job.isCancelled) continue;
      (canBegin(job) ? ready : kept).push(job);
    }
    this.#waiting = kept;
    return ready;
  }

  /** The index has gone: all begin anew once there is one, before those that wait already. O(jobs). */
  waitAgain(): void {
    for (const job of this.#suspended) job.restart();
    const admitted = [...this.#suspended, ...this.#short.slice(this.#shortHead), ...this.#long];
    this.#short = [];
    this.#shortHead = 0;
    this.#long = [];
    this.#suspended = [];
    this.#waiting = [...admitted, ...this.#waiting];
  }

  /** Fails those of the waiting ones that `isFailed`; forgets the cancelled. O(waiting). */
  failWaiting(error: () => AppError, isFailed: (job: Job) => boolean = () => true): void {
    for (const job of this.takeReady(isFailed)) job.fail(error());
  }
}
