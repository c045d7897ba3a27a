import { expect, test } from 'vitest';
import { AppError } from '../../src/shared/app-error.ts';
import {
  askBatch,
  checkViewer,
  MODEL_VERSION,
  reasonOf,
  scopeOf,
  startFixture,
  viewer,
} from './pool-fixture.ts';

const SHARD = { projectId: 'p', tenantId: 't' };
const soon = (): number => performance.timeOrigin + performance.now() + 150;

test('applies the next seq whole, ignores old ones', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source, transports } = fixture;
  const first = source.commit(SHARD, [viewer('insert', 'a', 'u'), viewer('insert', 'b', 'u')]);
  expect(await checkViewer(pool, scopeOf(SHARD, 1), 'b', 'u')).toBe(true);
  const second = source.commit(SHARD, [viewer('delete', 'a', 'u'), viewer('delete', 'b', 'u')]);
  const pagesBefore = source.pages;
  pool.applyCommitted([second, first, second]);
  expect(await checkViewer(pool, scopeOf(SHARD, 2), 'a', 'u')).toBe(false);
  expect(await checkViewer(pool, scopeOf(SHARD, 2), 'b', 'u')).toBe(false);
  expect(source.pages).toBe(pagesBefore);
  expect(transports[0]?.host?.actor(SHARD)?.watermark).toBe(2);
});

test('a gap is caught up from the store', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source } = fixture;
  source.commit(SHARD, [viewer('insert', 'a', 'u')]);
  expect(await checkViewer(pool, scopeOf(SHARD, 1), 'a', 'u')).toBe(true);
  for (let i = 0; i < 7; i++) source.commit(SHARD, [viewer('insert', `x${i}`, 'u')]);
  const last = source.commit(SHARD, [viewer('delete', 'a', 'u')]);
  pool.applyCommitted([last]);
  expect(await checkViewer(pool, scopeOf(SHARD, 9), 'a', 'u')).toBe(false);
  expect(await checkViewer(pool, scopeOf(SHARD, 9), 'x3', 'u')).toBe(true);
  expect(source.loads).toBe(1);
});

test('catches up without any change message or hint', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source } = fixture;
  expect(await checkViewer(pool, scopeOf(SHARD, 0), 'a', 'u')).toBe(false);
  source.commit(SHARD, [viewer('insert', 'a', 'u')]);
  expect(await checkViewer(pool, scopeOf(SHARD, 1), 'a', 'u')).toBe(true);
});

test('the poll is the backstop for lost hints', async () => {
  await using fixture = await startFixture({ workerCount: 1, pollMs: 20 });
  const { pool, source, transports } = fixture;
  await checkViewer(pool, scopeOf(SHARD, 0), 'a', 'u');
  source.commit(SHARD, [viewer('insert', 'a', 'u')]);
  await expect.poll(() => transports[0]?.host?.actor(SHARD)?.watermark).toBe(1);
});

test.each([
  ['another stamp at the watermark', { forkId: '424242' }],
  ['a head below the watermark', { revision: 1, forkId: '7920' }],
  ['another epoch', { epoch: 2 }],
])('reloads when the store diverged: %s', async (_name, change) => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source, transports } = fixture;
  source.commit(SHARD, [viewer('insert', 'a', 'u')]);
  source.commit(SHARD, [viewer('insert', 'b', 'u')]);
  await checkViewer(pool, scopeOf(SHARD, 2), 'a', 'u');
  source.diverge(SHARD, change);
  pool.hint(SHARD, 0);
  await expect.poll(() => source.loads).toBe(2);
  await expect.poll(() => transports[0]?.host?.actor(SHARD)?.state).toBe('ready');
  expect(transports[0]?.host?.actor(SHARD)?.position).toMatchObject(change);
});

test('reloads when what it needs was pruned', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source } = fixture;
  source.commit(SHARD, [viewer('insert', 'a', 'u')]);
  await checkViewer(pool, scopeOf(SHARD, 1), 'a', 'u');
  for (let i = 0; i < 5; i++) source.commit(SHARD, [viewer('insert', `x${i}`, 'u')]);
  source.prune(SHARD, 5);
  expect(await checkViewer(pool, scopeOf(SHARD, 6), 'x4', 'u')).toBe(true);
  expect(source.loads).toBe(2);
});

test('requests share one load', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source } = fixture;
  source.commit(SHARD, [viewer('insert', 'a', 'u')]);
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => checkViewer(pool, scopeOf(SHARD, 1), 'a', 'u')),
  );
  expect(answers.every(Boolean)).toBe(true);
  expect(source.loads).toBe(1);
});

