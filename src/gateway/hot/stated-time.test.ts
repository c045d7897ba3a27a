import { expect, test } from 'vitest';
import { connectTimeoutMs, grpcTimeoutMs } from './stated-time.ts';

test.each([
  ['0', 0],
  ['1', 1],
  ['9999999999', 9_999_999_999],
  ['', 0],
  ['-1', 0],
  ['1.5', 0],
  ['12345678901', 0],
])('Connect-Timeout-Ms "%s" is %d ms', (text, ms) => {
  expect(connectTimeoutMs(text)).toBe(ms);
});

test.each([
  ['1H', 3_600_000],
  ['2M', 120_000],
  ['3S', 3_000],
  ['4m', 4],
  ['5u', 0.005],
  ['6n', 0.000_006],
  ['99999999m', 99_999_999],
  ['100000000m', 0],
  ['5', 0],
  ['S', 0],
  ['', 0],
  ['-1S', 0],
])('grpc-timeout "%s" is %d ms', (text, ms) => {
  expect(grpcTimeoutMs(text)).toBeCloseTo(ms, 9);
});
