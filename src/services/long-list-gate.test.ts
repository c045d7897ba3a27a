import { expect, test } from 'vitest';
import { LongListGate, WAITING_LISTS_MAX } from './long-list-gate.ts';

test('so many at once, the others in order, and no more than may wait', async () => {
  const gate = new LongListGate(2);
  const leave = [await gate.enter(), await gate.enter()];
  const order: number[] = [];
  const waiting = Array.from({ length: WAITING_LISTS_MAX }, async (_, index) => {
    const done = await gate.enter();
    order.push(index);
    done();
    // Leaving twice frees no second place.
    done();
  });
  await expect(gate.enter()).rejects.toMatchObject({ reason: 'QUEUE_FULL' });
  expect(order).toEqual([]);
  leave[0]?.();
  await Promise.all(waiting);
  expect(order).toEqual(Array.from({ length: WAITING_LISTS_MAX }, (_, index) => index));
  leave[1]?.();
  const again = [await gate.enter(), await gate.enter()];
  let isThird = false;
  const third = gate.enter().then((done) => {
    isThird = true;
    done();
  });
  await Promise.resolve();
  expect(isThird).toBe(false);
  for (const done of again) done();
  await third;
});
