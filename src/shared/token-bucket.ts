/** A rate with a burst. */
export type RateLimit = {
  /** Refill over time. */
  readonly perSecond: number;
  /** Most at once, after a pause. */
  readonly burst: number;
};

/** A bucket of `burst` that `perSecond` refills. It counts for this process alone. */
export class TokenBucket {
  #limit: RateLimit;
  #left: number;
  #countedMs: number;

  constructor(limit: RateLimit, nowMs: number) {
    this.#limit = limit;
    this.#left = limit.burst;
    this.#countedMs = nowMs;
  }

  /** Changes the rate; the remaining tokens stay, up to the new burst. */
  change(limit: RateLimit): void {
    this.#limit = limit;
    this.#left = Math.min(this.#left, limit.burst);
  }

  /** Hot. True if a token is available at `nowMs`; does not take it. */
  canAcquire(nowMs: number): boolean {
    const { perSecond } = this.#limit;
    return this.#left + ((nowMs - this.#countedMs) / 1_000) * perSecond >= 1;
  }

  /**
   * Hot. Takes a token if one is available at `nowMs`, of a clock that never goes back. True if it
   * did.
   */
  tryAcquire(nowMs: number): boolean {
    const { perSecond, burst } = this.#limit;
    this.#left = Math.min(burst, this.#left + ((nowMs - this.#countedMs) / 1_000) * perSecond);
    this.#countedMs = nowMs;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
