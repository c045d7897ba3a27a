/* When a shard's actor reads what it is asked: before anything is loaded for it, in turns with other work, and for nobody who has gone. */
import { expect, test } from 'vitest';
import { AppError } from '../../src/shared/app-error.ts';
import { start } from './actor-fixture.ts';

const WRONG = new AppError('FIELD_INVALID', 'object_id: is wrong');

test.each([
  ['at once', {}],
  ['in slices', { isReadFirst: true, readSlices: 3 }],
  ['in slices, though it seemed short', { readSlices: 3 }],
])('what is wrong loads nothing: read %s', (_how, want) => {
  const { actor, ask, runLong, source } = start();
  const probe = ask({ ...want, readThrows: WRONG });
  while (runLong());
  expect(probe.reason).toBe('FIELD_INVALID');
  expect([actor.state, actor.depth, source.loads]).toEqual(['unloaded', 0, 0]);
});

test('what is right is loaded for once it has been read', async () => {
  const { actor, ask, runLong, runShort, ready, commit } = start();
  commit('a');
  const probe = ask({ isReadFirst: true, readSlices: 3 });
  expect([actor.state, actor.depth]).toEqual(['unloaded', 1]);
  expect([runLong(), runLong(), actor.state]).toEqual([true, true, 'unloaded']);
  expect(runLong()).toBe(false);
  expect([probe.reads, actor.state]).toEqual([3, 'loading']);
  await ready();
  runShort();
  expect(probe.seen).toEqual([1]);
});

test('over a loaded shard it is read before it begins, so that changes go on meanwhile', async () => {
  const { actor, ask, load, runLong, runShort, commit } = start();
  await load(1);
  const probe = ask({ isReadFirst: true, readSlices: 2 });
  runLong();
  expect(actor.isInUse).toBe(false);
  actor.changes.committed(commit('b'));
  expect(actor.watermark).toBe(2);
  runLong();
  runShort();
  expect(probe.seen).toEqual([2]);
});

test('reading and evaluating take turns, and so do those that are read', async () => {
  const { ask, load, runLong } = start();
  await load(1);
  const list = ask({ isLong: true, slices: 3 });
  const first = ask({ isReadFirst: true, readSlices: 2 });
  const second = ask({ isReadFirst: true, readSlices: 2 });
  const seen: string[] = [];
  for (let slice = 0; slice < 6; slice++) {
    runLong();
    seen.push(`${list.seen.length} ${first.reads} ${second.reads}`);
  }
  expect(seen).toEqual(['0 1 0', '1 1 0', '1 1 1', '2 1 1', '2 2 1', '3 2 1']);
});

test('nothing is read for a caller that has gone, nor for one whose time is over', () => {
  const { actor, ask, runLong, time } = start();
  const gone = ask({ isReadFirst: true });
  gone.isCancelled = true;
  time.nowMs = 0;
  const late = ask({ isReadFirst: true, deadlineMs: performance.timeOrigin });
  while (runLong());
  expect([gone.reads, gone.isDropped, gone.reason]).toEqual([0, true, undefined]);
  expect([late.reads, late.reason]).toEqual([0, 'DEADLINE_EXCEEDED']);
  expect([actor.depth, actor.state]).toEqual([0, 'unloaded']);
});

test('a caller that goes while its job waits or runs is dropped', async () => {
  const { actor, ask, load, runLong, runShort } = start();
  await load(1);
  const waiting = ask({ minRevision: 9 });
  const begun = ask({ isLong: true, slices: 2 });
  const short = ask();
  runLong();
  for (const probe of [waiting, begun, short]) probe.isCancelled = true;
  runShort();
  runLong();
  actor.sweep(0);
  expect([waiting, begun, short].map(({ isDropped }) => isDropped)).toEqual([true, true, true]);
  expect(actor.depth).toBe(0);
});
