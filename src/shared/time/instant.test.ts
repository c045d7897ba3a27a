import { expect, test } from 'vitest';
import { NO_TIMES, TIMES, TOO_FINE } from '../../../test/support/times.ts';
import { isTimestamp, microsecondsOf, nanosOf, parseInstant, parseTimestamp } from './instant.ts';

test.each(TIMES)('%s', (text, seconds, nanos) => {
  const instant = parseTimestamp(text);
  expect(instant?.seconds).toBe(seconds);
  expect(instant && nanosOf(instant)).toBe(nanos);
  expect(instant && microsecondsOf(instant)).toBe(
    BigInt(seconds) * 1_000_000n + BigInt(Math.floor(nanos / 1000)),
  );
});

test.each(NO_TIMES)('%j is no time', (text) => {
  expect(parseTimestamp(text)).toBeUndefined();
});

test('digits beyond nanoseconds are of an instant, and of no timestamp', () => {
  const instant = parseInstant(TOO_FINE);
  expect(instant?.fraction).toBe('1234567891');
  expect(instant && nanosOf(instant)).toBeUndefined();
});

test.each([
  [-62_135_596_800n, 0, true],
  [-62_135_596_801n, 999_999_999, false],
  [253_402_300_799n, 999_999_999, true],
  [253_402_300_800n, 0, false],
  [0n, -1, false],
  [0n, 1_000_000_000, false],
  [0n, 0.5, false],
  [2n ** 63n - 1n, 0, false],
])('the seconds %s with %s nanoseconds', (seconds, nanos, isOne) => {
  expect(isTimestamp(seconds, nanos)).toBe(isOne);
});

test('a fraction as long as a body takes no longer than to read it', () => {
  // Of so many digits one that looks anew from each takes hours.
  const zeros = '0'.repeat(4_000_000);
  expect(parseInstant(`2026-11-28T00:00:00.${zeros}1Z`)?.fraction).toBe(`${zeros}1`);
  expect(parseInstant(`2026-11-28T00:00:00.5${zeros}Z`)?.fraction).toBe('5');
});
