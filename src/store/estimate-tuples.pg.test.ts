import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import { estimateTuples } from './estimate-tuples.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => await database.drop());

test('a large tenant beside small ones is known by about its size', async () => {
  const { pool } = database;
  await pool.query(`insert into project (id, name) values ('p', 'p')`);
  await pool.query(
    `insert into shard (project_id, tenant_id) select 'p', 't' || n from generate_series(1, 50) n`,
  );
  await pool.query(`insert into relation_tuple
      (project_id, tenant_id, namespace, object_id, relation, subject_namespace, subject_id, subject_relation, seq)
    select 'p', case when n <= 40000 then 't1' else 't' || (2 + n % 49) end,
      'doc', 'd' || n, 'viewer', '', 'u', '', 1
    from generate_series(1, 45000) n`);
  await pool.query('analyze relation_tuple');
  const large = await estimateTuples(pool, { projectId: 'p', tenantId: 't1' });
  expect(large).toBeGreaterThan(30_000);
  expect(large).toBeLessThan(50_000);
  expect(await estimateTuples(pool, { projectId: 'p', tenantId: 't7' })).toBeLessThan(2_000);
});
