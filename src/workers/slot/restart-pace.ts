const BOOTSTRAP_FAILURES_MAX = 2;
const DELAY_FIRST_MS = 50;
const DELAY_MAX_MS = 5_000;
/** A worker that lived longer than this restarts at once. */
const STABLE_AFTER_MS = 10_000;

/** How long a slot waits before it starts its next worker: longer each time that one does not live long. */
export class RestartPace {
  #bootstrapFailures = 0;
  #delayMs = 0;
  #readySinceMs = 0;

  /** A worker has become ready. */
  ready(nowMs: number): void {
    this.#bootstrapFailures = 0;
    this.#readySinceMs = nowMs;
  }

  /** A worker was lost. Returns the delay before the next one in ms; undefined: none can start. */
  lost(wasReady: boolean, nowMs: number): number | undefined {
    if (wasReady) {
      const livedMs = nowMs - this.#readySinceMs;
      const isStable = livedMs > STABLE_AFTER_MS;
      const longerMs = Math.max(DELAY_FIRST_MS, this.#delayMs * 2);
      this.#delayMs = isStable ? 0 : Math.min(DELAY_MAX_MS, longerMs);
      return this.#delayMs;
    }
    this.#bootstrapFailures += 1;
    return this.#bootstrapFailures >= BOOTSTRAP_FAILURES_MAX ? undefined : this.#delayMs;
  }
}
