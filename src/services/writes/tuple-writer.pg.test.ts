import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCuttingProxy } from '../../../test/support/cutting-proxy.ts';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { type TestServices, createTestServices } from '../../../test/support/services.ts';
import { unpackChanges } from '../../model/packed-changes.ts';
import type { RelationTuple, ShardKey } from '../../model/relation-tuple.ts';
import { createPool } from '../../store/postgres/pool.ts';
import type { WriteMeta } from '../ports.ts';

let database: TestDatabase;
let services: TestServices;

beforeAll(async () => {
  database = await createTestDatabase();
  services = await createTestServices(database);
});
afterAll(async () => {
  await services.close();
  await database.drop();
});

const meta: WriteMeta = {
  rpc: 'WriteRelationTuples',
  actingUserId: null,
  requestId: 'r',
  deadlineMs: Infinity,
};

function shardOf(projectId: string, tenantId = ''): ShardKey {
  return { projectId, tenantId };
}
function tuple(objectId: string, userId = 'u'): RelationTuple {
  const subject = { kind: 'user', userId } as const;
  return { namespace: 'doc', objectId, relation: 'viewer', subject };
}
async function changeRows(projectId: string): Promise<{ seq: number; changes: string }[]> {
  const { rows } = await database.pool.query(
    `select seq::int, changes from tuple_change where project_id = $1 order by tenant_id, seq`,
    [projectId],
  );
  return rows;
}
async function tupleCount(projectId: string): Promise<number> {
  const { rows } = await database.pool.query(
    'select count(*)::int as n from relation_tuple where project_id = $1',
    [projectId],
  );
  return rows[0].n;
}

test('concurrent callers get a seq each, in the order of their calls, and everybody is told (W2)', async () => {
  const shard = shardOf('order');
  const results = await Promise.all(
    Array.from({ length: 200 }, (_, i) =>
      services.writer.write(shard, [{ op: 'insert', tuple: tuple(`d${i}`) }], meta),
    ),
  );
  expect(results.map(({ revision }) => revision)).toEqual(
    Array.from({ length: 200 }, (_, i) => i + 1),
  );
  const told = services.committed.filter(({ projectId }) => projectId === 'order');
  expect(told.map(({ revision }) => revision)).toEqual(results.map(({ revision }) => revision));
  expect(told.map(({ changes }) => changes)).toEqual(
    (await changeRows('order')).map(({ changes }) => changes),
  );
  const audited = services.audited.filter(({ projectId }) => projectId === 'order');
  expect(audited.map(({ revision }) => revision)).toEqual(results.map(({ revision }) => revision));
  await services.index.load('order', '');
  expect(services.headRevisions.peek('order', '')).toMatchObject({
    epoch: results[0]?.epoch,
    minRevision: 200,
  });
});

test('a write that Postgres refuses fails alone', async () => {
  const shard = shardOf('culprit');
  // U+0000 never passes validation; here it stands for any data that the database refuses.
  const writes = ['a', 'b\u0000', 'c'].map((id) =>
    services.writer.write(shard, [{ op: 'insert', tuple: tuple(id) }], meta),
  );
  const settled = await Promise.allSettled(writes);
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect((await changeRows('culprit')).map(({ seq }) => seq)).toEqual([1, 2]);
});

