import { AppError } from '../shared/app-error.ts';
import type { ServicesReason } from './services-reason.ts';

/** Those that wait for a place, at most. */
const WAITING_MAX = 1_000;

/** A number of places for work that keeps a connection, so that it leaves some to everybody else. */
export class Places {
  readonly #queue: string;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** `queue` names them where they are full. */
  constructor(queue: string, places: number) {
    this.#queue = queue;
    this.#free = places;
  }

  /** Waits for its turn. Errors: QUEUE_FULL. */
  async take(): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    if (this.#waiting.length >= WAITING_MAX) {
      throw new AppError<ServicesReason>(
        'QUEUE_FULL',
        `more than ${WAITING_MAX} ${this.#queue} are waiting`,
        { queue: this.#queue },
      );
    }
    await new Promise<void>((turn) => this.#waiting.push(turn));
  }

  giveBack(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}
