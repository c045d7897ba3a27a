import { Client } from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { DeploymentWatch } from './deployment-watch.ts';
import { readDeployment } from './deployment.ts';

let database: TestDatabase;
const clients: Client[] = [];
let opened: string[];
const log = (_level: string, event: string): void => void opened.push(event);
beforeEach(async () => {
  opened = [];
  database = await createTestDatabase();
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.end();
  await database.drop();
});

async function connect(): Promise<Client> {
  const client = new Client(database.target);
  await client.connect();
  clients.push(client);
  return client;
}

/** A watch for each instance, all of which know the present history. */
async function watches(count: number): Promise<{ watch: DeploymentWatch; told: () => number }[]> {
  const deployment = await readDeployment(await connect());
  return Array.from({ length: count }, () => {
    let told = 0;
    const watch = new DeploymentWatch(log, deployment);
    watch.watch(() => (told += 1));
    return { watch, told: () => told };
  });
}

async function epochOf(): Promise<number> {
  const { rows } = await database.pool.query<{ epoch: string }>(
    'select epoch::text from deployment',
  );
  return Number(rows[0]?.epoch);
}

test.each([
  ['another server', `update deployment set system_identifier = '1'`],
  ['another timeline', `update deployment set timeline = timeline + 1`],
])(
  'on %s many connections at once open one epoch, and each process is told once',
  async (_, change) => {
    const all = await watches(4);
    const before = await epochOf();
    await database.pool.query(
      `insert into shard (project_id, tenant_id, seq) values ('p', 't', 3)`,
    );
    await database.pool.query(change);
    const checks = all.flatMap(({ watch }) =>
      [0, 1, 2].map(async () => watch.check(await connect())),
    );
    await Promise.all(checks);
    const { rows } = await database.pool.query<{ moved: string }>(
      `select count(*)::text as moved from shard s, deployment d where s.epoch = d.epoch`,
    );
    const after = await epochOf();
    expect(after).toBeGreaterThan(before);
    expect(rows[0]?.moved).toBe('1');
    for (const { watch, told } of all) expect([watch.epoch, told()]).toEqual([after, 1]);
    await all[0]?.watch.check(await connect());
    expect(opened).toEqual(['deployment_epoch_started']);
  },
);

test('a server that still is on an epoch before is refused', async () => {
  const [one] = await watches(1);
  await database.pool.query(`update deployment set epoch = epoch + 10`);
  await one?.watch.check(await connect());
  await database.pool.query(`update deployment set epoch = epoch - 10`);
  await expect(one?.watch.check(await connect())).rejects.toThrow(/answers from epoch/);
  expect(one?.told()).toBe(1);
});

test('a log that has come further since it was noted is of the same history', async () => {
  const [one] = await watches(1);
  await one?.watch.recordPosition(database.pool);
  await database.pool.query(`insert into shard (project_id, tenant_id, seq) values ('p', 't', 3)`);
  await one?.watch.check(await connect());
  expect([one?.told(), opened]).toEqual([0, []]);
});

test.each([
  ['is not there', `update shard set seq = 2`],
  ['is another one', `update tuple_change set stamp = 8`],
])('a commit that %s shows that history was lost', async (_, loss) => {
  const [one] = await watches(1);
  const epoch = await epochOf();
  await database.pool.query(
    `insert into shard (project_id, tenant_id, seq, stamp) values ('p', 't', 3, 7)`,
  );
  await database.pool.query(
    `insert into tuple_change (project_id, tenant_id, seq, stamp, commit_id, rpc, request_id, changes)
     values ('p', 't', 3, 7, gen_random_uuid(), '', '', '[]')`,
  );
  const commit = { projectId: 'p', tenantId: 't', epoch, revision: 3, forkId: '7' };
  one?.watch.committed([{ ...commit, epoch: epoch - 1, revision: 99 }, commit]);
  await one?.watch.check(await connect());
  expect(await epochOf()).toBe(epoch);
  await database.pool.query(loss);
  await one?.watch.check(await connect());
  expect([one?.told(), (await epochOf()) > epoch]).toEqual([1, true]);
});

test('what a read finds to be lost ends the epoch once, and not one that began since', async () => {
  const [one, two] = await watches(2);
  const epoch = await epochOf();
  await Promise.all([one?.watch.lost(database.pool), two?.watch.lost(database.pool)]);
  expect(await epochOf()).toBeGreaterThan(epoch);
  await one?.watch.check(await connect());
  expect([one?.told(), two?.told()]).toEqual([1, 1]);
  expect(opened).toEqual(['deployment_epoch_started']);
});
