import { AppError } from '../shared/app-error.ts';
import { assert } from '../shared/assert.ts';

/** Long lists that wait for their turn, at most; beyond, QUEUE_FULL. */
export const WAITING_LISTS_MAX = 100;

/** Lets so many long lists be read at once, the others in order of arrival. */
export class LongListGate {
  readonly #readersMax: number;
  readonly #waiting: (() => void)[] = [];
  #readers = 0;

  constructor(readersMax: number) {
    assert(readersMax > 0, 'at least one list may be read');
    this.#readersMax = readersMax;
  }

  /** Resolves when it is the caller's turn, with what ends it (idempotent). Errors: QUEUE_FULL. */
  async enter(): Promise<() => void> {
    if (this.#readers < this.#readersMax) {
      this.#readers++;
    } else {
      if (this.#waiting.length >= WAITING_LISTS_MAX) {
        throw new AppError('QUEUE_FULL', `more than ${WAITING_LISTS_MAX} long lists are waiting`, {
          queue: 'lists',
        });
      }
      // The reader that leaves hands its place on.
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    let isInside = true;
    return () => {
      if (!isInside) return;
      isInside = false;
      const next = this.#waiting.shift();
      if (next === undefined) this.#readers--;
      else next();
    };
  }
}
