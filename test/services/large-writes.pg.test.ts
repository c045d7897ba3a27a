import { afterAll, beforeAll, expect, test } from 'vitest';
import { startInstance, type Instance } from '../support/instance.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { call } from '../support/service.ts';

/* Others do not wait for the write of a large group, whichever lane they share. */

const TENANTS = 24;

let database: TestDatabase;
let instance: Instance;
beforeAll(async () => {
  database = await createTestDatabase();
  instance = await startInstance(database, { GATEWAY_MAX_WRITE_UPDATES: '10000' });
}, 120_000);
afterAll(async () => {
  await instance.stop();
  expect(instance.failures).toEqual([]);
  await database.drop();
});

async function write(tenantId: string, count: number, from = 0): Promise<number> {
  const updates = Array.from({ length: count }, (_, n) => ({
    op: 'OP_INSERT',
    tuple: {
      namespace: 'doc',
      object_id: `d${from + n}`,
      relation: 'viewer',
      subject: { user_id: 'u' },
    },
  }));
  const body = { tenant_id: tenantId, updates };
  return (await call(instance, 'AuthzService/WriteRelationTuples', body)).status;
}

test('while a large write is under way, single ones of every other tenant are done; those of its own wait', async () => {
  expect(await write('large', 1)).toBe(200);
  const holder = await database.pool.connect();
  let isDone = false;
  try {
    await holder.query(`begin; select 1 from shard where tenant_id = 'large' for update`);
    const large = write('large', 10_000).then((status) => {
      isDone = true;
      return status;
    });
    const waits = `select 1 from pg_stat_activity
      where wait_event_type = 'Lock' and datname = current_database()`;
    // Not in the transaction of the holder, which sees the activity of its first look for ever.
    await expect.poll(async () => (await database.pool.query(waits)).rows.length).toBe(1);
    // Behind it, in the same shard, and of a size of its own again.
    const behind = [write('large', 1, 20_000), write('large', 2_000, 30_000)];
    const others = Array.from({ length: TENANTS }, (_, n) => write(`t${n}`, 1));
    expect(new Set(await Promise.all(others))).toEqual(new Set([200]));
    expect(isDone).toBe(false);
    await holder.query('rollback');
    expect(await Promise.all([large, ...behind])).toEqual([200, 200, 200]);
  } finally {
    holder.release(true);
  }
  const { rows } = await database.pool.query<{ count: string }>(
    `select count(*) from relation_tuple where tenant_id = 'large'`,
  );
  expect(Number(rows[0]?.count)).toBe(12_001);
}, 120_000);
