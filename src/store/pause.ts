/** A wait that may be cut short: whoever wakes it wants what follows it at once. One waiter. */
export class Pause {
  /** Woken since the last turn: the next wait is none. */
  isWoken = false;
  #resolve: (() => void) | undefined;

  /** Ends a wait that is under way, and the next one if there is none. */
  wake(): void {
    this.isWoken = true;
    this.#resolve?.();
  }

  /** Waits `ms`, or until woken. */
  async wait(ms: number): Promise<void> {
    if (this.isWoken || ms <= 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    timer.unref();
    this.#resolve = resolve;
    await promise;
    clearTimeout(timer);
    this.#resolve = undefined;
  }
}
