/** No answer is late before this, however near the database is. */
export const STALL_MS = 25;
/** Later than this every answer is late: half of the time after which its connection is given up. */
export const STALL_MS_MAX = 500;
/**
 * A single answer counts for at most this multiple of the present threshold: one that hung is no
 * measure of the round trip.
 */
const SAMPLE_SHARE_MAX = 2;

/**
 * From when on an answer is late, by the round trips of those before: 1.5 × the smoothed round trip and 4 × its smoothed
 * deviation, within STALL_MS and STALL_MS_MAX. The smoothing is that of RFC 6298, section 2, for retransmissions; half a round
 * trip besides, since a link without any jitter would else be late with its first. Times are in ms. Cost: O(1), no allocation.
 */
export class StallThreshold {
  #smoothedMs = 0;
  #deviationMs = 0;
  #hasSample = false;

  /** Before the first answer `firstMs` is believed, a round trip that was measured elsewhere; 0 if none. */
  ms(firstMs = 0): number {
    const roundMs = this.#hasSample ? this.#smoothedMs : firstMs;
    const deviationMs = this.#hasSample ? this.#deviationMs : firstMs / 2;
    return Math.min(STALL_MS_MAX, Math.max(STALL_MS, 1.5 * roundMs + 4 * deviationMs));
  }

  /** An answer came after `roundMs`, late or not. */
  observe(roundMs: number): void {
    const sampleMs = Math.min(roundMs, SAMPLE_SHARE_MAX * this.ms(roundMs));
    if (this.#hasSample) {
      this.#deviationMs += (Math.abs(this.#smoothedMs - sampleMs) - this.#deviationMs) / 4;
      this.#smoothedMs += (sampleMs - this.#smoothedMs) / 8;
      return;
    }
    this.#hasSample = true;
    this.#smoothedMs = sampleMs;
    this.#deviationMs = sampleMs / 2;
  }
}
