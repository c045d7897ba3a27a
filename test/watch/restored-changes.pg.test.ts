import { afterAll, beforeAll, expect, test } from 'vitest';
import { readDeployment } from '../../src/store/migrations/deployment.ts';
import {
  selectWatchStart,
  selectWatchedProject,
} from '../../src/store/sql/reads/watched-changes.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';

/* A dump holds the numbers of transactions of the server that it was taken from. */

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => await database.drop());

const CHANGE = `insert into tuple_change
  (project_id, tenant_id, seq, stamp, commit_id, rpc, request_id, changes, settings_version, txid)
  select 'p', 't', $1, 1, gen_random_uuid(), 'R', '', '[]', 0,
    ((pg_current_xact_id()::text)::bigint + $2::int)::text::xid8`;

test('changes of a dump that was loaded into another server are not told once it comes to their transactions', async () => {
  const { pool } = database;
  await pool.query(`insert into project (id, name) values ('p', 'p')`);
  await pool.query(`insert into shard (project_id, tenant_id, seq, retained_from, pruned_txid)
    values ('p', 't', 2, 2, '4000000000'), ('p', 'u', 5, 1, null)`);
  await pool.query(CHANGE, [2, 30]);
  await pool.query(`update deployment set system_identifier = '1'`);
  const client = await pool.connect();
  const { epoch } = await readDeployment(client).finally(() => client.release());

  const start = await selectWatchStart(pool, 'p');
  expect(start.epoch).toBe(epoch);
  for (let n = 0; n < 60; n++) await pool.query('select pg_current_xact_id()');
  // What it came with is pruned, as any change.
  await pool.query(`update shard set retained_from = 3 where tenant_id = 't'`);
  const window = await selectWatchedProject(pool, 'p', start.snapshot, null, ['', -1]);
  expect([window.rows, window.pruned]).toEqual([[], []]);

  await pool.query(`update shard set seq = 3 where tenant_id = 't'`);
  await pool.query(CHANGE, [3, 0]);
  const next = await selectWatchedProject(pool, 'p', window.to, null, ['', -1]);
  expect(next.rows.map(({ tenantId, revision }) => [tenantId, revision])).toEqual([['t', 3]]);
});