test('a failed load is not cached', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source } = fixture;
  source.commit(SHARD, [viewer('insert', 'a', 'u')]);
  source.fault = () => Promise.reject(new Error('connection refused'));
  const failed = await checkViewer(pool, scopeOf(SHARD, 1), 'a', 'u').catch(reasonOf);
  expect(failed).toBe('SHARD_UNAVAILABLE');
  source.fault = () => Promise.resolve();
  expect(await checkViewer(pool, scopeOf(SHARD, 1), 'a', 'u')).toBe(true);
});

test('decides without the store', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source } = fixture;
  source.commit(SHARD, [viewer('insert', 'a', 'u')]);
  await checkViewer(pool, scopeOf(SHARD, 1), 'a', 'u');
  source.fault = () => Promise.reject(new Error('connection refused'));
  expect(await checkViewer(pool, scopeOf(SHARD, 1), 'a', 'u')).toBe(true);
  const newer = await checkViewer(pool, scopeOf(SHARD, 2), 'a', 'u').catch(reasonOf);
  expect(newer).toBe('SHARD_UNAVAILABLE');
  expect(await checkViewer(pool, scopeOf(SHARD, 1), 'a', 'u')).toBe(true);
});

test('a seq that never comes is unavailable at the deadline', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool } = fixture;
  const scope = scopeOf(SHARD, 5, { deadlineMs: soon() });
  expect(await checkViewer(pool, scope, 'a', 'u').catch(reasonOf)).toBe('SHARD_UNAVAILABLE');
});

test('an outdated epoch is unavailable, not an answer', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source } = fixture;
  source.commit(SHARD, [viewer('insert', 'a', 'u')]);
  source.diverge(SHARD, { epoch: 2 });
  const ask = (epoch: number): Promise<unknown> =>
    checkViewer(pool, scopeOf(SHARD, 1, { epoch }), 'a', 'u').catch(reasonOf);
  expect(await ask(1)).toBe('SHARD_UNAVAILABLE');
  expect(await ask(2)).toBe(true);
  expect(await ask(1)).toBe('SHARD_UNAVAILABLE');
});

test('a suspended evaluation keeps its revision', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source, transports } = fixture;
  const ids = Array.from({ length: 4_000 }, (_, i) => `d${i}`);
  source.rowsPerSlice = 10_000;
  source.commit(
    SHARD,
    ids.map((id) => viewer('insert', id, 'u')),
  );
  await checkViewer(pool, scopeOf(SHARD, 1), 'd0', 'u');
  const actor = transports[0]?.host?.actor(SHARD);
  const items = ids.map((objectId) => ({
    namespace: 'doc',
    objectId,
    relation: 'viewer',
    userId: 'u',
  }));
  const batch = askBatch(pool, scopeOf(SHARD, 1), [...items, ...items]);
  // Removes everything, in the middle of the batch or before it: it must see one of the two whole.
  await new Promise((resolve) => setImmediate(resolve));
  pool.applyCommitted([
    source.commit(
      SHARD,
      ids.map((id) => viewer('delete', id, 'u')),
    ),
  ]);
  const allowed = (await batch).filter((result) => result.allowed).length;
  expect([0, 8_000]).toContain(allowed);
  expect(await checkViewer(pool, scopeOf(SHARD, 2), 'd1', 'u')).toBe(false);
  expect(actor?.watermark).toBe(2);
});

test('a shard that does not fit is a typed error', async () => {
  await using fixture = await startFixture({ workerCount: 1, indexBytesMax: 400_000 });
  const { pool, source } = fixture;
  source.rowsPerSlice = 10_000;
  const many = Array.from({ length: 20_000 }, (_, i) => viewer('insert', `doc-${i}`, `user-${i}`));
  source.commit(SHARD, many);
  expect(await checkViewer(pool, scopeOf(SHARD, 1), 'a', 'u').catch(reasonOf)).toBe(
    'SHARD_TOO_LARGE',
  );
});

test('a model that the worker lacks is fetched; one that nobody knows is unavailable', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, transports } = fixture;
  transports[0]?.crash();
  await expect.poll(() => pool.isReady).toBe(true);
  expect(await checkViewer(pool, scopeOf(SHARD, 0), 'a', 'u')).toBe(false);
  const unknown = scopeOf(SHARD, 0, { modelVersion: MODEL_VERSION + 1 });
  expect(await checkViewer(pool, unknown, 'a', 'u').catch(reasonOf)).toBe('SHARD_UNAVAILABLE');
  await expect(pool.setModel('p', 3, '{"namespaces":1}')).rejects.toBeInstanceOf(AppError);
});
