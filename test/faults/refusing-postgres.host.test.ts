import { execFileSync, spawnSync } from 'node:child_process';
import {
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { freePorts } from '../rollout/balancer.ts';
import { type TestCluster, startCluster } from '../support/postgres-cluster.ts';
import { call, type Service, startService } from '../support/service.ts';
import { inLong, inShort } from '../support/test-length.ts';

/* A PostgreSQL that answers and refuses: callers and operators are told what it refuses, and nothing is lost. */

const SETTINGS = { GATEWAY_WORKERS: '1', GATEWAY_PG_POOL_SIZE: '4' };
const PASSWORD = 'app-password';
const READY = '200 {"status":"ready","degraded":[]}';

let cluster: TestCluster;
let port = 0;
let databases = 0;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  [port = 0] = await freePorts(1);
  cluster = await startCluster({
    listen_addresses: '127.0.0.1',
    port: String(port),
    max_wal_size: '64MB',
    min_wal_size: '32MB',
  });
}, 120_000);
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
}, 120_000);
afterAll(async () => {
  await cluster.remove();
  if (CAN_MOUNT) execFileSync('umount', [FOLDER]);
  rmSync(FOLDER, { recursive: true });
}, 120_000);

async function asSuperuser(database: string, ...statements: readonly string[]): Promise<void> {
  const client = new Client({ ...cluster.target, port, database });
  client.on('error', () => undefined);
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

type Place = { readonly service: Service; readonly role: string };

const sessionsOf = (role: string, name = '%'): string =>
  `select pg_terminate_backend(pid) from pg_stat_activity
   where usename = '${role}' and application_name like '${name}'`;

/**
 * An instance on a database of its own, as a role that owns it and nothing else. Writes and reads work. It ends with
 * the test, if it is of one.
 */
async function place(isOfTest = true): Promise<Place> {
  const role = `refused_${++databases}`;
  await asSuperuser(
    'postgres',
    `create role ${role} login password '${PASSWORD}' nosuperuser`,
    `create database ${role} owner ${role}`,
  );
  const url = `postgres://${role}:${PASSWORD}@127.0.0.1:${port}/${role}`;
  const service = await startService({ env: { ...SETTINGS, DATABASE_URL: url } });
  if (isOfTest) ends.push(() => service.stop());
  expect((await write(service, 'anne')).status).toBe(200);
  expect(await check(service, 'anne')).toEqual({ allowed: true });
  expect(await readyz(service)).toBe(READY);
  return { service, role };
}

const QUESTION = { namespace: 'resource', object_id: 'plan', relation: 'viewer' };

async function write(service: Service, userId: string, tenantId = '') {
  const updates = [{ op: 'OP_INSERT', tuple: { ...QUESTION, subject: { user_id: userId } } }];
  const body = { tenant_id: tenantId, updates };
  return await call(service, 'AuthzService/WriteRelationTuples', body);
}

async function check(service: Service, userId: string): Promise<Record<string, unknown>> {
  const body = { ...QUESTION, subject_user_id: userId };
  return (await call(service, 'AuthzService/Check', body)).body;
}

async function readyz(service: Service): Promise<string> {
  const response = await fetch(`${service.metricsUrl}/readyz`);
  return `${response.status} ${await response.text()}`;
}

/** 200, or status, code and reason. */
function said({ status, body }: { status: number; body: Record<string, unknown> }): string {
  if (status === 200) return '200';
  const [detail] = (body['details'] ?? []) as { debug?: { reason?: string } }[];
  return `${status} ${String(body['code'])} ${detail?.debug?.reason ?? ''}`;
}

async function refusals(service: Service, reason: string): Promise<number> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  const line = new RegExp(`gatehouse_postgres_refusals_total\\{reason="${reason}"\\} (\\d+)`);
  return Number(line.exec(text)?.[1] ?? -1);
}

type Refusing = {
  readonly name: string;
  readonly reason: string;
  readonly says: string;
  readonly begin: (role: string) => readonly string[];
  readonly end: (role: string) => readonly string[];
};

const REFUSING: readonly Refusing[] = [
  {
    name: 'only reads',
    reason: 'read_only',
    says: '503 unavailable STORE_READ_ONLY',
    begin: () => ['alter system set default_transaction_read_only = on', 'select pg_reload_conf()'],
    end: () => [
      'set transaction read write',
      'alter system reset default_transaction_read_only',
      'select pg_reload_conf()',
    ],
  },
  {
    name: 'took rights away',
    reason: 'rights_missing',
    says: '503 unavailable STORE_RIGHTS_MISSING',
    begin: (role) => [`revoke insert, update on all tables in schema public from ${role}`],
    end: (role) => [`grant insert, update on all tables in schema public to ${role}`],
  },
];

