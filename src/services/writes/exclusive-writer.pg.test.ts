import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type CuttingProxy, createCuttingProxy } from '../../../test/support/cutting-proxy.ts';
import { asAdmin } from '../../../test/support/postgres-admin.ts';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { type TestServices, createTestServices } from '../../../test/support/services.ts';
import type { ShardKey, TupleChange } from '../../model/relation-tuple.ts';
import { createPool } from '../../store/postgres/pool.ts';
import type { WriteMeta } from '../ports.ts';

/* Transactions whose session ends, or whose COMMIT gets no answer, and what a look for it may meet. */

let database: TestDatabase;
let proxy: CuttingProxy;
let pool: TestDatabase['pool'];
let services: TestServices;

beforeAll(async () => {
  database = await createTestDatabase();
});
beforeEach(async () => {
  proxy = await createCuttingProxy(database.target);
  pool = createPool(proxy.target, { max: 4, applicationName: 'cut', lockTimeoutMs: 100 });
  services = await createTestServices({ ...database, pool });
});
afterEach(async () => {
  await services.close();
  await pool.end();
  await proxy.close();
});
afterAll(async () => await database.drop());

const meta: WriteMeta = { rpc: 'Test', actingUserId: null, requestId: 'r', deadlineMs: Infinity };
const shardOf = (projectId: string): ShardKey => ({ projectId, tenantId: '' });
function insertOf(objectId: string): TupleChange[] {
  const subject = { kind: 'user', userId: 'u' } as const;
  return [{ op: 'insert', tuple: { namespace: 'doc', objectId, relation: 'viewer', subject } }];
}

test('while nothing tells what became of a COMMIT it is neither called failed nor done again', async () => {
  const shard = shardOf('looked-for');
  const blocker = await database.pool.connect();
  await blocker.query('begin');
  let runs = 0;
  let locked: Promise<unknown> | undefined;
  const working = services.writer.exclusive([shard], meta, async (transaction) => {
    const result = await transaction.write(shard, insertOf(`run${++runs}`), meta);
    // Had when this transaction has ended; looks for its commit then fail with a lock time-out.
    locked ??= blocker.query('lock table tuple_change in access exclusive mode');
    proxy.loseAnswers('commit', 1);
    return result;
  });
  working.catch(() => undefined);
  await expect.poll(() => locked).toBeDefined();
  await locked;
  const looks = new Set<string>();
  await expect
    .poll(async () => {
      const { rows } = await database.pool.query<{ look: string }>(
        `select virtualtransaction as look from pg_locks
         where relation = 'tuple_change'::regclass and not granted`,
      );
      for (const { look } of rows) looks.add(look);
      return looks.size;
    })
    .toBeGreaterThan(1);
  await blocker.query('rollback');
  blocker.release();
  expect(await working).toMatchObject({ revision: 1 });
  expect(runs).toBe(1);
  expect(services.committed.map(({ revision }) => revision)).toEqual([1]);
});

test('of rows alone the outcome is unknown, but reads of the shard are not slower for it', async () => {
  const shard = shardOf('rows');
  await services.writer.write(shard, insertOf('a'), meta);
  await services.index.load(shard.projectId, shard.tenantId);
  const working = services.writer.exclusive([shard], meta, async ({ client }) => {
    await client.query('create table made (n int)');
    proxy.loseAnswers('commit', 1);
  });
  await expect(working).rejects.toMatchObject({ reason: 'WRITE_OUTCOME_UNKNOWN' });
  expect(proxy.lost).toBe(1);
  expect(services.headRevisions.peek(shard.projectId, shard.tenantId)).toMatchObject({
    minRevision: 1,
  });
});

test('a session that ended in the middle is not committed, whatever the work noticed of it', async () => {
  const shard = shardOf('ended');
  let runs = 0;
  const working = services.writer.exclusive([shard], meta, async (transaction) => {
    const result = await transaction.write(shard, insertOf(`run${++runs}`), meta);
    if (runs === 1) {
      await transaction.client.query(`set local idle_in_transaction_session_timeout = 1`);
      const ended = new Promise((resolve) => transaction.client.once('end', resolve));
      await ended;
    }
    return result;
  });
  expect(await working).toMatchObject({ revision: 1 });
  expect(runs).toBe(2);
  const { rows } = await database.pool.query(
    `select object_id from relation_tuple where project_id = 'ended'`,
  );
  expect(rows).toEqual([{ object_id: 'run2' }]);
});

test('a session that the operator ended is told as not applied', async () => {
  const shard = shardOf('terminated');
  const working = services.writer.exclusive([shard], meta, async (transaction) => {
    await transaction.write(shard, insertOf('a'), meta);
    const { rows } = await transaction.client.query<{ pid: number }>('select pg_backend_pid() pid');
    const ended = new Promise((resolve) => transaction.client.once('end', resolve));
    await database.pool.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
    await ended;
  });
  await expect(working).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  expect(services.committed).toEqual([]);
});

test('a write that is sent again to a server that only reads for now is not called failed', async () => {
  const shard = shardOf('read-only');
  const change = `alter database ${database.name}`;
  await services.writer.write(shard, insertOf('a'), meta);
  const { rows: times } = await database.pool.query<{ now: string }>('select now()::text');
  let writing: Promise<{ revision: number }>;
  // Of new sessions alone: the one that is there takes the write, the next one refuses it.
  await asAdmin(database.admin, `${change} set default_transaction_read_only = on`);
  try {
    proxy.loseAnswers('viewer', 1);
    writing = services.writer.write(shard, insertOf('b'), meta);
    writing.catch(() => undefined);
    await expect
      .poll(async () => {
        const { rowCount } = await database.pool.query(
          `select from pg_stat_activity where application_name = 'cut' and state = 'idle'
             and datname = current_database() and backend_start > $1
             and query like '%gatehouse_write(%'`,
          [times[0]?.now],
        );
        return rowCount;
      })
      .toBe(1);
  } finally {
    await asAdmin(database.admin, `${change} reset default_transaction_read_only`);
  }
  await database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'cut' and datname = current_database()`,
  );
  expect(await writing).toMatchObject({ revision: 2 });
  expect(services.committed.map(({ revision }) => revision)).toEqual([1, 2]);
});
