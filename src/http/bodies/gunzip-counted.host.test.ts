import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { BodyBudget } from './body-budget.ts';
import { gunzipCounted } from './gunzip-counted.ts';

const MIB = 2 ** 20;
const NONE = { evict: (): void => undefined };

test('what comes out counts, from before it is there until its end', async () => {
  const budget = new BodyBudget({ bytesMax: 32 * MIB });
  const hold = budget.open('ann', NONE);
  const work = gunzipCounted(gzipSync(Buffer.alloc(2 * MIB)), 8 * MIB, hold);
  expect(budget.heldBytes).toBeGreaterThanOrEqual(2 * MIB);
  expect(await work).toHaveLength(2 * MIB);
  expect(budget.heldBytes).toBeGreaterThanOrEqual(2 * MIB);
  hold.release();
  expect(budget.heldBytes).toBe(0);
});

test('a small one costs nothing', async () => {
  const budget = new BodyBudget({ bytesMax: 32 * MIB });
  const hold = budget.open('ann', NONE);
  expect(await gunzipCounted(gzipSync('text'), MIB, hold)).toEqual(Buffer.from('text'));
  expect(budget.heldBytes).toBe(0);
});

test('without room nothing is decompressed', async () => {
  const budget = new BodyBudget({ bytesMax: 4 * MIB });
  const hold = budget.open('ann', NONE);
  const work = gunzipCounted(gzipSync(Buffer.alloc(3 * MIB)), 8 * MIB, hold);
  await expect(work).rejects.toMatchObject({ reason: 'BODY_MEMORY_EXHAUSTED' });
  expect(budget.heldBytes).toBe(0);
});

test('a length that says too little, of the last of several members, is believed only at first', async () => {
  const budget = new BodyBudget({ bytesMax: 32 * MIB });
  const hold = budget.open('ann', NONE);
  const two = Buffer.concat([gzipSync(Buffer.alloc(MIB, 1)), gzipSync('end')]);
  expect(await gunzipCounted(two, 8 * MIB, hold)).toHaveLength(MIB + 3);
  expect(budget.heldBytes).toBeGreaterThanOrEqual(MIB);
  const tight = new BodyBudget({ bytesMax: 4 * MIB }).open('ann', NONE);
  const refused = gunzipCounted(two, 8 * MIB, tight);
  await expect(refused).rejects.toMatchObject({ reason: 'BODY_MEMORY_EXHAUSTED' });
});

test('the limit and broken bodies are told as before', async () => {
  const hold = new BodyBudget().open('ann', NONE);
  const bomb = gzipSync(Buffer.alloc(2 * MIB));
  await expect(gunzipCounted(bomb, MIB, hold)).rejects.toMatchObject({ reason: 'BODY_TOO_LARGE' });
  const broken = gunzipCounted(Buffer.from('no gzip'), MIB, hold);
  await expect(broken).rejects.toMatchObject({ reason: 'BODY_MALFORMED' });
});
