import { expect, test } from 'vitest';
import { MemoryStore } from '../../src/notify/store/memory-store.ts';
import { ANN, describeStore, newNotification } from './store-contract.ts';

describeStore('memory', () => Promise.resolve(new MemoryStore()));

test('the memory store refuses what exceeds its bound, and keeps what it has', async () => {
  const store = new MemoryStore(2);
  await store.put([newNotification(ANN)]);
  const refused = store.put([newNotification(ANN), newNotification(ANN)]);
  await expect(refused).rejects.toMatchObject({ reason: 'QUEUE_FULL' });
  expect((await store.bounds(ANN)).head).toBe(1);
});

test('the memory store is bounded by bytes, too, and has room again after a purge', async () => {
  const store = new MemoryStore(100, 50_000);
  const large = newNotification(ANN, { body: 'x'.repeat(16_000), createdAtMs: 1 });
  await store.put([large]);
  const second = newNotification(ANN, { body: 'x'.repeat(16_000) });
  await expect(store.put([second])).rejects.toMatchObject({ reason: 'QUEUE_FULL' });
  expect(await store.purge(2, 10)).toBe(1);
  expect(await store.put([second])).toMatchObject([{ notification: { sequence: 2 } }]);
});
