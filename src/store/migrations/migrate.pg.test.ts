import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { dumpSchema } from '../../../test/support/schema-dump.ts';
import { readDeployment, startNewEpoch } from './deployment.ts';
import { migrate } from './migrate.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ template: 'none' });
});
afterAll(async () => await database.drop());

describe('migrate', () => {
  it('makes the committed schema from nothing, also when several processes do it at once', async () => {
    const made = await Promise.all([1, 2, 3].map(async () => await migrate(database.target)));
    expect(made.map((deployment) => deployment.tokenKey)).toEqual([
      made[0]?.tokenKey,
      made[0]?.tokenKey,
      made[0]?.tokenKey,
    ]);
    expect(made[0]?.tokenKey).toHaveLength(32);
    await expect(await dumpSchema(database.pool)).toMatchFileSnapshot(
      '../../../test/store/schema.txt',
    );
  });

  it('is idempotent and keeps the token key', async () => {
    const first = await migrate(database.target);
    expect(await migrate(database.target)).toEqual(first);
  });

  it('refuses a schema newer than it knows', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-migrations-'));
    try {
      writeFileSync(join(directory, '0001_other.sql'), 'select 1;');
      await expect(
        migrate(database.target, { migrationsDirectory: directory }),
      ).rejects.toMatchObject({
        reason: 'STORE_UNAVAILABLE',
        message: expect.stringContaining('newer schema') as string,
      });
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

describe('deployment', () => {
  it('starts a new epoch for every shard when the database is another one', async () => {
    const before = await migrate(database.target);
    await database.pool.query(
      `insert into shard (project_id, tenant_id) values ('p', 'a'), ('p', 'b')`,
    );
    expect(await shardEpochs()).toEqual([before.epoch, before.epoch]);
    await database.pool.query(`update deployment set system_identifier = '1'`);
    const after = await inClient(async (client) => await readDeployment(client));
    expect(after.epoch).toBeGreaterThan(before.epoch);
    expect(after.systemIdentifier).toBe(before.systemIdentifier);
    expect(after.tokenKey).toEqual(before.tokenKey);
    expect(await shardEpochs()).toEqual([after.epoch, after.epoch]);
    expect(await inClient(async (client) => await readDeployment(client))).toEqual(after);
  });

  it('starts a new epoch by hand and on another timeline, each greater than the last', async () => {
    const first = await inClient(async (client) => await startNewEpoch(client));
    const second = await inClient(async (client) => await startNewEpoch(client));
    expect(second).toBeGreaterThan(first);
    await database.pool.query('update deployment set timeline = timeline + 1');
    const third = await inClient(async (client) => await readDeployment(client));
    expect(third.epoch).toBeGreaterThan(second);
    await database.pool.query(`insert into shard (project_id, tenant_id) values ('p', 'c')`);
    expect(await shardEpochs()).toEqual([third.epoch, third.epoch, third.epoch]);
  });
});

async function shardEpochs(): Promise<number[]> {
  const { rows } = await database.pool.query<{ epoch: string }>('select epoch from shard');
  return rows.map((row) => Number(row.epoch));
}

async function inClient<T>(work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client(database.target);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
