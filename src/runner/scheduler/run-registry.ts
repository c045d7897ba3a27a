import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { RunFilter } from '../model/ports.ts';
import type { WorkflowRun } from '../model/run.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import { ifPresent } from '../storage/file-errors.ts';
import { NumericIds } from './numeric-ids.ts';
import type { SchedulerOptions } from './scheduler-options.ts';
import type { RunNumbers } from './start-request.ts';
import { runView, type RunState } from './state/run-state.ts';

/** Keeps the highest number of a workflow's runs when the run that had it is removed. */
const NUMBERS_FILE = 'last-run-numbers.json';
const EXTENSION = /\.ya?ml$/;

/** All runs that are kept, as they are shown. */
export class RunRegistry {
  readonly #options: SchedulerOptions;
  readonly #byId = new Map<string, RunState>();
  /** By their `github.run_id`. Ids are no numbers, so that the two cannot be mistaken for each other. */
  readonly #byNumericId = new Map<string, RunState>();
  /** Oldest first. */
  readonly #inOrder: RunState[] = [];
  /** The highest number of the runs of each workflow, by its file. */
  readonly #lastNumbers = new Map<string, number>();
  readonly #numericIds: NumericIds;
  #retaining: Promise<void> | undefined;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#numericIds = new NumericIds(options.projectDir, options.clock, options.report);
  }

  /** Cost: O(1) for the newest one, which it nearly always is. */
  add(state: RunState): void {
    this.#byId.set(state.run.id, state);
    let at = this.#inOrder.length;
    while (at > 0 && isBefore(state, this.#inOrder[at - 1])) at -= 1;
    this.#inOrder.splice(at, 0, state);
    const { fileName, runNumber, numericId } = state.run;
    this.#raise(fileName, runNumber);
    if (numericId === undefined) return;
    this.#byNumericId.set(String(numericId), state);
    this.#numericIds.raise(numericId);
  }

  /** By its id or its number. */
  find(id: string): RunState | undefined {
    return this.#byId.get(id) ?? this.#byNumericId.get(id);
  }

  /** By its id or its number. Errors: RUN_NOT_FOUND. */
  must(id: string): RunState {
    const state = this.find(id);
    if (state === undefined) throw new AppError('RUN_NOT_FOUND', `No run with id ${id}`, { id });
    return state;
  }

  /**
   * Each workflow counts its own runs, from 1; the project numbers all of them.
   * Source: GitHub's documentation, `github.run_number` and `github.run_id`.
   */
  nextNumbers(fileName: string): RunNumbers {
    const runNumber = (this.#lastNumbers.get(fileName) ?? 0) + 1;
    this.#lastNumbers.set(fileName, runNumber);
    return { runNumber, numericId: this.#numericIds.next() };
  }

  /** Before a run is recorded: its number is given to no other, whatever becomes of it. Errors: STORE_UNAVAILABLE. */
  async keepNumericIds(): Promise<void> {
    await this.#numericIds.keep();
  }

  /** Newest first. Cost: O(runs). */
  list(filter: RunFilter): readonly WorkflowRun[] {
    const found: WorkflowRun[] = [];
    const before = filter.before === undefined ? undefined : this.find(filter.before);
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
    const { fileName, runNumber, numericId } = state.run;
    if (runNumber === this.#lastNumbers.get(fileName)) await this.#writeLastNumbers();
    this.#byId.delete(id);
    this.#byNumericId.delete(String(numericId));
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
    const removing = this.#removeExcess(isActive);
    this.#retaining = removing.then(ignored, ignored);
    await removing.finally(() => (this.#retaining = undefined));
  }

  /** Called once, after the runs were added. */
  async readLastNumbers(): Promise<void> {
    await this.#numericIds.read();
    const text = await ifPresent(readFile(this.#numbersPath, 'utf8'));
    if (text === undefined) return;
    for (const [fileName, number] of numbersOf(text)) this.#raise(fileName, number);
  }

  #raise(fileName: string, number: number): void {
    this.#lastNumbers.set(fileName, Math.max(this.#lastNumbers.get(fileName) ?? 0, number));
  }

  async #removeExcess(isActive: (id: string) => boolean): Promise<void> {
    const { limits, clock } = this.#options;
    const errors: unknown[] = [];
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
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }

  get #numbersPath(): string {
    return join(this.#options.projectDir, '.runner', NUMBERS_FILE);
  }

  async #writeLastNumbers(): Promise<void> {
    const numbers = Object.fromEntries(this.#lastNumbers);
    await writeFileAtomic(this.#numbersPath, `${JSON.stringify(numbers, null, 1)}\n`);
  }
}

function ignored(): void {
  // Whoever began it reports its failure.
}

/** What can be read of the file: a damaged one costs numbers that are given again, not the start. */
function numbersOf(text: string): readonly (readonly [string, number])[] {
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value !== 'object' || value === null) return [];
    return Object.entries(value).filter(([, number]) => Number.isSafeInteger(number));
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
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
