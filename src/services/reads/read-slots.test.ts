import { expect, test } from 'vitest';
import { ReadSlots } from './read-slots.ts';

test('who has gone leaves the queue at once, and the next in turn gets the place', async () => {
  const places = new ReadSlots('calls', 1, 2);
  await places.acquire();
  const gone = new AbortController();
  const first = places.acquire(gone.signal);
  const second = places.acquire(new AbortController().signal);
  await expect(places.acquire()).rejects.toMatchObject({ reason: 'QUEUE_FULL' });
  gone.abort();
  await expect(first).rejects.toMatchObject({ reason: 'CANCELLED' });
  expect(places.waiting).toBe(1);
  const third = places.acquire();
  places.release();
  await second;
  expect(places.waiting).toBe(1);
  places.release();
  await third;
  places.release();
  await places.acquire();
});

test('who has gone already takes no place', async () => {
  const places = new ReadSlots('calls', 1);
  await expect(places.acquire(AbortSignal.abort())).rejects.toMatchObject({ reason: 'CANCELLED' });
  await places.acquire();
});

test('who goes after its turn came keeps the place until it gives it back', async () => {
  const places = new ReadSlots('calls', 1);
  await places.acquire();
  const later = new AbortController();
  const turn = places.acquire(later.signal);
  places.release();
  await turn;
  later.abort();
  const next = places.acquire();
  expect(places.waiting).toBe(1);
  places.release();
  await next;
});
