import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { MIGRATIONS_DIRECTORY, migrate } from './migrate.ts';
import { readMigrationFiles } from './migration-files.ts';

/** Schemas of several releases on one database, each a directory of its own. */
let database: TestDatabase;
let root: string;
beforeEach(async () => {
  database = await createTestDatabase();
  root = mkdtempSync(join(tmpdir(), 'gatehouse-migrations-'));
});
afterEach(async () => {
  rmSync(root, { recursive: true });
  await database.drop();
});

const newest = readMigrationFiles(MIGRATIONS_DIRECTORY).at(-1)?.name ?? '';

/** The migrations of a release: today's and `more`. */
function release(name: string, more: Readonly<Record<string, string>>): string {
  const directory = join(root, name);
  cpSync(MIGRATIONS_DIRECTORY, directory, { recursive: true });
  for (const [file, sql] of Object.entries(more)) {
    writeFileSync(join(directory, `${file}.sql`), sql);
  }
  return directory;
}

type Told = { readonly event: string; readonly fields: Readonly<Record<string, unknown>> };

async function start(migrationsDirectory: string, lockTimeoutMs = 100): Promise<Told[]> {
  const told: Told[] = [];
  await migrate(database.target, {
    migrationsDirectory,
    log: (_level, event, fields) => void told.push({ event, fields: fields ?? {} }),
    lockWait: { lockTimeoutMs, pauseMs: 100, giveUpMs: 20_000 },
  });
  return told;
}

