import { expect, test } from 'vitest';
import { shardHash, slotOfShard } from './shard-routing.ts';

test('the hash is the same on every start', () => {
  expect(shardHash({ projectId: 'default', tenantId: '' })).toBe(
    shardHash({ projectId: 'default', tenantId: '' }),
  );
  expect(shardHash({ projectId: 'ab', tenantId: 'c' })).not.toBe(
    shardHash({ projectId: 'a', tenantId: 'bc' }),
  );
});

test('tenants spread evenly over slots', () => {
  const counts = Array.from({ length: 7 }, () => 0);
  for (let i = 0; i < 7_000; i++) {
    const slot = slotOfShard({ projectId: 'p', tenantId: `tenant-${i}` }, 7);
    counts[slot] = (counts[slot] ?? 0) + 1;
  }
  for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(150);
});
