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
          const lease = pool.acquire(each.take);
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
    const leases = [pool.acquire(11_000), pool.acquire(11_000)];
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
  expect(pool.acquire(100)).toBeNull();
  expect(pool.acquire(100_000)).toBeNull();
  let taken = 0;
  while (pool.acquire(32_768) !== null) taken += 1;
  expect(taken * 32_768).toBe(8 * 1024 * 1024);
});

test('memory of a large body is used again, for one body at a time, and what is kept is bounded', () => {
  const pool = new BodyPool();
  const first = pool.acquireLarge(1_300_000);
  const second = pool.acquireLarge(1_300_000);
  expect(first.bytes.length).toBe(1_300_000);
  expect(second.bytes.buffer).not.toBe(first.bytes.buffer);
  const { buffer } = first.bytes;
  first.release();
  first.release();
  expect(pool.acquireLarge(1_100_000).bytes.buffer).toBe(buffer);
  expect(pool.acquireLarge(1_100_000).bytes.buffer).not.toBe(buffer);
  // 16 MiB are kept: eight of 2 MiB.
  const many = Array.from({ length: 20 }, () => pool.acquireLarge(2_000_000));
  const given = new Set(many.map((lease) => lease.bytes.buffer));
  for (const lease of many) lease.release();
  const again = Array.from({ length: 20 }, () => pool.acquireLarge(2_000_000));
  expect(again.filter((lease) => given.has(lease.bytes.buffer))).toHaveLength(8);
  // A buffer beyond the largest size is exactly as long as requested, and not kept.
  const huge = pool.acquireLarge(9_000_000);
  expect(huge.bytes.buffer.byteLength).toBe(9_000_000);
  huge.release();
  expect(pool.acquireLarge(9_000_000).bytes.buffer).not.toBe(huge.bytes.buffer);
});
