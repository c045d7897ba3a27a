import { expect, test } from 'vitest';
import { PairTable } from '../../src/engine/bound/pair-table.ts';
import { ObjectTable } from '../../src/engine/hot/object-table.ts';
import type { ShardKey } from '../../src/model/relation-tuple.ts';
import { DEBUG_ASSERTIONS } from '../../src/shared/assert.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import type { ChangePage } from '../../src/store/feed/changes.ts';
import { PendingRawRequest } from '../../src/workers/queues/pending-request.ts';
import { ShardQueue } from '../../src/workers/queues/shard-queue.ts';
import { ShardActor } from '../../src/workers/shard/shard-actor.ts';
import { WorkerSlot } from '../../src/workers/slot/worker-slot.ts';
import { packingIndex } from './folding-index.ts';
import { MemoryShardSource } from './memory-shard-source.ts';
import { scopeOf, viewer } from './pool-fixture.ts';

const SHARD: ShardKey = { projectId: 'p', tenantId: 't' };

test('tests run with the assertions that a service leaves out', () => {
  expect(DEBUG_ASSERTIONS).toBe(true);
});

/** A store whose pages leave a revision out, as a mistake of ours might. */
class SourceWithGap extends MemoryShardSource {
  leftOut = 0;

  override async readChanges(shard: ShardKey, afterRevision: number): Promise<ChangePage> {
    const page = await super.readChanges(shard, afterRevision);
    return { ...page, changes: page.changes.filter(({ revision }) => revision !== this.leftOut) };
  }
}

test('a change that skips a seq is never applied: the shard is loaded again', async () => {
  const source = new SourceWithGap();
  const reports: string[] = [];
  const actor = new ShardActor(SHARD, {
    clock: systemClock,
    source,
    loadTimeoutMs: 10_000,
    createIndex: (user) => packingIndex(user),
    withLoadSlot: (load) => load(),
    failed: (error) => {
      throw error;
    },
    runnable: () => undefined,
    longRunnable: () => undefined,
    settled: () => undefined,
    counted: () => undefined,
    report: (event, _shard, error) => void reports.push(`${event}: ${String(error)}`),
  });
  source.commit(SHARD, [viewer('insert', 'a', 'u')]);
  actor.submit({
    requestId: 1,
    scope: { ...scopeOf(SHARD, 0), expectedProjectId: '', expectedTenantId: '' },
    minRevision: 0,
    deadlineMs: Infinity,
    isDeadlineStated: false,
    waitUntilMs: Infinity,
    isLong: false,
    isReadFirst: false,
    isCancelled: false,
    model: null,
    hasDropped: false,
    read: () => true,
    drop: () => undefined,
    run: () => 'done',
    restart: () => undefined,
    fail: () => undefined,
  });
  await expect.poll(() => actor.state, { interval: 2 }).toBe('ready');
  expect(actor.tupleCount).toBe(1);
  source.leftOut = 2;
  source.commit(SHARD, [viewer('insert', 'b', 'u')]);
  source.commit(SHARD, [viewer('insert', 'c', 'u')]);
  const { generation } = actor;
  actor.changes.hint(3);
  await expect.poll(() => actor.generation, { interval: 2 }).toBeGreaterThan(generation);
  await expect.poll(() => actor.watermark, { interval: 2 }).toBe(3);
  expect(reports).toEqual([
    'shard_index_damaged: Error: assertion failed: the watermark moves seq by seq',
  ]);
  expect(actor.tupleCount).toBe(3);
});

test('a slot takes requests of its own shards only', () => {
  const slot = new WorkerSlot(
    1,
    () => {
      throw new Error('it is not started');
    },
    { queueDepthMax: 10, queueBytesMax: 1_000 },
    {
      onStats: () => undefined,
      onReport: () => undefined,
      onReady: () => undefined,
      onLost: () => undefined,
      onFatal: () => undefined,
      onRefused: () => undefined,
      onBudgetRefused: () => undefined,
      modelJson: () => undefined,
    },
    systemClock,
  );
  const requestFor = (index: number, id: number): PendingRawRequest =>
    new PendingRawRequest(
      id,
      new ShardQueue(SHARD.projectId, SHARD.tenantId, index),
      scopeOf(SHARD, 0),
      0,
      new Uint8Array(1),
      { projectId: '', tenantId: '', token: '' },
      () => undefined,
    );
  expect(() => slot.enqueue(requestFor(0, 1))).toThrow('a shard has its requests in one slot');
  expect(slot.requests.count).toBe(0);
  expect(slot.enqueue(requestFor(1, 2))).toBeNull();
  expect(slot.requests.count).toBe(1);
});

test('the tables of the engine tell when a line is added twice, or a pair has no place', () => {
  const lines = new ObjectTable(4, 1 << 16);
  lines.insert(7, 1);
  expect(() => lines.insert(7, 1)).toThrow('a line has one place');
  const pairs = new PairTable();
  pairs.insert(1, 2);
  pairs.size = -1; // nobody but a mistake writes it
  expect(() => pairs.insert(3, 4)).toThrow('a pair has its place');
});