async function withClient<T>(work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client(database.target);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

describe('an older release beside a newer schema', () => {
  const EXPAND = '9001_expand';
  const expand = `-- Runs beside: ${newest}\nalter table project add column colour text;`;

  it('starts where every newer migration admits it', async () => {
    await start(release('new', { [EXPAND]: expand }));
    const told = await start(release('old', {}));
    expect(told).toContainEqual({ event: 'schema_newer', fields: { migrations: EXPAND } });
  });

  it('is refused by a migration that admits only later ones, or says nothing', async () => {
    const contract = `-- Runs beside: ${EXPAND}\nalter table project drop column colour;`;
    const both = { [EXPAND]: expand, '9002_contract': contract };
    await start(release('new', both));
    await expect(start(release('old', {}))).rejects.toMatchObject({
      reason: 'STORE_UNAVAILABLE',
      metadata: { migrations: '9002_contract' },
    });
    // The release in between is the oldest that may.
    await start(release('between', { [EXPAND]: expand }));
    await start(release('silent', { ...both, '9003_silent': 'select 1;' }));
    await expect(start(release('between', { [EXPAND]: expand }))).rejects.toMatchObject({
      metadata: { migrations: '9003_silent' },
    });
  });
});

describe('a migration that needs a table which others use', () => {
  const ALTER = `-- Runs beside: ${newest}\nalter table shard add column colour text;`;

  it('lets go and tries again, while writes go on', async () => {
    await database.pool.query(`insert into shard (project_id, tenant_id) values ('p', 't')`);
    await withClient(async (reader) => {
      // A list, a dump: it holds the table for longer than any write may wait.
      await reader.query('begin');
      await reader.query('select seq from shard');
      let tries = 0;
      const migrating = migrate(database.target, {
        migrationsDirectory: release('new', { '9001_alter': ALTER }),
        lockWait: { lockTimeoutMs: 100, pauseMs: 100, giveUpMs: 20_000 },
        log: (_level, event) => void (tries += event === 'migration_lock_awaited' ? 1 : 0),
      });
      await withClient(async (writer) => {
        await writer.query(`set lock_timeout = '5s'`);
        // Each of these would wait for the reader's end behind an ALTER that waits.
        let writes = 0;
        while (tries < 3) {
          await writer.query('update shard set seq = seq + 1');
          writes += 1;
          await delay(1);
        }
        expect(writes).toBeGreaterThan(10);
      });
      await reader.query('commit');
      await migrating;
    });
    await database.pool.query('select colour from shard');
  });

  it('gives up in the end, naming who is in the way; nothing of it is applied', async () => {
    const directory = release('new', {
      '9001_first': `-- Runs beside: ${newest}\ncreate table colour (name text);`,
      '9002_alter': ALTER,
    });
    await withClient(async (reader) => {
      await reader.query('begin');
      await reader.query('lock table shard in access share mode');
      const { rows } = await reader.query<{ pid: number }>('select pg_backend_pid() as pid');
      await expect(
        migrate(database.target, {
          migrationsDirectory: directory,
          lockWait: { lockTimeoutMs: 50, pauseMs: 10, giveUpMs: 300 },
        }),
      ).rejects.toMatchObject({
        reason: 'STORE_UNAVAILABLE',
        message: expect.stringContaining(`server process ${rows[0]?.pid}`) as string,
      });
    });
    const { rows } = await database.pool.query(`select to_regclass('public.colour') as found`);
    expect(rows).toEqual([{ found: null }]);
    await start(directory);
  });
});

describe('an index that is built concurrently', () => {
  const INDEX = `-- Runs beside: ${newest}
-- Concurrently: tuple_change_by_rpc
create index concurrently tuple_change_by_rpc on tuple_change (rpc);`;
  const files = {
    '9001_before': `-- Runs beside: ${newest}\ncreate table colour (name text);`,
    '9002_index': INDEX,
    '9003_after': `-- Runs beside: ${newest}\nalter table colour add column shade text;`,
  };
  const isValid = async (): Promise<boolean | undefined> => {
    const { rows } = await database.pool.query<{ valid: boolean }>(
      `select indisvalid as valid from pg_index where indexrelid = to_regclass('tuple_change_by_rpc')`,
    );
    return rows[0]?.valid;
  };

  it('does not stop writes, and is in its place among the others', async () => {
    await withClient(async (writer) => {
      await writer.query('begin');
      await writer.query(
        `insert into tuple_change (project_id, tenant_id, seq, stamp, commit_id, rpc, request_id, changes)
         values ('p', 't', 1, 1, gen_random_uuid(), 'r', '', '[]')`,
      );
      const migrating = start(release('new', files));
      // It waits for the transaction, and other writes do not wait for it.
      while ((await isValid()) === undefined) await delay(10);
      await withClient(async (other) => {
        await other.query(`set lock_timeout = '2s'`);
        await other.query(
          `insert into tuple_change (project_id, tenant_id, seq, stamp, commit_id, rpc, request_id, changes)
           values ('p', 't', 2, 1, gen_random_uuid(), 'r', '', '[]')`,
        );
      });
      expect(await isValid()).toBe(false);
      await writer.query('commit');
      const told = await migrating;
      expect(told.filter(({ event }) => event === 'schema_migrated')).toHaveLength(3);
    });
    expect(await isValid()).toBe(true);
    expect(await start(release('again', files))).toEqual([]);
  });

  it('is built anew where an earlier try left an invalid one, and taken over where it was made', async () => {
    await database.pool.query('create index tuple_change_by_rpc on tuple_change (rpc)');
    await database.pool.query(
      `update pg_index set indisvalid = false where indexrelid = 'tuple_change_by_rpc'::regclass`,
    );
    await start(release('new', files));
    expect(await isValid()).toBe(true);
    await database.pool.query(`delete from schema_migration where name >= '9002'`);
    await database.pool.query('alter table colour drop column shade');
    await start(release('again', files));
    expect(await isValid()).toBe(true);
  });

  it('is built once when several processes start at the same time', async () => {
    const directory = release('new', files);
    const told = (await Promise.all([1, 2, 3, 4].map(() => start(directory)))).flat();
    expect(told.filter(({ event }) => event === 'schema_migrated')).toHaveLength(3);
    expect(await isValid()).toBe(true);
  });
});

describe('the files', () => {
  it('say beside which release they may run, all but the first', () => {
    const [first, ...later] = readMigrationFiles(MIGRATIONS_DIRECTORY);
    const isSaid = ({ path }: { readonly path: string }): boolean =>
      /^-- Runs beside: /m.test(readFileSync(path, 'utf8'));
    expect(later.filter((file) => !isSaid(file))).toEqual([]);
    // These admit no older release, each for a reason that it states: a roll-out stops all instances for it.
    const barring = later.filter(({ name, runsBeside }) => name === runsBeside);
    expect(barring.map(({ name }) => name)).toEqual(['0002_typed_wildcards']);
    for (const file of [first, ...later]) {
      if (file === undefined) continue;
      if (file.concurrentIndex === undefined) continue;
      expect(file.concurrentIndex).toMatch(/^[a-z0-9_]+$/);
    }
  });

  it('are refused with a header that cannot be true', () => {
    const directory = release('new', { '9001_later': '-- Runs beside: 9002_none\nselect 1;' });
    expect(() => readMigrationFiles(directory)).toThrow('named by a migration');
    writeFileSync(join(directory, '9001_later.sql'), '-- Runs beside: 9002_other\nselect 1;');
    writeFileSync(join(directory, '9002_other.sql'), 'select 1;');
    expect(() => readMigrationFiles(directory)).toThrow('older');
  });
});
