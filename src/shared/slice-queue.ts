/**
 * Milliseconds that one piece of work may hold the thread, plus its work between two reads of the
 * clock. A small request needs some four turns of the loop, and waits for a slice in each.
 */
export const SLICE_MS = 1;

/**
 * Turns of the event loop for work in slices: one slice of one worker a turn, first come, first
 * served. Other work on the thread runs between two of them.
 */
export class SliceQueue {
  readonly #waiting: (() => void)[] = [];
  #isScheduled = false;

  /**
   * Resolves at the caller's turn. The caller then works for at most SLICE_MS before it requests
   * another turn.
   */
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

/**
 * The queue of the process. Decoders of all its listeners, and handlers of large requests behind
 * them, share it.
 */
export const DECODE_TURNS = new SliceQueue();

/**
 * Runs `steps`, each of which is short, to their end in turns of `queue`. Returns their result.
 * Errors: those of `steps`.
 */
export async function runInSlices<T>(steps: Iterator<unknown, T>, queue: SliceQueue): Promise<T> {
  for (;;) {
    await queue.turn();
    const untilMs = performance.now() + SLICE_MS;
    do {
      const step = steps.next();
      if (step.done === true) return step.value;
    } while (performance.now() < untilMs);
  }
}

/** Runs steps like `runInSlices`, but the first one at once: short work waits for no turn. */
export async function runSoon<T>(steps: Iterator<unknown, T>, queue: SliceQueue): Promise<T> {
  const first = steps.next();
  return first.done === true ? first.value : await runInSlices(steps, queue);
}