inShort(describe)('one instance, to which in turn PostgreSQL', () => {
  let here: Place;
  beforeAll(async () => {
    here = await place(false);
  }, 120_000);
  afterAll(async () => void (await here.service.stop()), 120_000);

  test.each(REFUSING)(
    '$name: a write is told so, readiness and the metric as well, and reads go on until it is over',
    async ({ reason, says, begin, end }) => {
      const { service, role } = here;
      await asSuperuser(role, ...begin(role));
      try {
        await expect.poll(async () => said(await write(service, 'bob'))).toBe(says);
        // Every way to write.
        const group = { display_name: 'Group', acting_user_id: 'anne' };
        expect(said(await call(service, 'GroupService/CreateGroup', group))).toBe(says);
        await expect
          .poll(() => readyz(service))
          .toBe(`200 {"status":"ready","degraded":["postgres"],"postgres":"${reason}"}`);
        expect(await refusals(service, reason)).toBeGreaterThan(0);
        expect(await check(service, 'anne')).toEqual({ allowed: true });
        expect(service.log.filter(({ msg }) => msg === 'postgres_refuses')).not.toEqual([]);
      } finally {
        await asSuperuser(role, ...end(role));
      }
      // That readiness no more says so is waited for once, by the last one: it takes ten seconds.
      await expect.poll(async () => said(await write(service, 'bob'))).toBe('200');
      expect(await check(service, 'bob')).toEqual({ allowed: true });
    },
    120_000,
  );

  test('refuses the login: writes and readiness say so, and all comes back', async () => {
    const { service, role } = here;
    await asSuperuser(role, `alter role ${role} nologin`, sessionsOf(role));
    const says = '503 unavailable STORE_LOGIN_REFUSED';
    await expect.poll(async () => said(await write(service, 'bob', 'b'))).toBe(says);
    await expect
      .poll(() => readyz(service))
      .toBe('503 {"status":"unavailable","reason":"postgres","postgres":"login_refused"}');
    expect(await refusals(service, 'login_refused')).toBeGreaterThan(0);
    await asSuperuser(role, `alter role ${role} login`);
    await expect.poll(async () => said(await write(service, 'bob', 'b'))).toBe('200');
    await expect.poll(() => readyz(service)).toBe(READY);
  }, 120_000);
});

inLong(test)(
  'an instance that serves while others hold all connections stays ready',
  async () => {
    const { service, role } = await place();
    // Its registration cannot be renewed any more; what the read index has stands.
    await asSuperuser(
      role,
      `alter role ${role} connection limit 1`,
      sessionsOf(role, '%-instance'),
    );
    const refused = () => service.log.filter(({ msg }) => msg === 'instance_lease_not_renewed');
    await expect.poll(() => refused().length).toBeGreaterThan(25);
    // By now its claim to be alone has ended.
    expect(await readyz(service)).toBe('200 {"status":"ready","degraded":["postgres"]}');
    expect(await check(service, 'anne')).toEqual({ allowed: true });
    await asSuperuser(role, `alter role ${role} connection limit -1`);
    await expect.poll(() => readyz(service)).toBe(READY);
  },
  120_000,
);

