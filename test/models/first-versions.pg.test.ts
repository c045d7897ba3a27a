import { expect, onTestFinished, test } from 'vitest';
import { migrate } from '../../src/store/migrations/migrate.ts';
import { docModel } from '../support/model-calls.ts';
import { createTestDatabase } from '../support/postgres.ts';

test('a model that is written by SQL becomes a version, the built-in one none', async () => {
  const database = await createTestDatabase({ template: 'none' });
  onTestFinished(() => database.drop());
  const { pool, target } = database;
  await migrate(target);
  const model = docModel({ viewer: {} });
  await pool.query(
    `insert into project (id, name, model_json) values ('typed', 'n', $1), ('plain', 'n', '')`,
    [model],
  );
  const { rows } = await pool.query(
    'select project_id, version::int, model_json, rpc, created_by, state from model_version',
  );
  expect(rows).toEqual([
    { project_id: 'typed', version: 1, model_json: model, rpc: '', created_by: '', state: 2 },
  ]);
  await pool.query(`update project set model_json = '{"namespaces":{}}' where id = 'typed'`);
  const kept = await pool.query(
    'select version::int, model_json from model_version order by version',
  );
  expect(kept.rows.at(-1)).toEqual({ version: 2, model_json: '{"namespaces":{}}' });
});