test('cut connections: what was acknowledged is there once, nothing is there twice (L1, L2)', async () => {
  let isWriting = true;
  const cutting = (async () => {
    while (isWriting) {
      await database.pool
        .query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and pid <> pg_backend_pid()
             and query like '%gatehouse_write%'`,
        )
        .catch(() => undefined);
      await sleep(10);
    }
  })();
  let counter = 0;
  const acknowledged: string[] = [];
  const failures: string[] = [];
  const caller = async (index: number): Promise<void> => {
    for (let i = 0; i < 40; i++) {
      const id = `d${counter++}`;
      try {
        const shard = shardOf('cut', `t${index % 3}`);
        await services.writer.write(shard, [{ op: 'insert', tuple: tuple(id) }], meta);
        acknowledged.push(id);
      } catch (error) {
        failures.push((error as { reason: string }).reason);
      }
    }
  };
  await Promise.all(Array.from({ length: 12 }, (_, index) => caller(index)));
  isWriting = false;
  await cutting;
  const logged = (await changeRows('cut')).flatMap(({ changes }) =>
    unpackChanges(changes).map((change) => change.tuple.objectId),
  );
  expect(new Set(logged).size).toBe(logged.length);
  expect(new Set(acknowledged).isSubsetOf(new Set(logged))).toBe(true);
  expect(acknowledged.length).toBeGreaterThan(0);
  for (const reason of failures) expect(reason).toBe('STORE_UNAVAILABLE');
  const told = services.committed.filter(({ projectId }) => projectId === 'cut');
  expect(told.length).toBe(logged.length);
});

test('a commit whose answer is lost is found by its id, also of deletes and exclusive writers', async () => {
  const proxy = await createCuttingProxy(database.target);
  const pool = createPool(proxy.target, { max: 6, applicationName: 'cut' });
  const cut = await createTestServices({ ...database, pool });
  const shard = shardOf('lost');
  try {
    for (let round = 0; round < 5; round++) {
      proxy.loseAnswers('viewer', 2);
      const writes = ['a', 'b', 'c'].map((id) =>
        cut.writer.write(shard, [{ op: 'insert', tuple: tuple(id) }], meta),
      );
      const revisions = (await Promise.all(writes)).map(({ revision }) => revision);
      expect(revisions).toEqual([1, 2, 3].map((n) => round * 5 + n));
      proxy.loseAnswers('viewer', 1);
      const deletes = ['a', 'absent'].map((id) =>
        cut.writer.write(shard, [{ op: 'delete', tuple: tuple(id) }], meta),
      );
      expect((await Promise.all(deletes)).map(({ revision }) => revision)).toEqual([
        round * 5 + 4,
        round * 5 + 4,
      ]);
      const inside = await cut.writer.exclusive([shard], meta, async (transaction) => {
        const result = await transaction.write(
          shard,
          [{ op: 'insert', tuple: tuple('exclusive') }],
          meta,
        );
        proxy.loseAnswers('commit', 1);
        return result;
      });
      expect(inside.revision).toBe(round * 5 + 5);
    }
    expect(proxy.lost).toBeGreaterThanOrEqual(15);
    const rows = await changeRows('lost');
    expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: 25 }, (_, i) => i + 1));
    expect(cut.committed.map(({ changes }) => changes)).toEqual(rows.map(({ changes }) => changes));
    await cut.index.load('lost', '');
    expect(cut.headRevisions.peek('lost', '')?.minRevision).toBe(25);
  } finally {
    await cut.close();
    await pool.end();
    await proxy.close();
  }
});

test('a write whose deadline passes in flight is unknown, and its shard is read by Postgres until then (W3)', async () => {
  const shard = shardOf('late');
  await services.writer.write(shard, [{ op: 'insert', tuple: tuple('first') }], meta);
  await services.index.load('late', '');
  const blocker = await database.pool.connect();
  await blocker.query('begin');
  await blocker.query(`select 1 from shard where project_id = 'late' for update`);
  const deadlineMs = performance.timeOrigin + performance.now() + 100;
  const late = services.writer.write(shard, [{ op: 'insert', tuple: tuple('late') }], {
    ...meta,
    deadlineMs,
  });
  await expect(late).rejects.toMatchObject({ reason: 'WRITE_OUTCOME_UNKNOWN' });
  expect(services.headRevisions.peek('late', '')).toBeUndefined();
  const queued = services.writer.write(shard, [{ op: 'insert', tuple: tuple('queued') }], {
    ...meta,
    deadlineMs: performance.timeOrigin + performance.now() + 50,
  });
  await expect(queued).rejects.toMatchObject({ reason: 'DEADLINE_EXCEEDED' });
  await blocker.query('commit');
  blocker.release();
  await expect.poll(() => services.headRevisions.peek('late', '')?.minRevision).toBe(2);
  expect(await tupleCount('late')).toBe(2);
});

test('a full queue refuses', async () => {
  const small = await createTestServices(database, { queuedWritesMax: 2 });
  const writes = Array.from({ length: 3 }, (_, i) =>
    small.writer.write(shardOf('full'), [{ op: 'insert', tuple: tuple(`d${i}`) }], meta),
  );
  const settled = await Promise.allSettled(writes);
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
  expect(settled[2]).toMatchObject({ reason: { reason: 'QUEUE_FULL' } });
  await small.close();
  await expect(
    small.writer.write(shardOf('full'), [{ op: 'insert', tuple: tuple('d') }], meta),
  ).rejects.toMatchObject({ reason: 'SHUTTING_DOWN' });
});

test('an exclusive transaction takes its turn, writes rows and tuples together, or nothing (W1)', async () => {
  const shard = shardOf('exclusive');
  const before = services.writer.write(shard, [{ op: 'insert', tuple: tuple('a') }], meta);
  const inside = services.writer.exclusive([shard], meta, async (transaction) => {
    await transaction.client.query('create table kept (n int)');
    const { revision } = await transaction.write(
      shard,
      [{ op: 'insert', tuple: tuple('b') }],
      meta,
    );
    return revision;
  });
  const after = services.writer.write(shard, [{ op: 'delete', tuple: tuple('b') }], meta);
  expect([(await before).revision, await inside, (await after).revision]).toEqual([1, 2, 3]);
  await expect(
    services.writer.exclusive([shard], meta, async (transaction) => {
      await transaction.write(shard, [{ op: 'insert', tuple: tuple('c') }], meta);
      await transaction.client.query('insert into kept values (1)');
      throw new Error('changed its mind');
    }),
  ).rejects.toThrow('changed its mind');
  expect(await tupleCount('exclusive')).toBe(1);
  const told = services.committed.filter(({ projectId }) => projectId === 'exclusive');
  expect(told.map(({ revision }) => revision)).toEqual([1, 2, 3]);
});

test('a statement that does not end holds no shutdown (L3)', async () => {
  const pool = createPool(database.target, { max: 2, applicationName: 'held' });
  const held = await createTestServices({ ...database, pool });
  const shard = shardOf('held');
  await held.writer.write(shard, [{ op: 'insert', tuple: tuple('first') }], meta);
  const blocker = await database.pool.connect();
  try {
    await blocker.query('begin');
    await blocker.query("select from shard where project_id = 'held' for update");
    const outcome = held.writer
      .write(shard, [{ op: 'insert', tuple: tuple('second') }], meta)
      .catch((error: { reason?: string }) => error.reason);
    await expect
      .poll(async () => {
        const { rows } = await database.pool.query(
          "select count(*)::int as n from pg_stat_activity where application_name = 'held' and wait_event_type = 'Lock'",
        );
        return rows[0].n;
      })
      .toBe(1);
    await held.writer.close(20);
    // While the row is still locked: else the statement would have ended by itself.
    await pool.end();
    expect(await outcome).toBe('WRITE_OUTCOME_UNKNOWN');
  } finally {
    await blocker.query('rollback');
    blocker.release();
  }
});
