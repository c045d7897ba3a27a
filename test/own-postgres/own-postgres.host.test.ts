import { chownSync, chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createPool } from '../../src/store/postgres/pool.ts';
import { examineTarget } from '../../src/store/postgres/pooler.ts';
import { decided, written } from '../failover/support.ts';
import { startNotify } from '../notify/support/notify-process.ts';
import { freePorts } from '../rollout/balancer.ts';
import { type TestCluster, startCluster } from '../support/postgres-cluster.ts';
import { type Service, startService } from '../support/service.ts';
import { byLength, inLong, inShort } from '../support/test-length.ts';
import { hasOpenssl, makeAuthority, makeCertificate } from './certificates.ts';
import { type PgBouncer, pgbouncerPath, startPgBouncer } from './pgbouncer.ts';

/* A PostgreSQL as operators have it: over TCP, as a role without rights beyond its own database. */

const ROLE = { user: 'gatehouse_app', password: 'app-password', database: 'app' };
/** Of each instance here: 4 in the pool, 4 of the worker, 5 of its own. */
const SETTINGS = { GATEWAY_WORKERS: '1', GATEWAY_PG_POOL_SIZE: '4' };

let cluster: TestCluster;
let port = 0;
let folder = '';
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-own-postgres-'));
  [port = 0] = await freePorts(1);
  cluster = await startCluster({ listen_addresses: '127.0.0.1', port: String(port) });
  await asSuperuser(
    `create role ${ROLE.user} login password '${ROLE.password}'
       nosuperuser nocreatedb nocreaterole noreplication nobypassrls`,
    `create database ${ROLE.database} owner ${ROLE.user}`,
    `create database notify owner ${ROLE.user}`,
  );
}, 120_000);

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
}, 120_000);

