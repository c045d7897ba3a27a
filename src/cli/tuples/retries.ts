import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../shared/app-error.ts';
import { serviceReason } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import { integerOfOption } from '../core/json-values.ts';

const FIRST_MS = 250;
const WAIT_MAX_MS = 10_000;
const RETRIES_MAX = 1_000_000;

/** Appends a hint to an AppError; returns any other error as it is. */
export function withHint(error: unknown, hint: string): unknown {
  if (!(error instanceof AppError)) return error;
  return new AppError<string>(error.reason, `${error.message}; ${hint}`, error.metadata, error);
}

/**
 * Counts and delays attempts after lost connections. Before the first success it allows only the
 * attempts of `--retries`.
 */
export class Retries {
  readonly #line: CliLine;
  readonly #max: number;
  #hasBegun: boolean;
  #failed = 0;
  #said = '';

  /**
   * Allows `countDefault` attempts in a row, unless `--retries` overrides it. Errors:
   * INVALID_REQUEST.
   */
  constructor(line: CliLine, countDefault: number) {
    this.#line = line;
    const asked = integerOfOption('retries', line.text('retries'), 0, RETRIES_MAX);
    this.#max = asked ?? countDefault;
    this.#hasBegun = asked !== undefined;
  }

  /** Marks the service as reached: another attempt may reach it again. */
  begun(): void {
    this.#hasBegun = true;
  }

  /** Marks progress: earlier failed attempts no longer count. */
  progressed(): void {
    this.#failed = 0;
    this.#said = '';
  }

  /**
   * Waits before another attempt, and prints a note. The delay doubles each time, minus a random
   * part.
   * Errors: `error`, if another attempt cannot help or the attempts are used up.
   */
  async wait(error: unknown, goesOn: string): Promise<void> {
    const isPassing = error instanceof AppError && error.reason === 'UNAVAILABLE';
    // The same request exhausts the same budget.
    const isLasting = !isPassing || serviceReason(error) === 'BUDGET_EXHAUSTED';
    if (isLasting || !this.#hasBegun || this.#failed >= this.#max) throw error;
    const longest = Math.min(FIRST_MS * 2 ** this.#failed, WAIT_MAX_MS);
    this.#failed += 1;
    const { notes } = this.#line.screens;
    // A long outage is reported once.
    if (error.message !== this.#said) notes.line(`${notes.foreign(error.message)}; ${goesOn}`);
    this.#said = error.message;
    await sleep(longest * (0.5 + Math.random() / 2));
  }
}
