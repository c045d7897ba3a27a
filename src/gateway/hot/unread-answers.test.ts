import { expect, test } from 'vitest';
import { UnreadAnswers } from './unread-answers.ts';

test('beyond the limit the oldest answers are dropped, and what is read makes room', () => {
  const dropped: string[] = [];
  const answer = (name: string, unreadBytes: number) => ({
    unreadBytes,
    drop: () => void dropped.push(name),
  });
  const unread = new UnreadAnswers(100);
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
  // One that is larger than all may hold is the last one standing.
  unread.add(answer('e', 1_000));
  expect([unread.bytes, dropped]).toEqual([1_000, ['b', 'c', 'd', 'a']]);
});
