import { expect, test } from 'vitest';
import type { ShardKey } from '../../src/model/relation-tuple.ts';
import { slotOfShard } from '../../src/protocol/shard-routing.ts';
import type { AppError } from '../../src/shared/app-error.ts';
import { WORKER_DEFAULTS } from '../../src/workers/host/worker-settings.ts';
import { createWorkerPool } from '../../src/workers/pool/worker-pool.ts';
import { InProcessTransport } from './in-process-transport.ts';
import { MemoryShardSource } from './memory-shard-source.ts';
import {
  askBatch,
  askList,
  askRaw,
  checkViewer,
  reasonOf,
  scopeOf,
  startFixture,
  viewer,
} from './pool-fixture.ts';

/** The n-th shard that slot `slot` of two owns. */
function shardOfSlot(slot: number, n = 0): ShardKey {
  let found = 0;
  for (let i = 0; ; i++) {
    const shard = { projectId: 'p', tenantId: `t${i}` };
    if (slotOfShard(shard, 2) === slot && found++ === n) return shard;
  }
}

test('while one shard loads, others on the same and on another worker are answered', async () => {
  await using fixture = await startFixture();
  const { pool, source } = fixture;
  const [slow, same, other] = [shardOfSlot(0), shardOfSlot(0, 1), shardOfSlot(1)];
  const gate = Promise.withResolvers<void>();
  source.fault = (what, shard) =>
    what === 'load' && shard?.tenantId === slow.tenantId ? gate.promise : Promise.resolve();
  let isSlowDone = false;
  const waiting = checkViewer(pool, scopeOf(slow, 0), 'a', 'u').then(() => {
    isSlowDone = true;
  });
  for (let i = 0; i < 20; i++) {
    expect(await checkViewer(pool, scopeOf(same, 0), 'a', 'u')).toBe(false);
    expect(await checkViewer(pool, scopeOf(other, 0), 'a', 'u')).toBe(false);
  }
  expect(isSlowDone).toBe(false);
  gate.resolve();
  await waiting;
});

test('long lists stop neither the checks of their own shard nor those of others', async () => {
  await using fixture = await startFixture({ workerCount: 1, sliceMs: 1 });
  const { pool, source } = fixture;
  const [long, other] = [shardOfSlot(0), shardOfSlot(0, 1)];
  source.rowsPerSlice = 1e9;
  const ids = Array.from({ length: 20_000 }, (_, i) => `d${i}`);
  source.commit(
    long,
    ids.map((id) => viewer('insert', id, 'u')),
  );
  await checkViewer(pool, scopeOf(long, 1), 'd0', 'u');
  await checkViewer(pool, scopeOf(other, 0), 'd0', 'u');
  const scope = scopeOf(long, 1, { readBudget: 10_000_000 });
  const LISTS = 6;
  let listsDone = 0;
  const lists = Array.from({ length: LISTS }, async () => {
    const query = { namespace: 'doc', relation: 'viewer', userId: 'u' };
    expect((await askList(pool, scope, query)).length).toBe(20_000);
    listsDone += 1;
  });
  // With a mailbox closed until the lists are done, these would come after the last of them.
  expect(await checkViewer(pool, scopeOf(long, 1), 'd7', 'u')).toBe(true);
  expect(await checkViewer(pool, scopeOf(other, 0), 'd7', 'u')).toBe(false);
  expect(listsDone).toBeLessThan(LISTS);
  await Promise.all(lists);
});

