import { describe, expect, test } from 'vitest';
import { type RetrySchedule, retryDelayMs } from '../../src/notify/channels/retry-schedule.ts';
import { loadNotifySettings } from '../../src/notify/service/settings.ts';

const HOUR_MS = 3_600_000;
const BY_DEFAULT = loadNotifySettings({});

/** All waits together of a delivery that nobody answers, milliseconds, with the same `random` in each. */
function retryTotalMs(schedule: RetrySchedule, random: number): number {
  let totalMs = 0;
  for (let attempts = 1; attempts < schedule.attemptsMax; attempts++) {
    totalMs += retryDelayMs(schedule, attempts, 0, random);
  }
  return totalMs;
}

describe('the default schedule', () => {
  test('tries for a day at least, however chance has it, and for two at most', () => {
    expect(BY_DEFAULT.attemptsMax).toBe(60);
    // The sum of 1, 2, 4 … 2,048 seconds and 47 hours, and the half of it.
    expect(retryTotalMs(BY_DEFAULT, 1)).toBe(4_095_000 + 47 * HOUR_MS);
    expect(retryTotalMs(BY_DEFAULT, 0)).toBe((4_095_000 + 47 * HOUR_MS) / 2);
    expect(retryTotalMs(BY_DEFAULT, 0)).toBeGreaterThanOrEqual(24 * HOUR_MS);
    expect(retryTotalMs(BY_DEFAULT, 1)).toBeLessThanOrEqual(49 * HOUR_MS);
  });

  test('has twelve further attempts within 70 minutes, and one each 30 to 60 minutes then', () => {
    expect(retryTotalMs({ ...BY_DEFAULT, attemptsMax: 13 }, 1)).toBeLessThan(70 * 60_000);
    expect([0, 1].map((random) => retryDelayMs(BY_DEFAULT, 13, 0, random))).toEqual([
      HOUR_MS / 2,
      HOUR_MS,
    ]);
  });
});

test.each([
  ['less than the wait is not looked at', 1, 200, 750],
  ['more than the wait is waited', 1, 5_000, 5_000],
  ['more than the longest wait, too', 1, 2 * HOUR_MS, 2 * HOUR_MS],
  ['more than a day is a day', 59, 1e300, 24 * HOUR_MS],
])('what a receiver asks for: %s', (_name, attempts, askedMs, expected) => {
  expect(retryDelayMs(BY_DEFAULT, attempts, askedMs, 0.5)).toBe(expected);
});