const DISK = '160m';
const FOLDER = mkdtempSync(join(tmpdir(), 'gatehouse-full-'));
const CAN_MOUNT =
  process.platform === 'linux' &&
  spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK}`, 'none', FOLDER]).status === 0;

/** Takes all room that is left on the small disk; gives what makes room again. */
function fill(): () => void {
  const path = join(FOLDER, 'filler');
  spawnSync('dd', ['if=/dev/zero', `of=${path}`, 'bs=4k'], { stdio: 'ignore' });
  return () => rmSync(path, { force: true });
}

const WRITERS = 16;

/** Writes of one tuple each, as fast as they are answered, until `stop`; what was acknowledged, and what else was said. */
class Writers {
  readonly acknowledged: string[] = [];
  readonly others = new Map<string, number>();
  #isOver = false;
  readonly #running: Promise<unknown>;

  constructor(service: Service) {
    const run = async (writer: number): Promise<void> => {
      for (let n = 0; !this.#isOver; n++) {
        // As large as may be, so that the disk fills.
        const userId = `w${writer}-${n}-${'x'.repeat(200)}`;
        const answer = said(await write(service, userId, `tenant-${writer % 4}`));
        if (answer === '200') this.acknowledged.push(userId);
        else this.others.set(answer, (this.others.get(answer) ?? 0) + 1);
      }
    };
    this.#running = Promise.all(Array.from({ length: WRITERS }, (_, writer) => run(writer)));
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }
}

async function storedUsers(role: string): Promise<Set<string>> {
  const client = new Client({ ...cluster.target, port, database: role });
  await client.connect();
  const { rows } = await client.query<{ id: string }>(
    'select subject_id as id from relation_tuple',
  );
  await client.end();
  return new Set(rows.map(({ id }) => id));
}

const lostOf = (acknowledged: readonly string[], stored: ReadonlySet<string>): readonly string[] =>
  acknowledged.filter((id) => !stored.has(id));

inLong(describe).skipIf(!CAN_MOUNT)('the disk is full (tmpfs)', () => {
  test('of the tuples: writes are told so at once, and go on when there is room', async () => {
    const { service, role } = await place();
    const tables = join(FOLDER, 'tables');
    mkdirSync(tables);
    const { uid, gid } = statSync(cluster.target.host);
    chownSync(tables, uid, gid);
    await asSuperuser(
      role,
      `create tablespace small location '${tables}'`,
      'alter table relation_tuple set tablespace small',
      'alter index relation_tuple_pkey set tablespace small',
    );
    const full = '503 unavailable STORE_FULL';
    const writers = new Writers(service);
    await expect.poll(() => writers.acknowledged.length).toBeGreaterThan(2_000);
    const makeRoom = fill();
    await expect.poll(() => writers.others.get(full) ?? 0).toBeGreaterThan(100);
    await expect
      .poll(() => readyz(service))
      .toBe('200 {"status":"ready","degraded":["postgres"],"postgres":"disk_full"}');
    expect(await refusals(service, 'disk_full')).toBeGreaterThan(0);
    expect(await check(service, 'anne')).toEqual({ allowed: true });
    makeRoom();
    await expect.poll(async () => said(await write(service, 'bob'))).toBe('200');
    await writers.stop();
    expect([...writers.others.keys()]).toEqual([full]);
    expect(lostOf(writers.acknowledged, await storedUsers(role))).toEqual([]);
    await service.stop();
    await asSuperuser('postgres', `drop database ${role} with (force)`, 'drop tablespace small');
  }, 180_000);

  test('of the log: PostgreSQL ends, and what was acknowledged is there when it is back', async () => {
    const { service, role } = await place();
    await cluster.stop();
    const data = join(cluster.target.host, '..', 'postgres');
    const log = join(FOLDER, 'log');
    moveLog(join(data, 'pg_wal'), log);
    await cluster.start();
    await expect.poll(async () => said(await write(service, 'carl'))).toBe('200');
    const writers = new Writers(service);
    await expect.poll(() => writers.acknowledged.length).toBeGreaterThan(2_000);
    const makeRoom = fill();
    // Beside the writes: what is left of the present segment would take long.
    const filled = fillLog(role);
    await expect.poll(() => writers.others.size, { timeout: 120_000 }).toBeGreaterThan(0);
    await filled;
    await expect.poll(() => readyz(service)).toMatch(/^503 /);
    const before = writers.acknowledged.length;
    makeRoom();
    await cluster.stop();
    await cluster.start();
    await expect
      .poll(() => writers.acknowledged.length, { timeout: 120_000 })
      .toBeGreaterThan(before + 100);
    await writers.stop();
    for (const answer of writers.others.keys()) expect(answer).toMatch(/^50[34] (?:unav|dead)/);
    expect(lostOf(writers.acknowledged, await storedUsers(role))).toEqual([]);
    expect(await check(service, 'carl')).toEqual({ allowed: true });
  }, 240_000);
});

/** Puts the newest parts of a stopped server's log onto the small disk. */
function moveLog(from: string, to: string): void {
  const { uid, gid } = statSync(from);
  cpSync(from, to, { recursive: true });
  execFileSync('chown', ['-R', `${uid}:${gid}`, to]);
  execFileSync('chmod', ['0700', to]);
  renameSync(from, `${from}.before`);
  symlinkSync(to, from);
}

async function fillLog(database: string): Promise<void> {
  const client = new Client({ ...cluster.target, port, database });
  client.on('error', () => undefined);
  try {
    await client.connect();
    for (let n = 0; n < 200; n++) {
      await client.query(`select pg_logical_emit_message(false, 'x', repeat('x', 1000000))`);
    }
  } catch {
    // It ended: that is what was to come.
  }
}
