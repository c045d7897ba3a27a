import { expect, test } from 'vitest';
import type { ShardActor } from '../shard/shard-actor.ts';
import { ShardTurns } from './shard-turns.ts';

/** A shard as turns see it: whether it is in a line, and its work. */
type Worked = Pick<ShardActor, 'isScheduled' | 'isLongScheduled' | 'runShort' | 'runLong'>;

const SLICE_MS = 8;

/** Turns on a clock that only work moves, and a note of all that happened. */
function start() {
  let nowMs = 1_000;
  const notes: string[] = [];
  const marks: number[] = [];
  const names = new Map<unknown, string>();
  const turns = new ShardTurns({
    clock: { nowMs: () => 0, monotonicMs: () => nowMs },
    sliceMs: SLICE_MS,
    mark: (id) => void marks.push(id),
    onWork: (actor) => void notes.push(`work ${names.get(actor)}`),
    onRan: (actor) => void notes.push(`ran ${names.get(actor)}`),
  });
  /** A shard whose pieces of work take so many milliseconds each; it works until its share ends. */
  const shardOf = (name: string, pieces: number[], onPiece: () => void = () => undefined) => {
    const shares: [number, number][] = [];
    const shard = {
      isScheduled: false,
      isLongScheduled: false,
      runShort(shareEndMs, sliceEndMs, mark) {
        expect(shard.isScheduled).toBe(false);
        shares.push([shareEndMs - nowMs, sliceEndMs - nowMs]);
        mark(7);
        do {
          nowMs += pieces.shift() ?? 0;
          onPiece();
        } while (pieces.length > 0 && nowMs < shareEndMs);
        return pieces.length > 0;
      },
      runLong(sliceEndMs, mark) {
        expect(shard.isLongScheduled).toBe(false);
        shares.push([sliceEndMs - nowMs, 0]);
        mark(8);
        nowMs += pieces.shift() ?? 0;
        return pieces.length > 0;
      },
    } satisfies Worked;
    names.set(shard, name);
    return Object.assign(shard as Worked & ShardActor, { shares });
  };
  const take = (): string[] => notes.splice(0);
  return { turns, shardOf, take, marks, pass: (ms: number) => (nowMs += ms), now: () => nowMs };
}

test('a shard stands in a line once, and is announced once', () => {
  const { turns, shardOf, take } = start();
  const a = shardOf('a', [1]);
  expect(turns.isIdle).toBe(true);
  turns.addShort(a);
  turns.addShort(a);
  expect([take(), a.isScheduled, turns.isIdle]).toEqual([['work a'], true, false]);
  turns.runShort();
  expect([take(), a.isScheduled, turns.isIdle]).toEqual([['ran a'], false, true]);
  turns.addLong(a);
  turns.addLong(a);
  expect([take(), a.isLongScheduled, turns.isIdle]).toEqual([['work a'], true, false]);
  turns.runLong();
  expect([take(), a.isLongScheduled, turns.isIdle]).toEqual([['ran a'], false, true]);
  turns.runLong();
  turns.runShort();
  expect(take()).toEqual([]);
});

test('shards share a slice, and one alone has all of it', () => {
  const { turns, shardOf, take, marks } = start();
  const [a, b] = [shardOf('a', [1, 1, 1, 1, 1, 1]), shardOf('b', [1, 1])];
  turns.addShort(a);
  turns.addShort(b);
  take();
  turns.runShort();
  // Four of eight milliseconds each, then what is left; the last one begun has half a slice more.
  expect(a.shares).toEqual([
    [4, 12],
    [2, 6],
  ]);
  expect(b.shares).toEqual([[4, 8]]);
  expect(take()).toEqual(['work a', 'ran a', 'ran b', 'ran a']);
  expect(marks).toEqual([7, 7, 7]);
  const alone = shardOf('c', [1]);
  turns.addShort(alone);
  turns.runShort();
  expect(alone.shares).toEqual([[8, 12]]);
});

test('a turn ends with its slice: who had no share is first in the next one', () => {
  const { turns, shardOf, take, now } = start();
  const [a, b, c] = [shardOf('a', [5, 5]), shardOf('b', [9]), shardOf('c', [1])];
  for (const shard of [a, b, c]) turns.addShort(shard);
  take();
  const began = now();
  turns.runShort();
  expect(now() - began).toBe(14);
  expect(take().filter((note) => note.startsWith('ran'))).toEqual(['ran a', 'ran b']);
  expect([c.isScheduled, a.isScheduled, turns.isIdle]).toEqual([true, true, false]);
  turns.runShort();
  expect(take()).toEqual(['ran c', 'ran a']);
  expect(turns.isIdle).toBe(true);
});

test('no work is begun at the end of a slice', () => {
  const { turns, shardOf, take } = start();
  const [a, b] = [shardOf('a', [8]), shardOf('b', [1])];
  turns.addShort(a);
  turns.addShort(b);
  take();
  turns.runShort();
  expect(take()).toEqual(['ran a']);
  expect(b.isScheduled).toBe(true);
});

test('what becomes runnable meanwhile is run in the same turn, behind the others', () => {
  const { turns, shardOf, take } = start();
  const late = shardOf('late', [1]);
  const a = shardOf('a', [1], () => turns.addShort(late));
  const b = shardOf('b', [1]);
  turns.addShort(a);
  turns.addShort(b);
  turns.runShort();
  expect(take()).toEqual(['work a', 'work b', 'work late', 'ran a', 'ran b', 'ran late']);
});

test('long work has a slice for one shard, and shards take turns', () => {
  const { turns, shardOf, take, marks } = start();
  const [a, b] = [shardOf('a', [8, 8]), shardOf('b', [8, 8])];
  turns.addLong(a);
  turns.addLong(b);
  take();
  for (let i = 0; i < 4; i++) turns.runLong();
  expect(take().filter((note) => note.startsWith('ran'))).toEqual([
    'ran a',
    'ran b',
    'ran a',
    'ran b',
  ]);
  expect([...a.shares, ...b.shares].map(([share]) => share)).toEqual([8, 8, 8, 8]);
  expect([marks, turns.isIdle]).toEqual([[8, 8, 8, 8], true]);
});

test('long work is overdue four slices after it came or had its last one', () => {
  const { turns, shardOf, pass } = start();
  pass(1_000);
  expect(turns.isLongOverdue).toBe(false);
  const a = shardOf('a', [3, 3]);
  turns.addLong(a);
  expect(turns.isLongOverdue).toBe(false);
  pass(4 * SLICE_MS - 1);
  expect(turns.isLongOverdue).toBe(false);
  // Another one that comes does not put it off.
  turns.addLong(shardOf('b', [3]));
  pass(1);
  expect(turns.isLongOverdue).toBe(true);
  turns.runLong();
  expect(turns.isLongOverdue).toBe(false);
  pass(4 * SLICE_MS - 1);
  expect(turns.isLongOverdue).toBe(false);
  pass(1);
  expect(turns.isLongOverdue).toBe(true);
});