afterAll(async () => {
  await cluster.remove();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

async function asSuperuser(...statements: readonly string[]): Promise<Record<string, unknown>[]> {
  const client = new Client({ ...cluster.target, port });
  await client.connect();
  let rows: Record<string, unknown>[] = [];
  for (const statement of statements) ({ rows } = await client.query(statement));
  await client.end();
  return rows;
}

const urlOf = (at: number, options = '', database = ROLE.database): string =>
  `postgres://${ROLE.user}:${ROLE.password}@localhost:${at}/${database}${options}`;

async function start(url: string): Promise<Service> {
  const service = await startService({ env: { ...SETTINGS, DATABASE_URL: url } });
  ends.push(() => service.stop());
  return service;
}

const startedNotify = (url: string) => startNotify({ DATABASE_URL: url });

inShort(test)(
  'a role that owns its database and nothing else is enough',
  async () => {
    const [role] = await asSuperuser(`select rolsuper, rolcreatedb, rolcreaterole, rolreplication,
    rolbypassrls from pg_roles where rolname = '${ROLE.user}'`);
    expect(Object.values(role ?? {})).toEqual([false, false, false, false, false]);
    const first = await start(urlOf(port));
    await written(first, 'a');
    expect(await decided(first, 'a')).toBe(true);
    const notify = await startedNotify(urlOf(port, '', 'notify'));
    expect(notify.pid).toBeGreaterThan(0);
  },
  120_000,
);

inLong(test)(
  'it is enough for two instances, which have locks and LISTEN in use',
  async () => {
    const first = await start(urlOf(port));
    const second = await start(urlOf(port));
    await written(first, 'a');
    expect(await decided(second, 'a')).toBe(true);
    await written(second, 'b');
    expect(await decided(first, 'b')).toBe(true);
  },
  120_000,
);

describe.skipIf(!hasOpenssl)('sslmode=verify-full (openssl)', () => {
  /** Gives the server the certificate of a host name. */
  async function serveAs(host: string): Promise<string> {
    const authority = makeAuthority(folder, `authority of ${host}`);
    const { certificate, key } = makeCertificate(folder, authority, host);
    const { uid, gid } = statSync(cluster.target.host);
    chmodSync(folder, 0o755);
    for (const file of [certificate, key]) chownSync(file, uid, gid);
    chmodSync(key, 0o600);
    await asSuperuser(
      `alter system set ssl_cert_file = '${certificate}'`,
      `alter system set ssl_key_file = '${key}'`,
      'alter system set ssl = on',
      'select pg_reload_conf()',
    );
    return authority.certificate;
  }
  const verifying = (certificate: string): string =>
    `?sslmode=verify-full&sslrootcert=${encodeURIComponent(certificate)}`;

  inShort(test)(
    'every connection is encrypted, to the server that was meant',
    async () => {
      const authority = await serveAs('localhost');
      const service = await start(urlOf(port, verifying(authority)));
      await written(service, 'c');
      expect(await decided(service, 'c')).toBe(true);
      const rows = await asSuperuser(
        `select a.application_name as name, s.ssl from pg_stat_activity a join pg_stat_ssl s using (pid)
       where a.usename = '${ROLE.user}'`,
      );
      const names = new Set(rows.map(({ name }) => String(name)));
      for (const name of ['gatehouse-gateway', 'gatehouse-instance', 'gatehouse-listen']) {
        expect(names).toContain(name);
      }
      expect(rows.filter(({ ssl }) => ssl !== true)).toEqual([]);
    },
    120_000,
  );

  test('a server with the certificate of another host, or of another authority, is refused', async () => {
    const authority = await serveAs('other.example');
    const url = urlOf(port, verifying(authority));
    // The first connection of a start is this one.
    const examined = (): Promise<unknown> => examineTarget({ connectionString: url });
    await expect(byLength(examined, () => start(url))()).rejects.toThrow(/altnames/);
    await serveAs('localhost');
    await expect(examined()).rejects.toThrow(/certificate/);
    await asSuperuser('alter system reset ssl', 'select pg_reload_conf()');
  }, 120_000);
});

describe.skipIf(pgbouncerPath === undefined)('pgbouncer (Debian package pgbouncer)', () => {
  async function bouncer(
    mode: 'session' | 'transaction' | 'statement',
    database = ROLE.database,
    poolSize = 60,
    settings: readonly string[] = [],
  ): Promise<PgBouncer> {
    const server = { host: '127.0.0.1', port };
    const started = await startPgBouncer({ ...ROLE, database, mode, server, poolSize, settings });
    ends.push(() => started.stop());
    return started;
  }

  inLong(test)(
    'session mode works, beside another instance, with nothing else to set',
    async () => {
      const { port: at } = await bouncer('session');
      const first = await start(urlOf(at));
      const second = await start(urlOf(at));
      await written(first, 'd');
      expect(await decided(second, 'd')).toBe(true);
      await written(first, 'd', 'OP_DELETE');
      expect(await decided(second, 'd')).toBe(false);
    },
    120_000,
  );

  inShort(test)('connections through it have the time-outs that others have', async () => {
    const { port: at } = await bouncer('session');
    const target = await examineTarget({ connectionString: urlOf(at) });
    expect(target).toMatchObject({ isPooled: true });
    const pool = createPool(target, { max: 2, applicationName: 'test', lockTimeoutMs: 1_234 });
    ends.push(() => pool.end());
    const { rows } = await pool.query<Record<string, string>>(
      `select current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock,
         current_setting('idle_in_transaction_session_timeout') as idle`,
    );
    expect(rows).toEqual([{ statement: '30s', lock: '1234ms', idle: '10s' }]);
  });

  inShort(test)('without it a target is what it was', async () => {
    const target = { connectionString: urlOf(port) };
    expect(await examineTarget(target)).toBe(target);
  });

  const modes: [mode: 'transaction' | 'statement', settings: string[]][] = [
    ['transaction', []],
    ['transaction', ['server_round_robin = 1', 'min_pool_size = 2']],
    ['statement', []],
  ];
  test.each(byLength(modes.slice(0, 1), modes.slice(1)))(
    '%s mode (%j) ends the start with what to set',
    async (mode, settings) => {
      const { port: at } = await bouncer(mode, ROLE.database, 60, settings);
      await expect(start(urlOf(at))).rejects.toThrow(/set pool_mode = session in PgBouncer/);
    },
    60_000,
  );

  inLong(test)(
    'so it does for notifications, which session mode serves',
    async () => {
      const session = await bouncer('session', 'notify');
      expect((await startedNotify(urlOf(session.port, '', 'notify'))).pid).toBeGreaterThan(0);
      const transaction = await bouncer('transaction', 'notify');
      await expect(startedNotify(urlOf(transaction.port, '', 'notify'))).rejects.toThrow(
        /set pool_mode = session in PgBouncer/,
      );
    },
    120_000,
  );

  inLong(test)(
    'a pool of one connection is told from a server that hangs',
    async () => {
      const { port: at } = await bouncer('session', ROLE.database, 1);
      await expect(start(urlOf(at))).rejects.toThrow(/raise default_pool_size of PgBouncer/);
    },
    120_000,
  );
});
