import { expect, test } from 'vitest';
import type { WorkerStats } from '../../src/protocol/messages.ts';
import type { EvaluatedRpc } from '../../src/workers/counts/decision-stats.ts';
import { WORKER_DEFAULTS } from '../../src/workers/host/worker-settings.ts';
import { createWorkerPool } from '../../src/workers/pool/worker-pool.ts';
import { InProcessTransport } from './in-process-transport.ts';
import { MemoryShardSource } from './memory-shard-source.ts';
import { askBatch, checkViewer, reasonOf, scopeOf, startFixture, viewer } from './pool-fixture.ts';

const SHARD = { projectId: 'p', tenantId: '' };
const MODEL = JSON.stringify({
  namespaces: {
    doc: { relations: { viewer: { union: [{ this: {} }, { computed: 'editor' }] }, editor: {} } },
  },
});

test('counts decisions by names of the model, everything else as other', async () => {
  const all: WorkerStats[] = [];
  await using fixture = await startFixture({
    workerCount: 1,
    modelJson: MODEL,
    onStats: (stats) => all.push(stats),
  });
  const { pool, source } = fixture;
  source.commit(SHARD, [viewer('insert', 'a', 'u')]);
  const item = (relation: string) => ({ namespace: 'doc', objectId: 'a', relation, userId: 'u' });
  await checkViewer(pool, scopeOf(SHARD, 1), 'a', 'u');
  await askBatch(pool, scopeOf(SHARD, 1), [item('viewer'), item('editor'), item('nonsense')]);
  const total = (namespace: string, relation: string, outcome: string): number =>
    all
      .flatMap((stats) => stats.decisions)
      .filter((d) => d.namespace === namespace && d.relation === relation && d.outcome === outcome)
      .reduce((sum, d) => sum + d.count, 0);
  await expect.poll(() => total('doc', 'viewer', 'allowed')).toBe(2);
  expect(total('doc', 'editor', 'denied')).toBe(1);
  expect(total('other', 'other', 'denied')).toBe(1);
  expect(all.flatMap((stats) => stats.decisions).some((d) => d.relation === 'nonsense')).toBe(
    false,
  );
  const evaluated = (rpc: EvaluatedRpc): readonly number[] => {
    const figures = all.map((stats) => stats.evalReads[rpc]);
    const count = figures.flatMap(({ counts }) => counts).reduce((sum, each) => sum + each, 0);
    return [count, figures.reduce((sum, each) => sum + each.sum, 0)];
  };
  const [checks, checkReads = 0] = evaluated('Check');
  expect(checks).toBe(1);
  expect(checkReads).toBeGreaterThan(0);
  // The item whose relation nothing mentions needs no read.
  const [items, itemReads = 0] = evaluated('BatchCheck');
  expect(items).toBe(3);
  expect(itemReads).toBeGreaterThanOrEqual(2);
  expect(evaluated('ListObjects')).toEqual([0, 0]);
  expect(all.at(-1)).toMatchObject({ shardsLoaded: 1, tuples: 1, watermarkLagMax: 0 });
});

test('a batch has a total budget; items not reached say so', async () => {
  await using fixture = await startFixture({ workerCount: 1, modelJson: MODEL });
  const { pool, source } = fixture;
  source.commit(SHARD, [viewer('insert', 'a', 'u')]);
  const items = Array.from({ length: 400 }, () => ({
    namespace: 'doc',
    objectId: 'a',
    relation: 'viewer',
    userId: 'stranger',
  }));
  const results = await askBatch(pool, scopeOf(SHARD, 1, { readBudget: 10 }), items);
  const reached = results.filter((result) => result.error === '').length;
  expect(reached).toBeGreaterThan(19);
  expect(reached).toBeLessThan(400);
  expect(results.every((result) => !result.allowed)).toBe(true);
  expect(results.at(-1)?.error).toMatch(/doc#viewer.*200/);
});

test('a worker that is silent with a batch at hand is lost', async () => {
  let aheadMs = 0;
  const clock = {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now() + aheadMs,
  };
  let lives = 0;
  const pool = createWorkerPool({
    workerCount: 1,
    createTransport: () => {
      lives += 1;
      const settings = { ...WORKER_DEFAULTS, poolMax: 2, indexBytesMax: 1e8 };
      const transport = new InProcessTransport({ settings, source: new MemoryShardSource() });
      if (lives === 1) transport.send = () => new Promise(() => undefined);
      return transport;
    },
    queueDepthMax: 10,
    shardQueueDepthMax: 10,
    queueBytesMax: 1e6,
    onFatal: () => undefined,
    onStats: () => undefined,
    onEvent: () => undefined,
    clock,
  });
  await pool.start();
  const stuck = checkViewer(pool, scopeOf(SHARD, 0, { deadlineMs: Infinity }), 'a', 'u').catch(
    reasonOf,
  );
  await new Promise((resolve) => setTimeout(resolve, 20));
  aheadMs = 31_000;
  expect(await stuck).toBe('WORKER_LOST');
  await expect.poll(() => lives).toBe(2);
  await pool.stop();
});
