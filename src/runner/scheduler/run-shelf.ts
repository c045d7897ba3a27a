import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { RunFilter } from '../model/ports.ts';
import type { WorkflowRun } from '../model/run.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import { ifPresent } from '../storage/file-errors.ts';
import type { SchedulerOptions } from './scheduler-options.ts';
import { runView, type RunState } from './state/run-state.ts';

/** Keeps the highest run number when the run that had it is removed. */
const NUMBER_FILE = 'last-run-number';
const EXTENSION = /\.ya?ml$/;

/** All runs that are kept, as they are shown. */
export class RunShelf {
  readonly #options: SchedulerOptions;
  readonly #byId = new Map<string, RunState>();
  /** Oldest first. */
  readonly #inOrder: RunState[] = [];
  #lastNumber = 0;
  #retaining: Promise<void> | undefined;

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  /** Cost: O(1) for the newest one, which it nearly always is. */
  add(state: RunState): void {
    this.#byId.set(state.run.id, state);
    let at = this.#inOrder.length;
    while (at > 0 && isBefore(state, this.#inOrder[at - 1])) at -= 1;
    this.#inOrder.splice(at, 0, state);
    this.#lastNumber = Math.max(this.#lastNumber, state.run.runNumber);
  }

  find(id: string): RunState | undefined {
    return this.#byId.get(id);
  }

  /** Errors: RUN_NOT_FOUND. */
  must(id: string): RunState {
    const state = this.#byId.get(id);
    if (state === undefined) throw new AppError('RUN_NOT_FOUND', `No run with id ${id}`, { id });
    return state;
  }

  nextNumber(): number {
    this.#lastNumber += 1;
    return this.#lastNumber;
  }

  /** Newest first. Cost: O(runs). */
  list(filter: RunFilter): readonly WorkflowRun[] {
    const found: WorkflowRun[] = [];
    const before = filter.before === undefined ? undefined : this.#byId.get(filter.before);
    for (const state of this.#inOrder.toReversed()) {
      if (found.length >= filter.limit) break;
      if (before !== undefined && !isBefore(state, before)) continue;
      if (filter.status !== undefined && state.run.status !== filter.status) continue;
      if (filter.workflow !== undefined && !isOf(state, filter.workflow)) continue;
      found.push(runView(state));
    }
    return found;
  }

  /** Deployments stay in their ledger. Errors: STORE_UNAVAILABLE. */
  async remove(id: string): Promise<void> {
    const state = this.must(id);
    if (state.run.runNumber === this.#lastNumber) await this.#writeLastNumber();
    this.#byId.delete(id);
    this.#inOrder.splice(this.#inOrder.indexOf(state), 1);
    await this.#options.store.remove(id);
    await this.#options.artifacts.removeRun(id);
    await this.#options.sandboxes.forget(id);
  }

  /** Of all runs that are known. */
  ids(): ReadonlySet<string> {
    return new Set(this.#byId.keys());
  }

  /** Removes finished runs that are too old or too many, the oldest first. */
  async retain(isActive: (id: string) => boolean): Promise<void> {
    while (this.#retaining !== undefined) await this.#retaining;
    this.#retaining = this.#removeExcess(isActive);
    await this.#retaining;
    this.#retaining = undefined;
  }

  /** Called once, after the runs were added. */
  async readLastNumber(): Promise<void> {
    const text = await ifPresent(readFile(this.#numberPath, 'utf8'));
    const number = Number(text?.trim() ?? '0');
    if (Number.isSafeInteger(number)) this.#lastNumber = Math.max(this.#lastNumber, number);
  }

  async #removeExcess(isActive: (id: string) => boolean): Promise<void> {
    const { limits, clock, report } = this.#options;
    const oldest = clock.nowMs() - limits.retainedAgeMs;
    let excess = this.#inOrder.length - limits.retainedRunsMax;
    for (const state of this.#inOrder.slice()) {
      const { id, completedAt } = state.run;
      if (state.phase !== 'finished' || completedAt === undefined || isActive(id)) continue;
      const isTooOld = Date.parse(completedAt) < oldest;
      if (!isTooOld && excess <= 0) continue;
      excess -= 1;
      try {
        await this.remove(id);
      } catch (error) {
        report('runner.retention', error instanceof Error ? error : new Error(String(error)));
      }
    }
  }

  get #numberPath(): string {
    return join(this.#options.projectDir, '.runner', NUMBER_FILE);
  }

  async #writeLastNumber(): Promise<void> {
    await writeFileAtomic(this.#numberPath, `${this.#lastNumber}\n`);
  }
}

function isBefore(state: RunState, other: RunState | undefined): boolean {
  if (other === undefined) return false;
  const [a, b] = [state.run, other.run];
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt;
  return a.id < b.id;
}

function isOf(state: RunState, workflow: string): boolean {
  const { workflow: name, fileName } = state.run;
  return name === workflow || fileName === workflow || fileName.replace(EXTENSION, '') === workflow;
}
