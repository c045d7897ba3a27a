/** How much may be taken. */
export type RateLimit = {
  /** Over time. */
  readonly perSecond: number;
  /** At once, after a pause. */
  readonly burst: number;
};

/** Counts against a rate: a bucket of `burst` that `perSecond` refills. Of this process alone. */
export class TokenBucket {
  #limit: RateLimit;
  #left: number;
  #countedMs: number;

  constructor(limit: RateLimit, nowMs: number) {
    this.#limit = limit;
    this.#left = limit.burst;
    this.#countedMs = nowMs;
  }

  /** Puts another rate in force; what is left stays, as far as it fits. */
  change(limit: RateLimit): void {
    this.#limit = limit;
    this.#left = Math.min(this.#left, limit.burst);
  }

  /** Hot. Whether one more may be taken at `nowMs`; it is not counted. */
  canAcquire(nowMs: number): boolean {
    const { perSecond } = this.#limit;
    return this.#left + ((nowMs - this.#countedMs) / 1_000) * perSecond >= 1;
  }

  /** Hot. Whether one more may be taken at `nowMs`, of a clock that never goes back; it is counted then. */
  tryAcquire(nowMs: number): boolean {
    const { perSecond, burst } = this.#limit;
    this.#left = Math.min(burst, this.#left + ((nowMs - this.#countedMs) / 1_000) * perSecond);
    this.#countedMs = nowMs;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
