export type RetrySchedule = {
  readonly attemptsMax: number;
  readonly retryBaseMs: number;
  /** The longest wait that nobody has asked for. */
  readonly retryMaxMs: number;
};

/** What a receiver may ask for at most: whoever says more is tried after a day. */
export const RETRY_AFTER_MS_MAX = 86_400_000;

/**
 * How long a delivery waits after its `attempts`th attempt (from 1), milliseconds: exponential back-off with equal jitter
 * (aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter), or as long as the receiver asked for, up to a day,
 * if that is longer. `random` is 0 to 1.
 */
export function retryDelayMs(
  { retryBaseMs, retryMaxMs }: RetrySchedule,
  attempts: number,
  askedMs: number,
  random: number,
): number {
  const ceilingMs = Math.min(retryBaseMs * 2 ** (attempts - 1), retryMaxMs);
  // At least half of it: a burst of failures is spread, and none is tried at once.
  const ownMs = ceilingMs * (0.5 + random / 2);
  return Math.round(Math.max(ownMs, Math.min(askedMs, RETRY_AFTER_MS_MAX)));
}
