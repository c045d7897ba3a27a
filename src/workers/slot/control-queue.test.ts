import { expect, test } from 'vitest';
import { ControlQueue } from './control-queue.ts';

const shard = { projectId: 'p', tenantId: 't' };
const change = (revision: number, changes = '[]') => ({
  ...shard,
  epoch: 1,
  revision,
  forkId: '1',
  settingsVersion: 1,
  changes,
});

test('hints of one shard are coalesced into the highest', () => {
  const queue = new ControlQueue();
  queue.hint(shard, 3);
  queue.hint(shard, 9);
  queue.hint(shard, 5);
  expect(queue.drain()).toEqual([{ kind: 'hint', shard, revision: 9 }]);
  expect(queue.isEmpty).toBe(true);
});

test('beyond its bounds changes become "look for changes"', () => {
  const queue = new ControlQueue();
  for (let revision = 1; revision <= 5_000; revision++) queue.committed(change(revision));
  const taken = queue.drain();
  expect(taken.length).toBe(4_097);
  expect(taken.at(-1)).toEqual({ kind: 'hint', shard: null, revision: 0 });
  queue.committed(change(1, 'x'.repeat(17 * 1024 * 1024)));
  expect(queue.drain()).toEqual([{ kind: 'hint', shard: null, revision: 0 }]);
});

test('too many hinted shards become one hint for all', () => {
  const queue = new ControlQueue();
  for (let i = 0; i < 5_000; i++) queue.hint({ projectId: 'p', tenantId: `t${i}` }, 1);
  const taken = queue.drain();
  expect(taken.length).toBe(4_097);
  expect(taken.at(-1)).toEqual({ kind: 'hint', shard: null, revision: 0 });
});
