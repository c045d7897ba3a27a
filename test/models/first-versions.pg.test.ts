import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { MIGRATIONS_DIRECTORY, migrate } from '../../src/store/migrate.ts';
import { docModel } from '../support/model-calls.ts';
import { createTestDatabase } from '../support/postgres.ts';

const VERSIONED = '0007_model_versions.sql';

test('a model that was stored before there were versions becomes version 1, the built-in one none', async () => {
  const before = mkdtempSync(join(tmpdir(), 'gatehouse-before-versions-'));
  onTestFinished(() => rmSync(before, { recursive: true }));
  for (const name of readdirSync(MIGRATIONS_DIRECTORY)) {
    if (name.endsWith('.sql') && name < VERSIONED) {
      cpSync(join(MIGRATIONS_DIRECTORY, name), join(before, name));
    }
  }
  const database = await createTestDatabase({ template: 'none' });
  onTestFinished(() => database.drop());
  const { pool, target } = database;
  await migrate(target, { migrationsDirectory: before });
  const model = docModel({ viewer: {} });
  await pool.query(
    `insert into project (id, name, model_json, updated_at)
     values ('old', 'n', $1, '2025-01-02T03:04:05Z'), ('plain', 'n', '', now())`,
    [model],
  );
  await migrate(target);
  const { rows } = await pool.query(
    'select project_id, version::int, model_json, rpc, created_by, state, created_at from model_version',
  );
  expect(rows).toEqual([
    {
      project_id: 'old',
      version: 1,
      model_json: model,
      rpc: '',
      created_by: '',
      state: 2,
      created_at: new Date('2025-01-02T03:04:05Z'),
    },
  ]);
  // What the release before writes beside this one is kept, too.
  await pool.query(`update project set model_json = '{"namespaces":{}}' where id = 'old'`);
  const kept = await pool.query(
    'select version::int, model_json from model_version order by version',
  );
  expect(kept.rows.at(-1)).toEqual({ version: 2, model_json: '{"namespaces":{}}' });
});
