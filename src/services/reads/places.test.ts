import { expect, test } from 'vitest';
import { HeadPlaces } from './places.ts';

test('who has gone leaves the queue at once, and the next in turn gets the place', async () => {
  const places = new HeadPlaces('calls', 1, 2);
  await places.take();
  const gone = new AbortController();
  const first = places.take(gone.signal);
  const second = places.take(new AbortController().signal);
  await expect(places.take()).rejects.toMatchObject({ reason: 'QUEUE_FULL' });
  gone.abort();
  await expect(first).rejects.toMatchObject({ reason: 'CANCELLED' });
  expect(places.waiting).toBe(1);
  const third = places.take();
  places.release();
  await second;
  expect(places.waiting).toBe(1);
  places.release();
  await third;
  places.release();
  await places.take();
});

test('who has gone already takes no place', async () => {
  const places = new HeadPlaces('calls', 1);
  await expect(places.take(AbortSignal.abort())).rejects.toMatchObject({ reason: 'CANCELLED' });
  await places.take();
});

test('who goes after its turn came keeps the place until it gives it back', async () => {
  const places = new HeadPlaces('calls', 1);
  await places.take();
  const later = new AbortController();
  const turn = places.take(later.signal);
  places.release();
  await turn;
  later.abort();
  const next = places.take();
  expect(places.waiting).toBe(1);
  places.release();
  await next;
});
