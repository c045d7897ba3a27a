import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { ProblemReporter } from '../model/ports.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import { ifPresent } from '../storage/file-errors.ts';

/** The last number that was given, in decimal. */
const FILE = 'last-run-id';
const TEXT = /^[1-9]\d{0,15}\n$/;

/**
 * Counts the runs of a project for `github.run_id`: each gets one more than the one before it, whatever its workflow.
 * The first number is the time in seconds: those of two clones are mostly apart, and so is what is counted after
 * the file was lost. Only the process that has the lock of `.runner` counts.
 */
export class NumericIds {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #report: ProblemReporter;
  #last = 0;
  #keptUpTo = 0;
  #writing: Promise<void> = Promise.resolve();

  constructor(projectDir: string, clock: Clock, report: ProblemReporter) {
    this.#path = join(projectDir, '.runner', FILE);
    this.#clock = clock;
    this.#report = report;
  }

  /** The number of a run that is kept. */
  raise(number: number): void {
    if (isId(number)) this.#last = Math.max(this.#last, number);
  }

  /** Called once, after the runs that are kept. A file that is damaged or missing counts like a new project's. */
  async read(): Promise<void> {
    const text = await ifPresent(readFile(this.#path, 'utf8'));
    const kept = TEXT.test(text ?? '') ? Number(text) : 0;
    if (isId(kept)) {
      this.#keptUpTo = kept;
      this.raise(kept);
      return;
    }
    if (text !== undefined) {
      const problem = `${FILE} holds no number; the next run is numbered by the time`;
      this.#report('runner.run-ids', new AppError('STORE_UNAVAILABLE', problem));
    }
    // What removed runs had is less: it began with an earlier time, and few projects start a run each second.
    this.raise(Math.floor(this.#clock.nowMs() / 1000) - 1);
  }

  /** Not given again by this process; `keep` makes that last. */
  next(): number {
    this.#last += 1;
    return this.#last;
  }

  /** Resolves when no other process will give what `next` gave so far. Errors: STORE_UNAVAILABLE, DISK_FULL. */
  async keep(): Promise<void> {
    const wanted = this.#last;
    const write = async (): Promise<void> => {
      // The write before it may have had this number already.
      if (this.#keptUpTo >= wanted) return;
      const last = this.#last;
      await writeFileAtomic(this.#path, `${last}\n`);
      this.#keptUpTo = last;
    };
    this.#writing = this.#writing.then(write, write);
    await this.#writing;
  }
}

function isId(number: number): boolean {
  return Number.isSafeInteger(number) && number > 0;
}