test('a change is not starved by long evaluations that follow each other', async () => {
  await using fixture = await startFixture({ workerCount: 1, sliceMs: 1 });
  const { pool, source } = fixture;
  const shard = shardOfSlot(0);
  source.rowsPerSlice = 1e9;
  source.commit(
    shard,
    Array.from({ length: 20_000 }, (_, i) => viewer('insert', `d${i}`, 'u')),
  );
  await checkViewer(pool, scopeOf(shard, 1), 'd0', 'u');
  const scope = scopeOf(shard, 1, { readBudget: 10_000_000 });
  const query = { namespace: 'doc', relation: 'viewer', userId: 'u' };
  let isOver = false;
  const listing = Array.from({ length: 3 }, async () => {
    while (!isOver) await askList(pool, scope, query);
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  pool.applyCommitted([source.commit(shard, [viewer('delete', 'd5', 'u')])]);
  expect(await checkViewer(pool, scopeOf(shard, 2), 'd5', 'u')).toBe(false);
  isOver = true;
  await Promise.all(listing);
});

test('a crash fails what the worker held at once, moves no shard, and reloads lazily', async () => {
  await using fixture = await startFixture();
  const { pool, source, transports } = fixture;
  const [lost, kept] = [shardOfSlot(0), shardOfSlot(1)];
  source.commit(lost, [viewer('insert', 'a', 'u')]);
  source.commit(kept, [viewer('insert', 'a', 'u')]);
  await checkViewer(pool, scopeOf(kept, 1), 'a', 'u');
  const survivor = transports[1];
  source.fault = (_what, shard) =>
    shard?.tenantId === lost.tenantId ? new Promise(() => undefined) : Promise.resolve();
  const held = checkViewer(pool, scopeOf(lost, 1), 'a', 'u').catch(reasonOf);
  await expect.poll(() => transports[0]?.host?.actor(lost)?.state).toBe('loading');
  transports[0]?.crash();
  expect(await held).toBe('WORKER_LOST');
  expect(await checkViewer(pool, scopeOf(kept, 1), 'a', 'u')).toBe(true);
  source.fault = () => Promise.resolve();
  // Asked while the worker restarts: it waits in its slot.
  expect(await checkViewer(pool, scopeOf(lost, 1), 'a', 'u')).toBe(true);
  expect(transports[0]?.host?.actor(lost)?.state).toBe('ready');
  expect(transports[1]).toBe(survivor);
  expect(survivor?.host?.actor(lost)).toBeUndefined();
});

test('a request that was under evaluation when its worker died is refused afterwards', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source, transports } = fixture;
  const shard = shardOfSlot(0);
  source.fault = () => new Promise(() => undefined);
  const body = (user: string): string =>
    `{"namespace":"doc","object_id":"a","relation":"viewer","subject_user_id":"${user}"}`;
  const killer = askRaw(pool, scopeOf(shard, 0), 'check', body('killer'));
  const bystander = askRaw(pool, scopeOf(shard, 0), 'check', body('victim'));
  await expect.poll(() => transports[0]?.host?.actor(shard)?.state).toBe('loading');
  transports[0]?.crash(1); // the id of the first request
  for (const answer of [await killer, await bystander]) {
    expect(answer.kind === 'error' && answer.error.reason).toBe('WORKER_LOST');
  }
  source.fault = () => Promise.resolve();
  const refused = await askRaw(pool, scopeOf(shard, 0), 'check', body('killer'));
  expect(refused.kind === 'error' && refused.error.reason).toBe('REQUEST_REFUSED');
  expect(await askRaw(pool, scopeOf(shard, 0), 'check', body('victim'))).toEqual({
    kind: 'denied',
  });
});

test('two failed bootstraps in a row are fatal', async () => {
  const fatal: unknown[] = [];
  let bootstraps = 0;
  const pool = createWorkerPool({
    workerCount: 1,
    createTransport: () => {
      const transport = new InProcessTransport({
        settings: { ...WORKER_DEFAULTS, poolMax: 1, indexBytesMax: 1e6 },
        source: new MemoryShardSource(),
      });
      transport.start = () => {
        bootstraps += 1;
        return Promise.reject(new Error('no such module'));
      };
      return transport;
    },
    queueDepthMax: 10,
    shardQueueDepthMax: 10,
    queueBytesMax: 1e6,
    onFatal: (cause) => fatal.push(cause),
    onStats: () => undefined,
    onEvent: () => undefined,
  });
  await expect(pool.start()).rejects.toThrow('no such module');
  expect([bootstraps, fatal.length, pool.isReady]).toEqual([2, 1, false]);
  const asked = await checkViewer(pool, scopeOf(shardOfSlot(0), 0), 'a', 'u').catch(reasonOf);
  expect(asked).toBe('SHARD_UNAVAILABLE');
  await pool.stop();
});

