import { expect, test } from 'vitest';
import { retryAfterMs } from './retry-after.ts';

const NOW = Date.UTC(1994, 10, 6, 8, 49, 7);

test.each([
  [undefined, undefined],
  ['0', 0],
  ['120', 120_000],
  ['99999999999', 99_999_999_999_000],
  ['Sun, 06 Nov 1994 08:49:37 GMT', 30_000],
  ['Sunday, 06-Nov-94 08:49:37 GMT', 30_000],
  ['Sun Nov  6 08:49:37 1994', 30_000],
  ['Wed, 16 Nov 1994 08:49:07 GMT', 864_000_000],
  ['Sun, 06 Nov 1994 08:49:00 GMT', 0],
  // More than fifty years ahead: the last year with these digits.
  ['Friday, 06-Nov-70 08:49:37 GMT', 0],
  ['', undefined],
  ['-5', undefined],
  ['1.5', undefined],
  ['soon', undefined],
  ['in 2030', undefined],
  ['2094', 2_094_000],
  ['2094-11-06T08:49:37Z', undefined],
  ['Sun, 06 Nov 1994 08:49:37', undefined],
  ['Sun, 06 Nov 1994 08:49:37 +0900', undefined],
])('%s asks for %s ms', (value, expected) => {
  expect(retryAfterMs(value, NOW)).toBe(expected);
});
