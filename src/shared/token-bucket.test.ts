import { expect, test } from 'vitest';
import { TokenBucket } from './token-bucket.ts';

/** How many of `count` can be taken at `nowMs`. */
function takenAt(bucket: TokenBucket, nowMs: number, count: number): number {
  return Array.from({ length: count }, () => bucket.tryAcquire(nowMs)).filter(Boolean).length;
}

test('gives a burst at once, then what time brings, and never more than a burst', () => {
  const bucket = new TokenBucket({ burst: 5, perSecond: 2 }, 1_000);
  expect(takenAt(bucket, 1_000, 9)).toBe(5);
  expect(takenAt(bucket, 1_499, 9)).toBe(0);
  expect(takenAt(bucket, 1_500, 9)).toBe(1);
  expect(takenAt(bucket, 3_000, 9)).toBe(3);
  expect(takenAt(bucket, 900_000, 9)).toBe(5);
});

test('shows what may be taken without counting it', () => {
  const bucket = new TokenBucket({ burst: 1, perSecond: 1 }, 0);
  expect([bucket.canAcquire(0), bucket.canAcquire(0), bucket.tryAcquire(0)]).toEqual([
    true,
    true,
    true,
  ]);
  expect([bucket.canAcquire(0), bucket.canAcquire(999), bucket.canAcquire(1_000)]).toEqual([
    false,
    false,
    true,
  ]);
});

test('another rate keeps what is left, as far as it fits', () => {
  const bucket = new TokenBucket({ burst: 10, perSecond: 1 }, 0);
  bucket.change({ burst: 3, perSecond: 1 });
  expect(takenAt(bucket, 0, 9)).toBe(3);
  bucket.change({ burst: 10, perSecond: 1 });
  expect(takenAt(bucket, 0, 9)).toBe(0);
  expect(takenAt(bucket, 60_000, 99)).toBe(10);
});
