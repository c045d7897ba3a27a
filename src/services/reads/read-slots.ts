import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';

/** Waiting callers at most. */
const WAITING_MAX = 1_000;

/** Slots for work that keeps a connection, so that other work has connections left. */
export class ReadSlots {
  readonly #queue: string;
  readonly #waitingMax: number;
  #free: number;
  /** In the order in which they came. */
  readonly #waiting = new Set<() => void>();

  /** `queue` names them where they are full. */
  constructor(queue: string, slots: number, waitingMax = WAITING_MAX) {
    this.#queue = queue;
    this.#free = slots;
    this.#waitingMax = waitingMax;
  }

  /** Number of waiting callers. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Waits for its turn; who has gone waits no longer. Errors: QUEUE_FULL; CANCELLED when `signal` aborts. */
  async acquire(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) throw cancelled();
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    if (this.#waiting.size >= this.#waitingMax) {
      throw new AppError<AuthzReason>(
        'QUEUE_FULL',
        `more than ${this.#waitingMax} ${this.#queue} are waiting`,
        { queue: this.#queue },
      );
    }
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.delete(turn);
        reject(cancelled());
      };
      const turn = (): void => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      this.#waiting.add(turn);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}

function cancelled(): AppError {
  return new AppError<AuthzReason>('CANCELLED', 'the caller has gone');
}