test('while a worker starts, the time that a caller stated is DEADLINE_EXCEEDED, else unavailable', async () => {
  const pool = createWorkerPool({
    workerCount: 1,
    createTransport: () => {
      const transport = new InProcessTransport({
        settings: { ...WORKER_DEFAULTS, poolMax: 1, indexBytesMax: 1e6 },
        source: new MemoryShardSource(),
      });
      transport.start = () => Promise.withResolvers<void>().promise;
      return transport;
    },
    queueDepthMax: 10,
    shardQueueDepthMax: 10,
    queueBytesMax: 1e6,
    onFatal: () => undefined,
    onStats: () => undefined,
    onEvent: () => undefined,
  });
  pool.start().catch(() => undefined);
  const deadlineMs = performance.timeOrigin + performance.now();
  const ask = (isDeadlineStated: boolean): Promise<unknown> => {
    const scope = scopeOf(shardOfSlot(0), 0, { deadlineMs, isDeadlineStated });
    return checkViewer(pool, scope, 'a', 'u').catch(reasonOf);
  };
  expect(await Promise.all([ask(true), ask(false)])).toEqual([
    'DEADLINE_EXCEEDED',
    'SHARD_UNAVAILABLE',
  ]);
  await pool.stop();
});

test('queues are bounded per worker and per shard', async () => {
  await using fixture = await startFixture({
    workerCount: 1,
    queueDepthMax: 8,
    shardQueueDepthMax: 5,
  });
  const { pool, source } = fixture;
  const gate = Promise.withResolvers<void>();
  source.fault = () => gate.promise;
  const ask = (shard: ShardKey): Promise<unknown> =>
    checkViewer(pool, scopeOf(shard, 0), 'a', 'u').catch(reasonOf);
  const first = Array.from({ length: 6 }, () => ask(shardOfSlot(0)));
  const second = Array.from({ length: 4 }, () => ask(shardOfSlot(0, 1)));
  expect(await first[5]).toBe('QUEUE_FULL');
  expect(await second[3]).toBe('QUEUE_FULL');
  const boundBefore = (shard?: ShardKey): unknown =>
    pool.refusalBefore(shard, 100_000, Infinity)?.metadata['bound'];
  expect(boundBefore(shardOfSlot(0))).toBe('tenant_requests');
  // Of one without a queue and of no shard at all, too: the only worker is full.
  expect([boundBefore(shardOfSlot(0, 2)), boundBefore()]).toEqual([
    'worker_requests',
    'worker_requests',
  ]);
  gate.resolve();
  expect(await Promise.all([...first.slice(0, 5), ...second.slice(0, 3)])).toEqual(
    Array.from({ length: 8 }, () => false),
  );
  expect(pool.pendingCount).toBe(0);
});

test('a cancelled request is not answered, and frees its place', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source } = fixture;
  const gate = Promise.withResolvers<void>();
  source.fault = () => gate.promise;
  const shard = shardOfSlot(0);
  const abort = new AbortController();
  const cancelled = checkViewer(pool, scopeOf(shard, 0), 'a', 'u', abort.signal).catch(reasonOf);
  let answers = 0;
  const expected = { projectId: '', tenantId: '', token: '' };
  const body = Buffer.from(
    '{"namespace":"doc","object_id":"a","relation":"v","subject_user_id":"u"}',
  );
  const handle = pool.raw('check', 'json', body, scopeOf(shard, 0), expected, () => {
    answers += 1;
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  abort.abort();
  handle?.cancel();
  handle?.cancel();
  expect(await cancelled).toBe('CANCELLED');
  expect(pool.pendingCount).toBe(0);
  gate.resolve();
  expect(await checkViewer(pool, scopeOf(shard, 0), 'a', 'u')).toBe(false);
  expect(answers).toBe(0);
});

test('drain lets requests finish, refuses new ones, and stop ends what is left', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source } = fixture;
  const shard = shardOfSlot(0);
  const gate = Promise.withResolvers<void>();
  source.fault = () => gate.promise;
  const held = checkViewer(pool, scopeOf(shard, 0), 'a', 'u').catch(reasonOf);
  await new Promise((resolve) => setTimeout(resolve, 5));
  const drained = pool.drain(5_000);
  expect(await checkViewer(pool, scopeOf(shard, 0), 'a', 'u').catch(reasonOf)).toBe(
    'SHUTTING_DOWN',
  );
  gate.resolve();
  await drained;
  expect(await held).toBe(false);
  await pool.stop();
  await pool.stop();
});

