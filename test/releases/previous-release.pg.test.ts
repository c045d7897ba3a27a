import { copyFileSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Client, type QueryConfig, type QueryResult } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readChanges } from '../../src/store/feed/changes.ts';
import { MIGRATIONS_DIRECTORY, migrate } from '../../src/store/migrations/migrate.ts';
import { readMigrationFiles } from '../../src/store/migrations/migration-files.ts';
import { type TestDatabase, createTestDatabase } from '../support/postgres.ts';
import type { RecordedStatement } from './recorded-statement.ts';

/*
 * While instances are replaced one by one, those of the release before run beside the new schema. What each
 * release sends is recorded (record-release.ts) under the name of the newest migration that it knows.
 */
const RECORDED = globSync('test/releases/*.json').toSorted();
const files = readMigrationFiles(MIGRATIONS_DIRECTORY);

/** Releases that every newer migration admits beside it. */
const admitted = RECORDED.filter((path) => {
  const release = basename(path, '.json');
  return files.every(({ name, runsBeside }) => name <= release || runsBeside <= release);
});

it('knows what the oldest release sends that the newest migration admits', () => {
  const oldest = files.at(-1)?.runsBeside ?? '';
  expect(admitted.map((path) => basename(path, '.json'))).toContain(oldest);
});

describe.each(admitted)('what the release of %s sends', (path) => {
  const statements = JSON.parse(readFileSync(path, 'utf8')) as readonly RecordedStatement[];
  const connections = new Map<string, Client>();
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
    for (const name of new Set(statements.map(({ connection }) => connection))) {
      const client = new Client(database.target);
      await client.connect();
      connections.set(name, client);
    }
  });
  afterAll(async () => {
    for (const client of connections.values()) await client.end();
    await database.drop();
  });

  it('finds what it found then: rows, columns and their types', async () => {
    expect(new Set(statements.map(({ text }) => text)).size).toBeGreaterThanOrEqual(60);
    for (const [at, statement] of statements.entries()) {
      const client = connections.get(statement.connection);
      if (client === undefined) throw new Error('a statement without a connection');
      if (statement.isSnapshot === true) continue; // below
      const config: QueryConfig = { text: statement.text, values: statement.values.map(fromJson) };
      const answer = await client.query(config).catch((error: unknown) => {
        throw new Error(`statement ${at} fails: ${statement.text}`, { cause: error });
      });
      const last = Array.isArray(answer) ? (answer as QueryResult[]).at(-1) : answer;
      const fields = last?.fields.map(({ name, dataTypeID }) => [name, dataTypeID]);
      expect([statement.text, fields]).toEqual([statement.text, statement.fields]);
      if (isOfTheMoment(statement.text)) continue;
      expect([statement.text, last?.rowCount]).toEqual([statement.text, statement.rows]);
    }
  });

  it('can still be copied out', async () => {
    const snapshots = statements.filter(({ isSnapshot }) => isSnapshot === true);
    expect(snapshots.length).toBeGreaterThan(0);
    for (const { text } of snapshots) {
      const [, copied = ''] = /copy \((select [\s\S]+?)\) to stdout/.exec(text) ?? [];
      expect(copied).toContain('relation_tuple');
      await database.pool.query(copied);
    }
  });
});

const barred = RECORDED.filter((path) => !admitted.includes(path));

it('bars the release that reads a typed wildcard as every user', () => {
  expect(barred.map((path) => basename(path, '.json'))).toContain('0001_authorization');
});

describe.each(barred)('a release that is barred, %s', (path) => {
  const statements = JSON.parse(readFileSync(path, 'utf8')) as readonly RecordedStatement[];
  /** Heads, changes, snapshots, lists and watches: whatever an index or an answer is made of. */
  const reads = statements.filter(({ text }) => text.includes('deployment_epoch()'));
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(async () => await database.drop());

  it('does not start on this schema', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-release-'));
    try {
      for (const file of files) {
        if (file.name > basename(path, '.json')) continue;
        copyFileSync(file.path, join(directory, basename(file.path)));
      }
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

  it('reads no tuples where it runs already, on connections and statements that it has', async () => {
    const texts = new Set(reads.map(({ text }) => text));
    expect(texts.size).toBeGreaterThan(5);
    for (const statement of reads) {
      const config: QueryConfig = { text: statement.text, values: statement.values.map(fromJson) };
      const query = statement.isSnapshot === true ? statement.text : config;
      await expect(database.pool.query(query), statement.text).rejects.toMatchObject({
        code: '42883',
      });
      await database.pool.query('rollback');
    }
  });

  it('has no other statement that an index is made of', () => {
    const others = statements.filter(
      ({ text }) =>
        !reads.some((read) => read.text === text) &&
        /\b(?:subject_namespace|changes)\b/.test(text) &&
        /(?:from|join) (?:relation_tuple|tuple_change)/.test(text),
    );
    const names = new Set(others.map(({ text }) => NOT_OF_AN_INDEX.find((one) => one.test(text))));
    expect(names).not.toContain(undefined);
    expect(names.size).toBe(NOT_OF_AN_INDEX.length);
  });

  it('is stopped also where its statement was prepared before the file was run', async () => {
    const old = await createTestDatabase({ template: 'none' });
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-release-'));
    const [first] = files;
    copyFileSync(first?.path ?? '', join(directory, basename(first?.path ?? '')));
    await migrate(old.target, { migrationsDirectory: directory });
    const client = new Client(old.target);
    await client.connect();
    try {
      const read = reads.find((one) => one.text.includes('unnest($1'));
      const values = (read?.values ?? []).map(fromJson);
      const prepared = { name: 'read', text: read?.text ?? '', values };
      for (let i = 0; i < 8; i++) await client.query(prepared);
      // Nor does this release read there before the file was run: what it would write, nobody could misread.
      const shard = { projectId: 'p', tenantId: 't' };
      await expect(readChanges(old.pool, shard, 0)).rejects.toMatchObject({ code: '42883' });
      await migrate(old.target);
      expect((await readChanges(old.pool, shard, 0)).changes).toEqual([]);
      await expect(client.query(prepared)).rejects.toMatchObject({ code: '42883' });
    } finally {
      await client.end();
      rmSync(directory, { recursive: true });
      await old.drop();
    }
  });
});

/** Of these nothing is decided: grants of a user, members of a group, what a delete or a model would touch. */
const NOT_OF_AN_INDEX = [
  /^with recursive grants/,
  /^select distinct t\.tenant_id/,
  /^select t\.subject_namespace, t\.subject_id from relation_tuple t/,
  /^select tenant_id, namespace, object_id/,
  /^declare doomed/,
  /^select\s+\$4::smallint = 1 or exists/,
];

/** What sees server processes and the time of day finds other rows each time. */
function isOfTheMoment(text: string): boolean {
  return /pg_stat_activity|pg_locks|from instance|now\(\)|clock_timestamp\(\)/.test(text);
}

function fromJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromJson);
  if (typeof value !== 'object' || value === null) return value;
  if ('hex' in value) return Buffer.from(String(value.hex), 'hex');
  if ('date' in value) return new Date(String(value.date));
  return value;
}
