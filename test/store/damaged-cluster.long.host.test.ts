import { execFileSync } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { isAlive, readPidFile } from '../../src/store/embedded/embedded-postgres-process.ts';
import { startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts';
import { spawnService, startService } from '../support/service.ts';

const PAGE_BYTES = 8192;

let parent: string;
/** A data directory of a service that was stopped, with a table `kept` in it. */
let whole: string;
/** Files of tables, relative to the cluster. */
let files: { readonly catalog: string; readonly project: string };
/** A copy of it, to be damaged. */
let dataDirectory: string;
let count = 0;

beforeAll(async () => {
  parent = mkdtempSync(join(tmpdir(), 'gatehouse-damage-'));
  whole = join(parent, 'whole');
  await (await startService({ dataDir: whole })).stop();
  const server = await startEmbeddedPostgres({ dataDirectory: whole });
  const client = new Client(server.target);
  await client.connect();
  await client.query('create table kept as select 7 as value');
  const { rows } = await client.query<typeof files>(
    `select pg_relation_filepath('pg_class') as catalog, pg_relation_filepath('project') as project`,
  );
  if (rows[0] === undefined) throw new Error('no files');
  files = rows[0];
  await client.end();
  await server.stop();
}, 120_000);

afterAll(() => rmSync(parent, { recursive: true, force: true }));

beforeEach(() => {
  dataDirectory = join(parent, `copy-${(count += 1)}`);
  execFileSync('cp', ['-a', whole, dataDirectory]);
});

afterEach(() => rmSync(dataDirectory, { recursive: true, force: true }));

const inCluster = (name: string): string => join(dataDirectory, 'postgres', name);
const passwordPath = (): string => join(dataDirectory, 'postgres.password');

function overwrite(path: string, byte: number): void {
  const descriptor = openSync(path, 'r+');
  writeSync(descriptor, Buffer.alloc(PAGE_BYTES, byte));
  closeSync(descriptor);
}

/** What a start is refused with; the server, if it started, is stopped. */
async function refusal(): Promise<string> {
  const starting = startEmbeddedPostgres({ dataDirectory });
  const error = await starting.then(
    async (server) => {
      await server.stop();
      return new Error('it started');
    },
    (reason: unknown) => reason as Error,
  );
  expect(error).toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  return error.message;
}

async function keptValue(events: string[] = []): Promise<unknown> {
  const log = (_level: string, event: string) => void events.push(event);
  const server = await startEmbeddedPostgres({ dataDirectory, log });
  const client = new Client(server.target);
  try {
    await client.connect();
    return (await client.query<{ value: number }>('select value from kept')).rows[0]?.value;
  } finally {
    await client.end();
    await server.stop();
  }
}

describe('postgres.password', { timeout: 120_000 }, () => {
  it.each<[what: string, damage: () => void, says: string]>([
    ['empty', () => writeFileSync(passwordPath(), '\n'), 'is empty'],
    ['of something else', () => writeFileSync(passwordPath(), 'other'), 'is not the password of'],
    ['garbage', () => overwrite(passwordPath(), 0xa5), 'holds no password'],
    [
      'unreadable',
      () => {
        rmSync(passwordPath());
        mkdirSync(passwordPath());
      },
      'cannot be read (EISDIR)',
    ],
  ])('%s: says what to do, and that works', async (_what, damage, says) => {
    damage();
    const message = await refusal();
    expect(message).toContain(`${passwordPath()} ${says}`);
    expect(message).toMatch(/put the file of a backup in its place, or remove it/);
    rmSync(passwordPath(), { recursive: true });
    const events: string[] = [];
    expect(await keptValue(events)).toBe(7);
    expect(events).toEqual(['postgres_password_renewed']);
    expect(statSync(passwordPath()).mode & 0o777).toBe(0o600);
    expect(readFileSync(passwordPath(), 'utf8')).not.toBe(
      readFileSync(join(whole, 'postgres.password'), 'utf8'),
    );
    expect(await keptValue()).toBe(7);
  });
});

describe('the cluster', { timeout: 120_000 }, () => {
  it.each<[what: string, damage: () => void, says: RegExp]>([
    [
      'pg_control cut off',
      () => truncateSync(inCluster('global/pg_control'), 100),
      /could not read file "global\/pg_control"/,
    ],
    ['no pg_control', () => rmSync(inCluster('global/pg_control')), /could not open file .*pg_c/],
    ['PG_VERSION empty', () => writeFileSync(inCluster('PG_VERSION'), ''), /names no version/],
    ['PG_VERSION garbage', () => writeFileSync(inCluster('PG_VERSION'), 'x#!'), /names no version/],
    ['no PG_VERSION', () => rmSync(inCluster('PG_VERSION')), /holds no PostgreSQL cluster/],
    ['no log of writes', () => rmSync(inCluster('pg_wal'), { recursive: true }), /pg_wal/],
    [
      'a page of zeros in the catalog',
      () => overwrite(inCluster(files.catalog), 0),
      /cache lookup failed/,
    ],
    [
      'a page of garbage in the catalog',
      () => overwrite(inCluster(files.catalog), 0xa5),
      /invalid page in block 0/,
    ],
    [
      'a map of files of zeros',
      () => overwrite(inCluster('global/pg_filenode.map'), 0),
      /pg_filenode\.map" contains invalid data/,
    ],
  ])('%s: says what is wrong and what to do', async (_what, damage, says) => {
    damage();
    const message = await refusal();
    expect(message).toMatch(says);
    const cluster = join(dataDirectory, 'postgres');
    expect(message).toContain(`put a backup of ${dataDirectory} in its place`);
    expect(message).toContain(`move ${cluster} away`);
    const left = readPidFile(cluster);
    expect(left !== undefined && isAlive(left.pid)).toBe(false);
  });

  it('moved away: the next start begins anew; put back from a backup: it has everything', async () => {
    truncateSync(inCluster('global/pg_control'), 100);
    await refusal();
    renameSync(join(dataDirectory, 'postgres'), join(dataDirectory, 'postgres.damaged'));
    await expect(keptValue()).rejects.toThrow('relation "kept" does not exist');
    rmSync(dataDirectory, { recursive: true });
    execFileSync('cp', ['-a', whole, dataDirectory]);
    expect(await keptValue()).toBe(7);
  });

  it('a damaged table that the service needs: it says so, without a stack', async () => {
    overwrite(inCluster(files.project), 0xa5);
    const child = spawnService(dataDirectory, {});
    if (child.stderr === null) throw new Error('stderr is a pipe');
    const log = await text(child.stderr);
    const line = log.split('\n').find((one) => one.includes('"start_failed"')) ?? '{}';
    expect(JSON.parse(line)).toMatchObject({
      reason: 'STORE_UNAVAILABLE',
      error: expect.stringMatching(/found damaged data: invalid page .*\n.*\n.*backup.*\n.*move/),
    });
    expect(log).not.toContain('    at ');
  });
});
