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
