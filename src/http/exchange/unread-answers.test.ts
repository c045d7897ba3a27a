import { afterEach, expect, test, vi } from 'vitest';
import { type UnreadAnswer, UnreadAnswers } from './unread-answers.ts';

afterEach(() => vi.useRealTimers());

function answers(bytesMax: number, stallMs = 60_000) {
  const dropped: string[] = [];
  const reported: [bytes: number, isStalled: boolean][] = [];
  const unread = new UnreadAnswers({
    bytesMax,
    stallMs,
    onDropped: (bytes, isStalled) => reported.push([bytes, isStalled]),
  });
  const answer = (name: string, unreadBytes: number, more: Partial<UnreadAnswer> = {}) =>
    Object.assign(more, { progress: 0, ...more, unreadBytes, drop: () => void dropped.push(name) });
  return { unread, answer, dropped, reported };
}

test('beyond the limit the oldest answers are dropped, and what is read makes room', () => {
  const { unread, answer, dropped } = answers(100);
  const [a, b, c, d] = [answer('a', 40), answer('b', 40), answer('c', 40), answer('d', 20)];
  unread.add(a);
  unread.add(b);
  unread.remove(a);
  unread.add(c);
  expect([unread.bytes, dropped]).toEqual([80, []]);
  unread.add(d);
  expect([unread.bytes, dropped]).toEqual([100, []]);
  unread.add(a);
  expect([unread.bytes, dropped]).toEqual([100, ['b']]);
  unread.remove(b);
  unread.remove(b);
  expect(unread.bytes).toBe(100);
  // The newest answer is kept, even if it is larger than the limit.
  unread.add(answer('e', 1_000));
  expect([unread.bytes, dropped]).toEqual([1_000, ['b', 'c', 'd', 'a']]);
});

test('who holds most loses first, whoever came before', () => {
  const { unread, answer, dropped, reported } = answers(100);
  const [modest, greedy] = [{}, {}];
  unread.add(answer('modest', 20, { owner: modest }));
  for (const name of ['g1', 'g2', 'g3', 'g4']) unread.add(answer(name, 30, { owner: greedy }));
  expect(dropped).toEqual(['g1', 'g2']);
  unread.add(answer('modest too', 20, { owner: modest }));
  expect(dropped).toEqual(['g1', 'g2']);
  expect(reported).toEqual([
    [30, false],
    [30, false],
  ]);
});

test('one of which nothing is taken is dropped after its time, one that is read slowly is not', () => {
  vi.useFakeTimers();
  const { unread, answer, dropped, reported } = answers(100, 1_000);
  const slow = { progress: 0 };
  unread.add(answer('still', 10, { progress: 7 }));
  unread.add(answer('slow', 10, slow));
  for (let i = 0; i < 10; i++) {
    vi.advanceTimersByTime(900);
    slow.progress += 1;
  }
  expect(dropped).toEqual(['still']);
  expect(reported).toEqual([[10, true]]);
  expect(unread.bytes).toBe(10);
});
