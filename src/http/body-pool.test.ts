import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type BodyLease, BodyPool } from './body-pool.ts';

test('bodies that are held never share a byte, whatever comes and goes', () => {
  const step = fc.oneof(
    fc.record({ take: fc.integer({ min: 2048, max: 32_768 }) }),
    fc.record({ release: fc.nat(200) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400, size: 'max' }), (steps) => {
      const pool = new BodyPool();
      const held: { readonly lease: BodyLease; readonly mark: number }[] = [];
      let marks = 0;
      for (const each of steps) {
        if ('take' in each) {
          const lease = pool.take(each.take);
          if (lease === null) continue;
          expect(lease.bytes).toHaveLength(each.take);
          marks = (marks + 1) % 256;
          lease.bytes.fill(marks);
          held.push({ lease, mark: marks });
        } else if (held.length > 0) {
          const [gone] = held.splice(each.release % held.length, 1);
          gone?.lease.release();
          gone?.lease.release();
        }
      }
      for (const { lease, mark } of held) {
        expect(lease.bytes.every((byte) => byte === mark)).toBe(true);
      }
    }),
    { numRuns: 50 },
  );
});

test('the same memory serves again once it was given back', () => {
  const pool = new BodyPool();
  const buffers = new Set<ArrayBufferLike>();
  for (let i = 0; i < 10_000; i++) {
    const leases = [pool.take(11_000), pool.take(11_000)];
    for (const lease of leases) {
      if (lease === null) throw new Error('the pool has room');
      buffers.add(lease.bytes.buffer);
      lease.release();
    }
  }
  expect(buffers.size).toBeLessThanOrEqual(2);
});

test('is bounded, and leaves small and large bodies to others', () => {
  const pool = new BodyPool();
  expect(pool.take(100)).toBeNull();
  expect(pool.take(100_000)).toBeNull();
  let taken = 0;
  while (pool.take(32_768) !== null) taken += 1;
  expect(taken * 32_768).toBe(8 * 1024 * 1024);
});
