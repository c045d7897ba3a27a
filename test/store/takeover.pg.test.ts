import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { migrateNotify } from '../../src/notify/store/notify-database.ts';
import { MIGRATIONS_DIRECTORY, migrate } from '../../src/store/migrations/migrate.ts';
import { readMigrationFiles } from '../../src/store/migrations/migration-files.ts';
import { type TestDatabase, createTestDatabase } from '../support/postgres.ts';
import { dumpSchema } from '../support/schema-dump.ts';

/*
 * Databases from before 0.1.0, whose schema came from files that are one now. What those files made of an
 * empty database is kept in test/store/*-before-0.1.0.txt.
 */

/** Which only versions before 0.1.0 call; each has another of its name, or one in its place, that does more. */
const SUPERSEDED = [
  'gatehouse_delete_objects(project text,',
  'gatehouse_delete_where(project text,',
  'gatehouse_import_chunk(',
  'gatehouse_lock_shards(s_project text[],',
  'gatehouse_write(check_applied boolean,',
  'gatehouse_write(r_instance uuid, check_applied boolean, s_project text[], s_tenant text[], s_offset integer[],',
  // Of the two that know rules the one that is not told which tuples are new.
  /^function gatehouse_write\(r_instance uuid.*s_rules bigint\[\](?!.*i_are_new)/,
];

type Told = { readonly event: string; readonly fields: Readonly<Record<string, unknown>> };

let database: TestDatabase;
let told: Told[];
beforeEach(async () => {
  database = await createTestDatabase({ template: 'none' });
  told = [];
  await start();
});
afterEach(async () => await database.drop());

const log = (_level: string, event: string, fields?: Readonly<Record<string, unknown>>): void =>
  void told.push({ event, fields: fields ?? {} });

async function start(): Promise<void> {
  await migrate(database.target, { log });
}

const [squashed, ...since] = readMigrationFiles(MIGRATIONS_DIRECTORY);
const replaced = squashed?.replaces ?? [];

/** A database on which nothing but the first file was run. */
async function withFirstFile<T>(look: (first: TestDatabase) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-first-'));
  const first = await createTestDatabase({ template: 'none' });
  try {
    const { path = '' } = squashed ?? {};
    copyFileSync(path, join(directory, basename(path)));
    await migrate(first.target, { migrationsDirectory: directory });
    return await look(first);
  } finally {
    rmSync(directory, { recursive: true });
    await first.drop();
  }
}

/** Makes it a database on which the first `count` of the old files were run, and what came after all of them. */
async function becomeOld(count = replaced.length): Promise<void> {
  await database.pool.query('delete from schema_migration');
  await database.pool.query('delete from schema_beside');
  await database.pool.query(
    `insert into schema_migration (name, run_on) select name, now() from unnest($1::text[]) name`,
    [
      [
        ...replaced.slice(0, count),
        ...(count < replaced.length ? [] : since.map(({ name }) => name)),
      ],
    ],
  );
}

/** From here on every statement that changes the schema fails. */
async function forbidDdl(): Promise<void> {
  await database.pool.query(`
    create function refuse_ddl() returns event_trigger language plpgsql as $$
    begin
      raise exception 'DDL: %', tg_tag;
    end $$;
    create event trigger no_ddl on ddl_command_start execute function refuse_ddl()`);
}

function linesOf(dump: string): readonly string[] {
  return dump.split('\n').filter((line) => line !== '' && !line.startsWith('migration '));
}

const isSuperseded = (line: string): boolean =>
  SUPERSEDED.some((one) =>
    typeof one === 'string' ? line.startsWith(`function ${one}`) : one.test(line),
  );

/** Lines of the schema of notifications that later files are about, or have taken away. */
const CHANGED_SINCE = [
  // 0002_open_channels, 0003_claim_once
  'endpoint_channel_check',
  'function claim(',
  // 0004_unread_channels, 0005_reads
  'notification_unread',
  'table read_mark:',
  'column 05 reads ',
  // 0006_claim_by_order
  'delivery_due',
  'function next_due(',
];

describe('the schema', () => {
  it('of the first file is what the old files made, but for functions that no version calls any more', async () => {
    const old = readFileSync('test/store/schema-before-0.1.0.txt', 'utf8');
    expect(linesOf(old).filter(isSuperseded)).toHaveLength(SUPERSEDED.length);
    const made = await withFirstFile(async ({ pool }) => linesOf(await dumpSchema(pool)));
    expect(made).toEqual(linesOf(old).filter((line) => !isSuperseded(line)));
  });

  it('of notifications is what the old files made', async () => {
    await migrateNotify(database.target, () => undefined);
    const old = readFileSync('test/store/schema-notify-before-0.1.0.txt', 'utf8');
    const made = linesOf(await dumpSchema(database.pool, 'notify'));
    const isChanged = (line: string): boolean => CHANGED_SINCE.some((part) => line.includes(part));
    expect(made.filter((line) => !isChanged(line))).toEqual(
      linesOf(old).filter((line) => !isChanged(line)),
    );
  });
});

describe('a database from before 0.1.0', () => {
  it('is taken over without DDL, whoever comes first, and keeps what is in it', async () => {
    const before = linesOf(await dumpSchema(database.pool));
    const { rows } = await database.pool.query('select token_key, epoch from deployment');
    await becomeOld();
    await forbidDdl();
    told.length = 0;
    await Promise.all([start(), start(), start()]);
    expect(told).toEqual([{ event: 'schema_taken_over', fields: { migration: squashed?.name } }]);
    await database.pool.query('drop event trigger no_ddl');
    await database.pool.query('drop function refuse_ddl');
    expect(linesOf(await dumpSchema(database.pool))).toEqual(before);
    expect((await database.pool.query('select token_key, epoch from deployment')).rows).toEqual(
      rows,
    );
    const names = await database.pool.query('select name from schema_migration order by name');
    expect(names.rows).toEqual([squashed, ...since].map((file) => ({ name: file?.name })));
    // As any other from then on.
    told.length = 0;
    await start();
    expect(told).toEqual([]);
  });

  it('is refused with advice when not all of its files were run, and stays as it is', async () => {
    await becomeOld(7);
    await expect(start()).rejects.toMatchObject({
      reason: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(
        /0007_model_versions.*start the version whose newest migration is 0012_unknown_relations/,
      ) as string,
      metadata: { migrations: '0007_model_versions', through: '0012_unknown_relations' },
    });
    const { rows } = await database.pool.query('select name from schema_migration order by name');
    expect(rows.map(({ name }: { name: string }) => name)).toEqual(replaced.slice(0, 7));
  });

  it('lets no version from before start on it any more', async () => {
    // What such a version asks: may I, whose newest is the last of these, run beside what I do not know?
    const { rows } = await database.pool.query(
      'select runs_beside from schema_beside where migration = $1',
      [squashed?.name],
    );
    expect(rows).toEqual([]);
  });

  it('with notifications in it is taken over by their service, too', async () => {
    await migrateNotify(database.target, () => undefined);
    const files = readMigrationFiles(`${MIGRATIONS_DIRECTORY}/notify`);
    // What came after 0.1.0 was run: the takeover alone is looked at.
    const later = files.filter(({ replaces }) => replaces.length === 0).map(({ name }) => name);
    const names = [...files.flatMap(({ replaces }) => replaces), ...later];
    await database.pool.query('delete from notify_schema_migration');
    await database.pool.query(
      `insert into notify_schema_migration (name, run_on) select name, now() from unnest($1::text[]) name`,
      [names],
    );
    await forbidDdl();
    told.length = 0;
    await migrateNotify(database.target, log);
    expect(told).toEqual([
      { event: 'schema_taken_over', fields: { migration: '0001_notifications' } },
    ]);
    await database.pool.query(`delete from notify_schema_migration`);
    await database.pool.query(
      `insert into notify_schema_migration (name, run_on) values ('0001_notify', now())`,
    );
    await expect(migrateNotify(database.target, log)).rejects.toMatchObject({
      metadata: { migrations: '0001_notify', through: '0009_stream_orders' },
    });
  });
});
