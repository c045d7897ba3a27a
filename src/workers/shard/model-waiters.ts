import { modelKey } from '../../protocol/model-store.ts';
import type { AppError } from '../../shared/app-error.ts';
import type { Job } from '../jobs/job.ts';

const NO_JOBS: readonly Job[] = [];

/** Jobs whose model was asked for and has not come yet, by project and version. */
export class ModelWaiters {
  readonly #jobs = new Map<string, Job[]>();
  readonly #ask: (projectId: string, modelVersion: number) => void;

  /** `ask` is called for the first who waits. */
  constructor(ask: (projectId: string, modelVersion: number) => void) {
    this.#ask = ask;
  }

  /** `job` waits; null: somebody wants the model and does not wait. */
  add(projectId: string, modelVersion: number, job: Job | null): void {
    const key = modelKey(projectId, modelVersion);
    let waiting = this.#jobs.get(key);
    if (waiting === undefined) {
      waiting = [];
      this.#jobs.set(key, waiting);
      this.#ask(projectId, modelVersion);
    }
    if (job !== null) waiting.push(job);
  }

  /** The model has come, or is not known: who waited for it. */
  take(projectId: string, modelVersion: number): readonly Job[] {
    const key = modelKey(projectId, modelVersion);
    const jobs = this.#jobs.get(key) ?? NO_JOBS;
    this.#jobs.delete(key);
    return jobs;
  }

  /** Fails those whose time has ended; returns how many still wait. O(waiting). */
  sweep(nowMs: number, error: (job: Job) => AppError): number {
    let open = 0;
    for (const [key, jobs] of this.#jobs) {
      const kept = jobs.filter((job) => !job.isCancelled && job.waitUntilMs > nowMs);
      for (const job of jobs) {
        if (!job.isCancelled && job.waitUntilMs <= nowMs) job.fail(error(job));
      }
      if (kept.length === 0) this.#jobs.delete(key);
      else this.#jobs.set(key, kept);
      open += kept.length;
    }
    return open;
  }
}
