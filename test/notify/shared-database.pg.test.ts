import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import type { ServerTarget } from '../../src/store/postgres/pool.ts';
import { createCuttingProxy } from '../support/cutting-proxy.ts';
import { EventClient, type ClientEvent } from '../support/event-client.ts';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { mustCall, notify, series, startNotify, streamUrl } from './support/notify-process.ts';
import { serveNotify } from './support/notify-service.ts';
import { poll } from './support/poll.ts';
import { isSigned, startReceiver } from './support/webhook-receiver.ts';

const databases: TestDatabase[] = [];
afterAll(async () => {
  for (const database of databases) await database.drop();
});

async function emptyDatabase(): Promise<ServerTarget> {
  const database = await createTestDatabase({ template: 'none' });
  databases.push(database);
  return database.target as ServerTarget;
}

const envOf = (target: ServerTarget): Record<string, string> => ({
  DATABASE_URL: urlOf(target),
  NOTIFY_STREAM_SECRET: 'the-same-on-all-of-them',
  NOTIFY_PG_POOL_SIZE: '2',
});

const sequencesOf = (events: readonly ClientEvent[]): number[] =>
  events.filter(({ event }) => event === 'notification').map(({ id }) => Number(id));
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);

test(
  'two services deliver to each other’s streams, in one order',
  { timeout: 120_000 },
  async () => {
    const env = envOf(await emptyDatabase());
    // At once: they also migrate at once.
    const [first, second] = await Promise.all([serveNotify(env), serveNotify(env)]);
    const url = await streamUrl(first);
    const here = await EventClient.open(url);
    const there = await EventClient.open(url.replace(first.clientUrl, second.clientUrl));
    await here.untilType('open');
    await there.untilType('open');
    await Promise.all(Array.from({ length: 100 }, (_, i) => notify(i % 2 === 0 ? first : second)));
    for (const client of [here, there]) {
      const events = await client.until((all) => sequencesOf(all).length === 100);
      expect(sequencesOf(events)).toEqual(upTo(100));
    }
    // A device moves to the other service and misses nothing.
    here.close();
    await notify(first);
    const moved = await EventClient.open(url.replace(first.clientUrl, second.clientUrl), {
      'last-event-id': '100',
    });
    expect(sequencesOf(await moved.until((all) => sequencesOf(all).length === 1))).toEqual([101]);
  },
);

// This one and the next wait for the end of a lease and of a grace: at once.
test.concurrent(
  'a process that is killed between claim and settlement: delivered again after restart',
  { timeout: 120_000 },
  async ({ expect: own, onTestFinished }) => {
    const env = { ...envOf(await emptyDatabase()), NOTIFY_SEND_TIMEOUT_MS: '1000' };
    const service = await startNotify(env, onTestFinished);
    const receiver = await startReceiver((response, index) => {
      // The first one is never answered: its process dies meanwhile.
      if (index > 0) response.writeHead(200).end();
    }, onTestFinished);
    await mustCall(service, 'PutEndpoint', {
      endpoint: {
        id: 'hook',
        tenant_id: 'acme',
        channel: 'CHANNEL_WEBHOOK',
        address: receiver.url,
      },
      signing_secret: 'sixteen characters',
    });
    const stored = await notify(service, { channels: ['CHANNEL_WEBHOOK', 'CHANNEL_LIVE'] });
    await poll(() => receiver.received.length, own).toBe(1);
    service.signal('SIGKILL');
    await service.exited;
    const restarted = await serveNotify(env, onTestFinished);
    await poll(() => receiver.received.length, own).toBe(2);
    for (const request of receiver.received) {
      expect(isSigned(request, Buffer.from('sixteen characters'))).toBe(true);
      expect(request.headers['webhook-id']).toBe(`${String(stored['id'])}.hook`);
    }
    await poll(async () => {
      const query = { tenant_id: 'acme', user_id: 'ann' };
      const { notifications } = await mustCall(restarted, 'ListNotifications', query);
      return (notifications as { deliveries: object[] }[])[0]?.deliveries;
    }, own).toMatchObject([{ status: 'DELIVERY_STATUS_SENT', attempts: 1 }]);
    // What was acknowledged is there for streams, too.
    const url = `${await streamUrl(restarted)}&last_event_id=0`;
    const client = await EventClient.open(url, {}, onTestFinished);
    expect(sequencesOf(await client.until((all) => sequencesOf(all).length === 1))).toEqual([1]);
  },
);

test.concurrent(
  'a stop that cannot end is told as server_shutdown_error, with exit code 1',
  { timeout: 120_000 },
  async ({ expect: own, onTestFinished }) => {
    const target = await emptyDatabase();
    const holder = new pg.Client({ ...target });
    await holder.connect();
    const env = { ...envOf(target), NOTIFY_SHUTDOWN_TIMEOUT_MS: '0' };
    const service = await startNotify(env, onTestFinished);
    await notify(service);
    // Somebody holds the stream's row: what is being written does not end.
    await holder.query('begin');
    await holder.query('select 1 from notify.stream for update');
    const hanging = notify(service).then(
      () => 'stored',
      () => 'failed',
    );
    const waiting = `select pid from pg_locks
      where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))`;
    await poll(async () => (await holder.query(waiting)).rowCount, own).toBe(1);
    service.signal('SIGTERM');
    expect(await service.exited).toBe(1);
    await holder.query('rollback');
    await holder.end();
    expect(await hanging).toBe('failed');
    expect(service.events('server_shutdown_error').map(({ time: _time, ...line }) => line)).toEqual(
      [{ level: 'error', msg: 'server_shutdown_error', error: 'not stopped within 5000 ms' }],
    );
  },
);

test(
  'while the database is away a catch-up logs each failed attempt once, and then goes on',
  { timeout: 120_000 },
  async () => {
    const proxy = await createCuttingProxy(await emptyDatabase());
    const service = await serveNotify({
      ...envOf(proxy.target as ServerTarget),
      NOTIFY_SHUTDOWN_TIMEOUT_MS: '60000',
    });
    await Promise.all(upTo(30).map(() => notify(service)));
    const url = await streamUrl(service);
    proxy.loseAnswers('notify-live-after', 3);
    const client = await EventClient.open(`${url}&last_event_id=0`);
    expect(sequencesOf(await client.until((all) => sequencesOf(all).length === 30))).toEqual(
      upTo(30),
    );
    const [opened] = service.events('stream_open');
    expect(service.events('retry_failed').map(({ time: _time, ...line }) => line)).toEqual(
      [1, 2, 3].map((attempt) => ({
        level: 'warn',
        msg: 'retry_failed',
        key: 'stream_catch_up',
        connection_id: opened?.['connection_id'],
        attempt,
        error: 'the database is not available',
        tenant_id: 'acme',
        user_id: 'ann',
      })),
    );
    expect(await series(service, 'notify_store_op_total{op="live_after",code="unavailable"}')).toBe(
      3,
    );
    await proxy.close();
    await poll(() =>
      mustCall(service, 'ListEndpoints', { tenant_id: 'acme' }).then(() => '', String),
    ).toMatch(/unavailable/);
    // Without a database there is nothing to wait for.
    await service.stop();
  },
);
