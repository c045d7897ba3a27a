import { AppError } from '../../shared/app-error.ts';
import type { EngineReason } from '../bound/engine-reason.ts';

/** Characters of the ids of one answer, whole or streamed. */
export const LIST_TEXT_MAX = 64 * 1_048_576;

/** How much an answer may still hold: a list is complete or an error, and memory is bounded. */
export class ListCapacity {
  #left: number;

  constructor(textMax = LIST_TEXT_MAX) {
    this.#left = textMax;
  }

  /** Counts an id. Errors: RESULT_TOO_LARGE. */
  take(id: string): void {
    this.#left -= id.length;
    if (this.#left >= 0) return;
    throw new AppError<EngineReason>(
      'RESULT_TOO_LARGE',
      `the ids of the list take more than ${LIST_TEXT_MAX} characters: ask for pages`,
      { limit: String(LIST_TEXT_MAX) },
    );
  }
}
