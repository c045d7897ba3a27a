import { expect, test } from 'vitest';
import type { ReadMark, ReadNews } from '../model/notification-store.ts';
import { ReadFollower, type ReadingStream } from './read-follower.ts';

function streamAt(reads: number | undefined): ReadingStream & { readonly heard: number[] } {
  const heard: number[] = [];
  const send = (frame: string): unknown =>
    heard.push(Number(/"reads":(\d+)/.exec(frame)?.[1] ?? Number.NaN));
  return { isOpen: true, isCatchingUp: false, position: 9, reads, send, heard };
}

function newsAfter(after: number): ReadNews {
  const marks = [1, 2, 3].map((number): ReadMark => ({ number, which: { upToSequence: number } }));
  const later = marks.filter(({ number }) => number > after);
  return { head: 9, unreadCount: 0, reads: 3, marks: later, upTo: 3 };
}

test('a stream that is greeted during a read with less than it asks for misses no mark', async () => {
  const [first, late] = [streamAt(2), streamAt(undefined)];
  const asked: number[] = [];
  const follower = new ReadFollower({
    streams: new Set([first, late]),
    read: async (after) => {
      asked.push(after);
      // What it was greeted with was read before the second mark.
      late.reads ??= 1;
      return await Promise.resolve(newsAfter(after));
    },
    onHead: () => undefined,
    onSent: () => undefined,
  });
  follower.heardOf(3);
  await expect.poll(() => late.reads).toBe(3);
  expect({ asked, first: first.heard, late: late.heard }).toEqual({
    asked: [2, 1],
    first: [3],
    late: [2, 3],
  });
});
