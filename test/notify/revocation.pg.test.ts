import { afterAll, expect, test } from 'vitest';
import { type ClientEvent, EventClient } from '../support/event-client.ts';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { call, mustCall, notify, series } from './support/notify-process.ts';
import { serveNotify, type ServedNotify } from './support/notify-service.ts';
import { poll } from './support/poll.ts';

const databases: TestDatabase[] = [];
afterAll(async () => {
  for (const database of databases) await database.drop();
});

/** Two processes on one database. */
async function startBoth(): Promise<{
  readonly first: ServedNotify;
  readonly second: ServedNotify;
  readonly database: TestDatabase;
}> {
  const database = await createTestDatabase({ template: 'none' });
  databases.push(database);
  const env = {
    DATABASE_URL: urlOf(database.target),
    NOTIFY_STREAM_SECRET: 'the-same-on-all-of-them',
  };
  const [first, second] = await Promise.all([serveNotify(env), serveNotify(env)]);
  return { first, second, database };
}

const ANN = { tenant_id: 'acme', user_id: 'ann' };

type Minted = { readonly token: string; readonly token_id: string; readonly issued_at: string };
async function mint(service: ServedNotify, given: object = {}): Promise<Minted> {
  return (await mustCall(service, 'CreateStreamToken', { ...ANN, ...given })) as Minted;
}

async function open(service: ServedNotify, token: string): Promise<EventClient> {
  const client = await EventClient.open(`${service.clientUrl}/v1/stream?access_token=${token}`);
  await client.untilType('open');
  return client;
}

async function statusOf(service: ServedNotify, token: string): Promise<number> {
  const stop = new AbortController();
  const response = await fetch(`${service.clientUrl}/v1/stream?access_token=${token}`, {
    signal: stop.signal,
  });
  stop.abort();
  return response.status;
}

const idOf = (events: readonly ClientEvent[]): string | undefined =>
  events.find(({ event }) => event === 'notification')?.id;
const endOf = async (client: EventClient): Promise<unknown> =>
  (await client.untilType('end')).find(({ event }) => event === 'end')?.data['reason'];

test(
  'revoked tokens open nothing and keep nothing open, on every instance, and later ones do',
  { timeout: 120_000 },
  async () => {
    const { first, second } = await startBoth();
    const ann = await mint(first);
    expect(ann.token_id).toMatch(/^[0-9a-f-]{36}$/);
    expect(ann.issued_at).toMatch(/T\d\d:\d\d:\d\d(?:\.\d{3})?Z$/);
    const bob = await mint(first, { user_id: 'bob' });
    const here = await open(first, ann.token);
    const there = await open(second, ann.token);
    const other = await open(second, bob.token);
    await mustCall(first, 'StreamService/RevokeStreamTokens', ANN);
    expect(await endOf(here)).toBe('revoked');
    expect(await endOf(there)).toBe('revoked');
    expect([await statusOf(first, ann.token), await statusOf(second, ann.token)]).toEqual([
      401, 401,
    ]);
    // Issued at once, maybe within the same millisecond.
    const again = await mint(second);
    await open(first, again.token);
    await notify(first, { user_id: 'bob' });
    expect(idOf(await other.untilType('notification'))).toBe('1');
    expect(await series(second, 'notify_streams_ended_total{reason="revoked"}')).toBe(1);
    expect(await series(first, 'notify_stream_orders_total{kind="revoke_user"}')).toBe(1);
  },
);

test('one token is revoked by its id, in its own tenant alone', { timeout: 120_000 }, async () => {
  const { first, second } = await startBoth();
  const [one, two] = [await mint(first), await mint(first)];
  const there = await open(second, one.token);
  const stays = await open(second, two.token);
  const of = (tenant: string) => ({ tenant_id: tenant, token_id: one.token_id });
  await mustCall(first, 'StreamService/RevokeStreamTokens', of('other'));
  await mustCall(first, 'StreamService/RevokeStreamTokens', of('acme'));
  expect(await endOf(there)).toBe('revoked');
  expect(await statusOf(second, one.token)).toBe(401);
  expect(await statusOf(second, two.token)).toBe(200);
  await notify(first);
  expect(idOf(await stays.untilType('notification'))).toBe('1');
  const both = await call(first, 'StreamService/RevokeStreamTokens', { ...of('acme'), ...ANN });
  expect(both.status).toBe(400);
});

test(
  'DisconnectUser ends streams everywhere, and lets devices come back',
  { timeout: 120_000 },
  async () => {
    const { first, second } = await startBoth();
    const { token } = await mint(first);
    const clients = [await open(first, token), await open(second, token)];
    await mustCall(second, 'StreamService/DisconnectUser', ANN);
    for (const client of clients) expect(await endOf(client)).toBe('disconnected');
    await open(first, token);
  },
);

test('an instance that hears no hint follows by itself', { timeout: 120_000 }, async () => {
  const { first, second, database } = await startBoth();
  const { token } = await mint(first);
  const there = await open(second, token);
  // As it would be given by a process whose hint is lost.
  await database.pool.query(
    `with head as (update notify.stream_order_head set revision = revision + 1 returning revision)
       insert into notify.stream_order (revision, kind, tenant_id, user_id, at_ms)
       select revision, 1, 'acme', 'ann', notify.issue_ms('acme', 'ann') from head`,
  );
  expect(await endOf(there)).toBe('revoked');
});

test(
  'streams end with their token where the tenant asks for it, those that are open, too',
  { timeout: 120_000 },
  async () => {
    const { first, second } = await startBoth();
    const short = await mint(first, { ttl_seconds: 2 });
    const there = await open(second, short.token);
    const kept = await open(
      second,
      (await mint(first, { tenant_id: 'other', ttl_seconds: 2 })).token,
    );
    const policy = { tenant_id: 'acme', ends_with_token: true };
    await mustCall(first, 'StreamService/SetStreamPolicy', policy);
    expect(await mustCall(second, 'StreamService/GetStreamPolicy', { tenant_id: 'acme' })).toEqual({
      ends_with_token: true,
    });
    expect(await endOf(there)).toBe('expired');
    const later = await open(first, (await mint(first, { ttl_seconds: 1 })).token);
    expect(await endOf(later)).toBe('expired');
    await notify(first, { tenant_id: 'other' });
    expect(idOf(await kept.untilType('notification'))).toBe('1');
    await mustCall(first, 'StreamService/SetStreamPolicy', { tenant_id: 'acme' });
    await poll(() =>
      mustCall(second, 'StreamService/GetStreamPolicy', { tenant_id: 'acme' }),
    ).toEqual({ ends_with_token: false });
  },
);

test(
  'an instance that was away for longer than orders are kept ends every stream',
  { timeout: 120_000 },
  async () => {
    const { first, second, database } = await startBoth();
    const { token } = await mint(first);
    const there = await open(second, token);
    await database.pool.query('update notify.stream_order_head set revision = revision + 5');
    expect(await endOf(there)).toBe('disconnected');
  },
);
