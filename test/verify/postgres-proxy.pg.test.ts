import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { ServerTarget } from '../../src/store/postgres/pool.ts';
import { PostgresProxy } from '../../verify/cluster/postgres-proxy.ts';
import { createRandom } from '../../verify/workload/random.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';

let database: TestDatabase;
let proxy: PostgresProxy;

beforeAll(async () => {
  database = await createTestDatabase();
  await database.pool.query('create table kept (id int primary key)');
  proxy = await PostgresProxy.start(database.target as ServerTarget, createRandom('proxy'));
});
afterAll(async () => {
  await proxy.close();
  await database.drop();
});

async function connect(): Promise<Client> {
  const client = new Client({ connectionString: proxy.databaseUrl });
  client.on('error', () => undefined);
  await client.connect();
  onTestFinished(async () => {
    await client.end().catch(() => undefined);
  });
  return client;
}

/** The word makes it a commit of ours. */
async function write(id: number): Promise<boolean> {
  const client = await connect();
  const text = 'insert into kept (id) values ($1) -- gatehouse_write';
  return await client.query(text, [id]).then(
    () => true,
    () => false,
  );
}

async function kept(): Promise<readonly number[]> {
  const { rows } = await database.pool.query<{ id: number }>('select id from kept order by id');
  return rows.map(({ id }) => id);
}

describe('the way to PostgreSQL', () => {
  test('by itself it changes nothing', async () => {
    expect(await write(1)).toBe(true);
    const client = await connect();
    const long = 'x'.repeat(300_000);
    const { rows } = await client.query('select $1::text as t, count(*) from kept', [long]);
    expect(rows).toEqual([{ t: long, count: '1' }]);
  });

  test('an answer is lost, and what was asked is done', async () => {
    proxy.cutCommits('answer', 1);
    expect(await write(2)).toBe(false);
    await expect.poll(kept).toEqual([1, 2]);
    expect(await write(3)).toBe(true);
  });

  test('commits are cut at any byte: some are done, some are not, and what was answered is', async () => {
    const answered: number[] = [];
    const count = 30;
    for (let id = 100; id < 100 + count; id++) {
      proxy.cutCommits('any-byte', 1);
      if (await write(id)) answered.push(id);
    }
    expect(proxy.counts.cuts).toBeGreaterThanOrEqual(count);
    proxy.cutCommits('any-byte', 0);
    const done = (await kept()).filter((id) => id >= 100);
    expect(done).toEqual(expect.arrayContaining(answered));
    expect(done.length).toBeGreaterThan(answered.length);
    expect(done.length).toBeLessThan(count);
  });

  test('notifications are lost, answers around them are not', async () => {
    const client = await connect();
    const heard: (string | undefined)[] = [];
    client.on('notification', ({ payload }) => heard.push(payload));
    await client.query('listen proxied');
    const notify = async (payload: string): Promise<void> => {
      await database.pool.query("select pg_notify('proxied', $1)", [payload]);
      // The session is told before it is answered.
      expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    };
    await notify('first');
    proxy.dropNotifications(true);
    await notify('second');
    proxy.dropNotifications(false);
    await notify('third');
    await expect.poll(() => heard).toEqual(['first', 'third']);
    expect(proxy.counts.droppedNotifications).toBe(1);
  });

  test('what is sent while it stands still arrives when it goes on', async () => {
    const client = await connect();
    proxy.freeze(true);
    const answer = client.query('select 7 as seven');
    const first = await Promise.race([answer, database.pool.query('select pg_sleep(0.2)')]);
    expect(first.rows).not.toEqual([{ seven: 7 }]);
    proxy.heal();
    expect((await answer).rows).toEqual([{ seven: 7 }]);
  });

  test('the connection of a registration ends, and comes back when it may; others go on', async () => {
    const connectMember = (): Client =>
      new Client({ connectionString: proxy.databaseUrl, application_name: 'gatehouse-instance' });
    const [other, member] = [await connect(), connectMember()];
    const ended = new Promise((done) => member.once('end', done));
    member.on('error', () => undefined);
    await member.connect();
    proxy.endMembers(true);
    await ended;
    await expect(connectMember().connect()).rejects.toThrow('terminated');
    expect((await other.query('select 5 as five')).rows).toEqual([{ five: 5 }]);
    proxy.heal();
    const again = connectMember();
    await again.connect();
    expect((await again.query('select 6 as six')).rows).toEqual([{ six: 6 }]);
    await again.end();
  });

  test('pieces that are delayed keep their order', async () => {
    const client = await connect();
    const random = createRandom('delay');
    proxy.delay(() => random.integer(8));
    // Large enough to come in many pieces.
    const text = 'select n, repeat(chr(97 + n % 26), 5000) as t from generate_series(0, 199) n';
    const { rows } = await client.query<{ n: number; t: string }>(text);
    expect(rows.map(({ n }) => n)).toEqual(Array.from({ length: 200 }, (_, n) => n));
    expect(rows.every(({ n, t }) => t === String.fromCodePoint(97 + (n % 26)).repeat(5000))).toBe(
      true,
    );
    proxy.heal();
  });
});
