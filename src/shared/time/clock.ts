/** Source of time. It is injected everywhere, so that tests can move it. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. Decides expiry. */
  nowMs(): number;
  /** Monotonic milliseconds with fractions. Decides deadlines and slices. */
  monotonicMs(): number;
}

/** The machine's own clock. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};
