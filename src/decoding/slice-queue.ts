/** Milliseconds that one piece of work may hold the thread; what it does between two looks at the clock comes on top. */
export const SLICE_MS = 3;

/**
 * Turns of the event loop for work that is done in slices: one slice of one worker a turn, in the order in which they asked. Everybody
 * else who has something to do on the thread is served between two of them.
 */
export class SliceQueue {
  readonly #waiting: (() => void)[] = [];
  #isScheduled = false;

  /** Resolves when it is the caller's turn; it then works for at most SLICE_MS, and asks again. */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      const next = this.#waiting.shift();
      this.#schedule();
      next?.();
    });
  }
}

/** The one of the process: decoders of all its listeners share it. */
export const DECODE_TURNS = new SliceQueue();

/** Runs `steps`, each of which is short, to their end, in turns of `queue`. Errors: those of `steps`. */
export async function runInSlices(steps: Iterator<unknown>, queue: SliceQueue): Promise<void> {
  for (;;) {
    await queue.turn();
    const untilMs = performance.now() + SLICE_MS;
    do {
      if (steps.next().done === true) return;
    } while (performance.now() < untilMs);
  }
}
