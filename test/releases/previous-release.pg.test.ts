import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { Client, type QueryConfig, type QueryResult } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MIGRATIONS_DIRECTORY } from '../../src/store/migrate.ts';
import { readMigrationFiles } from '../../src/store/migration-files.ts';
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
