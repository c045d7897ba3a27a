import { errorFrom, type GatehouseError } from './errors.ts';
import type { Reason } from './reasons.ts';

/** How often, and how far apart, a call is made again. */
export type RetryPolicy = {
  /** Attempts in all; 1 = no second one. Default 3. */
  readonly attempts: number;
  /** The first pause is at most so long, and each later one twice as long, in milliseconds. Default 25. */
  readonly baseMs: number;
  /** No pause is longer, in milliseconds. Default 1000. */
  readonly maxMs: number;
};

export const RETRY_DEFAULT: RetryPolicy = { attempts: 3, baseMs: 25, maxMs: 1_000 };

/** Exhausted for now, by others: what is asked is not too large in itself. */
const PASSING: ReadonlySet<Reason | ''> = new Set<Reason>([
  'QUEUE_FULL',
  'RATE_LIMITED',
  'BODY_MEMORY_EXHAUSTED',
]);
/** Unavailable, and no pause that a client can make mends it. */
const LASTING: ReadonlySet<Reason | ''> = new Set<Reason>([
  'REQUEST_REFUSED',
  'STORE_RIGHTS_MISSING',
]);

/** Whether the same call may succeed a moment later. Of a write see `WriteOptions.retry`. */
export function isPassing({ code, reason }: GatehouseError): boolean {
  if (code === 'unavailable') return !LASTING.has(reason);
  return code === 'resource_exhausted' && PASSING.has(reason);
}

/**
 * Makes a call until it succeeds, its error lasts, or attempts or time end. Pauses have full jitter, so that callers
 * who failed together do not return together (AWS Architecture Blog, "Exponential Backoff and Jitter", 2015); the
 * service's own wish is obeyed. Errors: GatehouseError, of the last attempt.
 */
export async function withRetry<Result>(
  policy: RetryPolicy,
  signal: AbortSignal,
  attempt: () => Promise<Result>,
): Promise<Result> {
  for (let made = 1; ; made += 1) {
    try {
      return await attempt();
    } catch (thrown) {
      const error = errorFrom(thrown);
      if (signal.aborted || made >= policy.attempts || !isPassing(error)) throw error;
      const most = Math.min(policy.maxMs, policy.baseMs * 2 ** (made - 1));
      await pause(Math.max(Math.random() * most, error.retryAfterMs ?? 0), signal, error);
    }
  }
}

/** Waits, or throws `error` as soon as the caller has no more time. */
function pause(milliseconds: number, signal: AbortSignal, error: GatehouseError): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      reject(error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', end);
      resolve();
    }, milliseconds);
    signal.addEventListener('abort', end, { once: true });
  });
}
