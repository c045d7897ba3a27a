import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isAlive } from '../../src/store/embedded/embedded-postgres-process.ts';
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../src/store/embedded/embedded-postgres.ts';
import { isUnavailable } from '../../src/store/postgres/pg-errors.ts';
import { createPool } from '../../src/store/postgres/pool.ts';
import { byLength, inLong, inShort } from '../support/test-length.ts';

const OWNER = fileURLToPath(new URL('../support/embedded-owner.ts', import.meta.url));

let parent: string;
let dataDirectory: string;
const servers: EmbeddedPostgres[] = [];
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'gatehouse-embedded-'));
  dataDirectory = join(parent, 'data');
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
  rmSync(parent, { recursive: true, force: true });
});

type Event = readonly [event: string, fields: Readonly<Record<string, unknown>>];

async function start(events: Event[] = []): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({
    dataDirectory,
    log: (_level, event, fields) => void events.push([event, fields]),
  });
  servers.push(server);
  return server;
}

async function query(server: EmbeddedPostgres, text: string): Promise<Record<string, unknown>[]> {
  const client = new Client(server.target);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

async function until(fact: () => boolean): Promise<void> {
  while (!fact()) await sleep(5);
}

inShort(describe)('startEmbeddedPostgres', { timeout: 120_000 }, () => {
  it('keeps what was written, by a socket that only its owner may enter', async () => {
    const first = await start();
    expect(statSync(join(dataDirectory, 'postgres.password')).mode & 0o777).toBe(0o600);
    expect(statSync(join(dataDirectory, 'socket')).mode & 0o777).toBe(0o700);
    expect(
      await query(
        first,
        `select current_setting('listen_addresses') as listen, current_setting('fsync') as fsync,
           current_setting('synchronous_commit') as commit, current_setting('server_encoding') as encoding,
           (select datcollate from pg_database where datname = current_database()) as collate`,
      ),
    ).toEqual([{ listen: '', fsync: 'on', commit: 'on', encoding: 'UTF8', collate: 'C' }]);
    await query(first, 'create table kept (a int)');
    const { pid } = first;
    await first.stop();
    await first.stop();
    expect(isAlive(pid)).toBe(false);
    const second = await start();
    expect(await query(second, 'select count(*)::int as n from kept')).toEqual([{ n: 0 }]);
  });

  it('passes on what its server reports, but for errors of the data that callers sent', async () => {
    const events: Event[] = [];
    const server = await start(events);
    const raise = (level: string, code: string, text: string): string =>
      `do $$ begin raise ${level} using message = '${text}', errcode = '${code}'; end $$`;
    for (const [level, code, text] of [
      ['exception', '22023', 'bad data'],
      ['exception', '23505', 'already there'],
      ['exception', 'GH003', 'by a rule of ours'],
      ['exception', 'P0003', 'more than one row'],
      ['warning', '01000', 'mind this'],
    ] as const) {
      await query(server, raise(level, code, text)).catch(() => undefined);
    }
    await query(server, 'select secret_of_mine from nowhere').catch(() => undefined);
    const reports = () => events.filter(([event]) => event === 'postgres_reports');
    await until(() => reports().length >= 3);
    // A log that has grown large begins anew, and goes on being read.
    const log = join(dataDirectory, 'postgres.log');
    appendFileSync(log, 'of no meaning\n'.repeat(700_000));
    await until(() => statSync(log).size < 1_000_000);
    expect(statSync(`${log}.1`).size).toBeGreaterThan(8 * 1024 * 1024);
    await query(server, raise('exception', 'XX000', 'later')).catch(() => undefined);
    await until(() => reports().length >= 4);
    await server.stop();
    const pid = expect.any(Number) as number;
    expect(reports().map(([, fields]) => fields)).toEqual([
      { severity: 'ERROR', sqlstate: 'P0003', text: 'more than one row', pid },
      { severity: 'WARNING', sqlstate: '01000', text: 'mind this', pid },
      {
        severity: 'ERROR',
        sqlstate: '42P01',
        text: expect.stringMatching(/^relation "nowhere" does not exist/) as string,
        pid,
      },
      { severity: 'ERROR', sqlstate: 'XX000', text: 'later', pid },
    ]);
    expect(readFileSync(`${log}.1`, 'utf8')).not.toContain('secret_of_mine');
  });

  it('refuses a wrong password and a directory that is in use', async () => {
    const server = await start();
    const client = new Client({ ...server.target, password: 'wrong' });
    await expect(client.connect()).rejects.toThrow('password authentication failed');
    await expect(start()).rejects.toMatchObject({
      reason: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(
        new RegExp(`in use by another process \\(pid ${process.pid}\\)`),
      ),
    });
    const other = spawn(process.execPath, [OWNER, dataDirectory], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let text = '';
    other.stderr.on('data', (chunk) => (text += String(chunk)));
    expect(await once(other, 'exit')).toEqual([1, null]);
    expect(text).toContain('in use by another process');
    expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('starts below directories open to others, with a path too long for a socket, over a broken first start', async () => {
    chmodSync(parent, 0o755);
    dataDirectory = join(parent, 'd'.repeat(120));
    mkdirSync(join(dataDirectory, 'postgres.new-1', 'base'), { recursive: true });
    const server = await start();
    expect(server.target.host.startsWith(join(tmpdir(), 'gatehouse-'))).toBe(true);
    expect(statSync(server.target.host).mode & 0o777).toBe(0o700);
    expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(existsSync(join(dataDirectory, 'postgres.new-1'))).toBe(false);
    await server.stop();
    rmSync(server.target.host, { recursive: true });
  });

  it('explains what to do with the data of another major version', async () => {
    await (await start()).stop();
    writeFileSync(join(dataDirectory, 'postgres', 'PG_VERSION'), '15\n');
    await expect(start()).rejects.toMatchObject({
      reason: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/written by PostgreSQL 15, .*brings 17.*pg_dump .*psql /s),
    });
  });

  it('is not misled by a stale pid file whose number now belongs to another program', async () => {
    const first = await start();
    const pidFile = join(dataDirectory, 'postgres', 'postmaster.pid');
    const [, ...rest] = readFileSync(pidFile, 'utf8').split('\n');
    await first.stop();
    writeFileSync(pidFile, [process.pid, ...rest].join('\n'));
    const second = await start();
    expect(await query(second, 'select 1 as one')).toEqual([{ one: 1 }]);
  });
});

describe('faults', { timeout: 120_000 }, () => {
  it('kill -9 of the server during writes: it comes back, with everything acknowledged and nothing halved', async () => {
    const events: Event[] = [];
    const server = await start(events);
    await query(server, 'create table acknowledged (batch int, part int)');
    const pool = createPool(server.target, { max: 4, applicationName: 'test' });
    const acknowledged: number[] = [];
    const unforeseen: unknown[] = [];
    let batch = 0;
    let writing = true;
    const write = async (): Promise<void> => {
      while (writing) {
        const mine = batch++;
        try {
          await pool.query(
            `insert into acknowledged select ${mine}, part from generate_series(1, 10) part`,
          );
          acknowledged.push(mine);
        } catch (error) {
          if (!isUnavailable(error)) unforeseen.push(error);
          await sleep(10);
        }
      }
    };
    const writers = [write(), write(), write(), write()];
    for (let kill = 1; kill <= byLength(1, 2); kill++) {
      const before = acknowledged.length;
      await until(() => acknowledged.length > before + 50);
      process.kill(server.pid, 'SIGKILL');
      await until(() => events.filter(([event]) => event === 'postgres_restarted').length === kill);
    }
    const before = acknowledged.length;
    await until(() => acknowledged.length > before + 50);
    writing = false;
    await Promise.all(writers);
    await pool.end();
    expect(unforeseen).toEqual([]);
    await expectWhole(server, acknowledged);
  });

  it('kill -9 of its owner during writes: the next start finds the orphan, ends it, and has everything', async () => {
    const owner = spawn(process.execPath, [OWNER, dataDirectory], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const { orphan, acknowledged } = await killAfter(owner, 100);
    expect(isAlive(orphan)).toBe(true);
    const events: Event[] = [];
    const server = await start(events);
    expect(events).toEqual([['postgres_orphan_stopped', { pid: orphan }]]);
    expect(isAlive(orphan)).toBe(false);
    await expectWhole(server, acknowledged);
  });

  inLong(it)('kill -9 of both: the next start recovers', async () => {
    const owner = spawn(process.execPath, [OWNER, dataDirectory], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const { orphan, acknowledged } = await killAfter(owner, 100);
    process.kill(orphan, 'SIGKILL');
    await expectWhole(await start(), acknowledged);
  });
});

/** Reads what the owner acknowledges, and kills it after `count` of these. */
async function killAfter(owner: ChildProcess, count: number) {
  const acknowledged: number[] = [];
  let orphan = 0;
  if (owner.stdout === null) throw new Error('the owner prints');
  for await (const line of createInterface({ input: owner.stdout })) {
    if (line.startsWith('ready ')) orphan = Number(line.slice(6));
    else acknowledged.push(Number(line));
    if (acknowledged.length === count) owner.kill('SIGKILL');
  }
  return { orphan, acknowledged };
}

async function expectWhole(
  server: EmbeddedPostgres,
  acknowledged: readonly number[],
): Promise<void> {
  const rows = await query(
    server,
    'select batch, count(*)::int as parts from acknowledged group by batch',
  );
  expect(rows.filter((row) => row['parts'] !== 10)).toEqual([]);
  const found = new Set(rows.map((row) => row['batch']));
  expect(acknowledged.filter((batch) => !found.has(batch))).toEqual([]);
}
