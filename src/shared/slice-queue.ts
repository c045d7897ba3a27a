/**
 * Milliseconds that one piece of work may hold the thread; its work between two reads of the clock
 * comes on top. A small request needs some four turns of the loop, and waits for a slice in each.
 */
export const SLICE_MS = 1;

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

/** The one of the process: decoders of all its listeners, and whoever handles large requests behind them, share it. */
export const DECODE_TURNS = new SliceQueue();

/** Runs `steps`, each of which is short, to their end, in turns of `queue`, and returns their result. Errors: those of `steps`. */
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

/** Does what `runInSlices` does, but the first step at once: what is short waits for no turn. */
export async function runSoon<T>(steps: Iterator<unknown, T>, queue: SliceQueue): Promise<T> {
  const first = steps.next();
  return first.done === true ? first.value : await runInSlices(steps, queue);
}
