import type { Action, Operation, Outcome } from '../checker/history.ts';

/** What an operation is, before anything is known of how it ends. */
export type Begun = {
  readonly client: number;
  readonly instance: number;
  readonly project: number;
  readonly tenant: number;
};

/** How it ended. */
export type Ended = {
  readonly action: Action;
  readonly outcome: Outcome;
  readonly error?: string | undefined;
};

/** Writes down what clients do, in the order in which they do it. One process, one order, one clock. */
export class Recorder {
  readonly #operations: Operation[] = [];
  #events = 0;
  #ids = 0;

  get operations(): readonly Operation[] {
    return this.#operations;
  }

  /** An id for an operation that is about to be sent. */
  nextId(): number {
    return this.#ids++;
  }

  /** The position of now in the order of events. */
  mark(): number {
    return this.#events++;
  }

  /** Call it right before sending, and what it returns as soon as the end is known. */
  begin(id: number, begun: Begun): (ended: Ended) => void {
    const called = this.#events++;
    const calledMs = Date.now();
    return (ended) => {
      const returned = this.#events++;
      const returnedMs = Date.now();
      this.#operations.push({ id, ...begun, ...ended, called, returned, calledMs, returnedMs });
    };
  }

  /**
   * Says of writes whose outcome is unknown whether they took effect, when nothing is under way any more
   * and `applied` was read.
   */
  resolve(wasLooked: (operation: Operation) => boolean, applied: ReadonlySet<number>): void {
    const now = this.#events++;
    for (const [index, operation] of this.#operations.entries()) {
      if (operation.outcome !== 'unknown' || !wasLooked(operation)) continue;
      this.#operations[index] = applied.has(operation.id)
        ? { ...operation, found: 'applied', returned: now }
        : { ...operation, found: 'absent' };
    }
  }
}
