/** Allows bursts, and so many a second after that. */
export class TokenBucket {
  readonly #burst: number;
  readonly #perSecond: number;
  #tokens: number;
  #atMs = performance.now();

  constructor(burst: number, perSecond: number) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#tokens = burst;
  }

  /** False where there is none left. */
  take(): boolean {
    if (this.#tokens < this.#burst) {
      const nowMs = performance.now();
      const gained = ((nowMs - this.#atMs) / 1_000) * this.#perSecond;
      this.#tokens = Math.min(this.#burst, this.#tokens + gained);
      this.#atMs = nowMs;
    } else this.#atMs = performance.now();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
