import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../shared/app-error.ts';
import { serviceReason } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import { integerOfOption } from '../core/json-values.ts';

const FIRST_MS = 250;
const WAIT_MAX_MS = 10_000;
const RETRIES_MAX = 1_000_000;

/** An error with words behind its own; what is none of ours stays as it is. */
export function withHint(error: unknown, hint: string): unknown {
  if (!(error instanceof AppError)) return error;
  return new AppError<string>(error.reason, `${error.message}; ${hint}`, error.metadata, error);
}

/** Attempts after lost connections: how many in a row, and when. Before the first success there are only those asked for. */
export class Retries {
  readonly #line: CliLine;
  readonly #max: number;
  #hasBegun: boolean;
  #failed = 0;
  #said = '';

  /** `countDefault` in a row, unless `--retries` says otherwise. Errors: INVALID_REQUEST. */
  constructor(line: CliLine, countDefault: number) {
    this.#line = line;
    const asked = integerOfOption('retries', line.text('retries'), 0, RETRIES_MAX);
    this.#max = asked ?? countDefault;
    this.#hasBegun = asked !== undefined;
  }

  /** The service was there: another attempt may find it again. */
  begun(): void {
    this.#hasBegun = true;
  }

  /** Something arrived: attempts that failed before do not count. */
  progressed(): void {
    this.#failed = 0;
    this.#said = '';
  }

  /**
   * Waits until it is time for another attempt, twice as long as before and a random part of it less, and says so.
   * Errors: `error`, where another attempt cannot help or there were enough of them.
   */
  async wait(error: unknown, goesOn: string): Promise<void> {
    const isPassing = error instanceof AppError && error.reason === 'UNAVAILABLE';
    // The same request exhausts the same budget.
    const isLasting = !isPassing || serviceReason(error) === 'BUDGET_EXHAUSTED';
    if (isLasting || !this.#hasBegun || this.#failed >= this.#max) throw error;
    const longest = Math.min(FIRST_MS * 2 ** this.#failed, WAIT_MAX_MS);
    this.#failed += 1;
    const { notes } = this.#line.screens;
    // A service that is away for hours is said once.
    if (error.message !== this.#said) notes.line(`${notes.foreign(error.message)}; ${goesOn}`);
    this.#said = error.message;
    await sleep(longest * (0.5 + Math.random() / 2));
  }
}