test('a busy shard is not evicted, idle ones go by least recent use', async () => {
  await using fixture = await startFixture({ workerCount: 1, indexBytesMax: 1_200_000 });
  const { pool, source, transports } = fixture;
  const shards = Array.from({ length: 12 }, (_, n) => shardOfSlot(0, n));
  for (const shard of shards) {
    source.commit(
      shard,
      Array.from({ length: 800 }, (_, i) => viewer('insert', `d${i}`, `u${i}`)),
    );
  }
  source.rowsPerSlice = 1_000;
  for (let round = 0; round < 3; round++) {
    for (const shard of shards) {
      expect(await checkViewer(pool, scopeOf(shard, 1), 'd7', 'u7')).toBe(true);
    }
  }
  const host = transports[0]?.host;
  expect(source.loads).toBeGreaterThan(shards.length);
  expect(host?.indexBytes).toBeLessThanOrEqual(1_200_000);
  // All at once: each has a waiter while it loads, and each is answered.
  const all = shards.map((shard) => checkViewer(pool, scopeOf(shard, 1), 'd9', 'u9'));
  expect((await Promise.all(all)).every(Boolean)).toBe(true);
});

test('one tenant has no more bytes waiting than are left for the others', async () => {
  await using fixture = await startFixture({ workerCount: 1, queueBytesMax: 40_000 });
  const { pool, source, refused } = fixture;
  const gate = Promise.withResolvers<void>();
  source.fault = () => gate.promise;
  const items = Array.from({ length: 80 }, () => ({
    namespace: 'doc',
    objectId: 'a',
    relation: 'viewer',
    userId: 'u',
  }));
  // 64 + 80 · 96 bytes each: three are within what is left beside them, the fourth is not.
  const ask = (shard: ShardKey): Promise<unknown> =>
    askBatch(pool, scopeOf(shard, 0), items).catch((error: unknown) => error);
  const noisy = Array.from({ length: 4 }, () => ask(shardOfSlot(0)));
  const error = await noisy[3];
  expect(reasonOf(error)).toBe('QUEUE_FULL');
  expect((error as AppError).metadata).toEqual({ bound: 'tenant_bytes' });
  const quiet = ask(shardOfSlot(0, 1));
  expect(refused).toEqual(['tenant_bytes']);
  gate.resolve();
  for (const answer of [...noisy.slice(0, 3), quiet]) expect(await answer).toHaveLength(80);
  expect(pool.pendingCount).toBe(0);
});

test('what would wait longer than it has time is refused at once, and taken again when the queue has gone', async () => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source, refused } = fixture;
  const gate = Promise.withResolvers<void>();
  const items = Array.from({ length: 250 }, () => ({
    namespace: 'doc',
    objectId: 'a',
    relation: 'viewer',
    userId: 'u',
  }));
  const shard = shardOfSlot(0);
  const ask = (timeoutMs: number): Promise<unknown> => {
    const deadlineMs = performance.timeOrigin + performance.now() + timeoutMs;
    return askBatch(pool, { ...scopeOf(shard, 0), deadlineMs }, items).catch(reasonOf);
  };
  source.fault = () => gate.promise;
  // About 19,000 bytes each: behind two of them the third tells how long that takes.
  const waiting = [ask(60_000), ask(60_000), ask(60_000)];
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(await ask(50)).toBe('QUEUE_FULL');
  expect(refused).toEqual(['deadline']);
  // The same is said before a body was received, of a shard that has a queue.
  const soonMs = performance.timeOrigin + performance.now() + 50;
  const before = pool.refusalBefore(shard, 20_000, soonMs);
  expect([before?.reason, before?.metadata]).toEqual(['QUEUE_FULL', { bound: 'deadline' }]);
  expect(refused).toEqual(['deadline', 'deadline']);
  expect(pool.refusalBefore(shard, 20_000, soonMs + 60_000)).toBeNull();
  expect(pool.refusalBefore(shardOfSlot(0, 1), 20_000, soonMs)).toBeNull();
  expect(pool.refusalBefore(undefined, 20_000, soonMs)).toBeNull();
  const patient = ask(60_000);
  gate.resolve();
  for (const answer of [...waiting, patient]) expect(await answer).toHaveLength(250);
  expect(await ask(60_000)).toHaveLength(250);
});
