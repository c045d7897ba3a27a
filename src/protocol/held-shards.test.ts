import { expect, test } from 'vitest';
import { createHeldMemory, HeldBySlots, HeldShards } from './held-shards.ts';
import { shardHash, slotOfShard } from './shard-routing.ts';

const shard = (i: number) => ({ projectId: 'p', tenantId: `t${i}` });

test('what a worker holds is held, whichever slot it has, and no longer once it is gone', () => {
  for (const slotCount of [1, 3, 8]) {
    const all = new HeldBySlots(slotCount);
    const workers = all.memories.map((memory) => new HeldShards(memory));
    const ownerOf = (i: number): HeldShards =>
      workers[slotOfShard(shard(i), slotCount)] as HeldShards;
    for (let i = 0; i < 2_000; i++) ownerOf(i).add(shard(i));
    for (let i = 0; i < 2_000; i++) expect(all.mayHold(shard(i))).toBe(true);
    // Few of the shards that are not held are taken for held: those that share a slot.
    let wrong = 0;
    for (let i = 2_000; i < 22_000; i++) if (all.mayHold(shard(i))) wrong++;
    expect(wrong / 20_000).toBeLessThan(0.03);
    for (let i = 0; i < 1_000; i++) ownerOf(i).remove(shard(i));
    for (let i = 1_000; i < 2_000; i++) expect(all.mayHold(shard(i))).toBe(true);
    for (let i = 1_000; i < 2_000; i++) ownerOf(i).remove(shard(i));
    for (let i = 0; i < 2_000; i++) expect(all.mayHold(shard(i))).toBe(false);
  }
});

test('shards that share a place are each counted', () => {
  const first = shard(0);
  const place = shardHash(first) >>> 15;
  let i = 1;
  while (shardHash(shard(i)) >>> 15 !== place) i++;
  const held = new HeldShards(createHeldMemory());
  held.add(first);
  held.add(shard(i));
  held.remove(first);
  expect(held.mayHold(shardHash(shard(i)))).toBe(true);
  held.clear();
  expect(held.mayHold(shardHash(shard(i)))).toBe(false);
});
