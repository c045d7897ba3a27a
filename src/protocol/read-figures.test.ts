import fc from 'fast-check';
import { expect, test } from 'vitest';
import { READ_BUCKETS, readBucketOf, readsOfBucket } from './read-figures.ts';

test('every number of reads lies in one bucket, whose bounds are an eighth apart at most', () => {
  fc.assert(
    fc.property(fc.oneof(fc.nat(5_000), fc.nat(2 ** 31 - 1)), (reads) => {
      const bucket = readBucketOf(reads);
      expect(bucket).toBeLessThan(READ_BUCKETS);
      const most = readsOfBucket(bucket);
      const fewest = bucket === 0 ? 0 : readsOfBucket(bucket - 1) + 1;
      expect(reads).toBeGreaterThanOrEqual(fewest);
      expect(reads).toBeLessThanOrEqual(most);
      expect(most).toBeLessThanOrEqual(fewest * 1.125);
    }),
  );
});

test('buckets ascend to the largest number', () => {
  for (let bucket = 1; bucket < READ_BUCKETS; bucket++) {
    expect(readsOfBucket(bucket)).toBeGreaterThan(readsOfBucket(bucket - 1));
  }
  expect(readsOfBucket(READ_BUCKETS - 1)).toBe(2 ** 31 - 1);
});
