import type { Clock } from '../../shared/time/clock.ts';

/** Keys whose last line is remembered. */
const KEYS_MAX = 1_000;
/** Lines of all keys come at most so many in a second. */
const LINES_MAX = 10;
const SECOND_MS = 1_000;

type Quiet = { untilMs: number; suppressed: number };

/**
 * Keeps a kind of log lines rare: the first of a key at once, then one at most each `intervalMs`.
 * Returns the number of lines of the key that were suppressed since its last one, or undefined
 * where this one is suppressed. `more`: further lines that were not passed here. O(1).
 */
export function createLinePace(
  clock: Pick<Clock, 'monotonicMs'>,
  intervalMs: number,
): (key: string, more?: number) => number | undefined {
  const keys = new Map<string, Quiet>();
  const all = { untilMs: 0, lines: 0 };
  return (key, more = 0) => {
    const nowMs = clock.monotonicMs();
    if (nowMs >= all.untilMs) {
      all.untilMs = nowMs + SECOND_MS;
      all.lines = 0;
    }
    const quiet = keys.get(key) ?? { untilMs: 0, suppressed: 0 };
    // In the order in which they came last.
    keys.delete(key);
    if (keys.size >= KEYS_MAX) forgetFirst(keys);
    keys.set(key, quiet);
    quiet.suppressed += more;
    if (nowMs < quiet.untilMs || all.lines >= LINES_MAX) {
      quiet.suppressed += 1;
      return undefined;
    }
    const { suppressed } = quiet;
    quiet.untilMs = nowMs + intervalMs;
    quiet.suppressed = 0;
    all.lines += 1;
    return suppressed;
  };
}

function forgetFirst(keys: Map<string, Quiet>): void {
  const first = keys.keys().next();
  if (first.done !== true) keys.delete(first.value);
}
