import { Webhook } from 'standardwebhooks';
import { afterAll, describe, expect, test } from 'vitest';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { call, mustCall, notify, series } from './support/notify-process.ts';
import { serveNotify, type ServedNotify } from './support/notify-service.ts';
import { poll } from './support/poll.ts';
import { isSigned, type Received, startReceiver } from './support/webhook-receiver.ts';

const databases: TestDatabase[] = [];
afterAll(async () => {
  for (const database of databases) await database.drop();
});

const OLD = `whsec_${Buffer.from('0123456789abcdefghijklmnopqrstuv').toString('base64')}`;
const NEW = `whsec_${Buffer.from('vutsrqponmlkjihgfedcba9876543210').toString('base64')}`;
const ENDPOINT = { tenant_id: 'acme', endpoint_id: 'hook' };
const HOOK = { channels: ['CHANNEL_WEBHOOK'] };

async function start(env: Record<string, string> = {}): Promise<ServedNotify> {
  return serveNotify({ NOTIFY_RETRY_BASE_MS: '3600000', ...env });
}

async function startOn(database: TestDatabase, env: Record<string, string> = {}) {
  return start({
    DATABASE_URL: urlOf(database.target),
    ...env,
  });
}

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase({ template: 'none' });
  databases.push(database);
  return database;
}

async function putHook(service: ServedNotify, address: string, secret = OLD): Promise<void> {
  const endpoint = { id: 'hook', tenant_id: 'acme', channel: 'CHANNEL_WEBHOOK', address };
  await mustCall(service, 'PutEndpoint', { endpoint, signing_secret: secret });
}

type Listed = readonly Readonly<Record<string, unknown>>[];
async function listed(service: ServedNotify, filter: object = {}): Promise<Listed> {
  const query = { tenant_id: 'acme', ...filter };
  return (await mustCall(service, 'DeliveryService/ListDeliveries', query))['deliveries'] as Listed;
}

/** By the library of the Standard Webhooks project: throws unless it is genuine. */
function verified({ body, headers }: Received, secret: string): unknown {
  return new Webhook(secret).verify(body, headers as Record<string, string>);
}

const reasonOf = (answer: Awaited<ReturnType<typeof call>>): unknown =>
  (answer.body['details'] as { debug: { reason: string } }[])[0]?.debug.reason;

describe('deliveries', () => {
  const begin = async (env: Record<string, string> = {}): Promise<ServedNotify> =>
    startOn(await emptyDatabase(), env);

  test('are listed, told with their attempts, and tried again under the same id', async () => {
    const service = await begin();
    const receiver = await startReceiver((response, index) => {
      if (index === 0) response.writeHead(503).end(`busy\0\n${'ü'.repeat(300)}`);
      else response.writeHead(200).end('thanks');
    });
    await putHook(service, receiver.url);
    const stored = await notify(service, HOOK);
    const key = { ...ENDPOINT, notification_id: stored['id'] };
    await poll(() => listed(service)).toMatchObject([
      {
        ...key,
        user_id: 'ann',
        status: 'DELIVERY_STATUS_PENDING',
        is_running: false,
        attempts: 1,
        last_error: 'HTTP 503',
      },
    ]);
    const told = await mustCall(service, 'DeliveryService/GetDelivery', key);
    const [attempt] = told['attempts'] as Listed;
    expect(attempt).toMatchObject({
      outcome: 'ATTEMPT_OUTCOME_FAILED',
      answer_status: 503,
      error: 'HTTP 503',
      answer: expect.stringMatching(/^busy ü+/),
    });
    expect(Buffer.byteLength(String(attempt?.['answer']))).toBeLessThanOrEqual(256);
    await mustCall(service, 'DeliveryService/RetryDelivery', key);
    await poll(() => listed(service, { status: 'DELIVERY_STATUS_SENT' })).toMatchObject([
      { attempts: 2, last_error: '' },
    ]);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    const sent = await call(service, 'DeliveryService/RetryDelivery', key);
    expect([sent.status, reasonOf(sent)]).toEqual([412, 'DELIVERY_SENT']);
    const foreign = { ...key, tenant_id: 'other' };
    for (const method of ['RetryDelivery', 'GetDelivery']) {
      const answer = await call(service, `DeliveryService/${method}`, foreign);
      expect([answer.status, reasonOf(answer)]).toEqual([404, 'DELIVERY_UNKNOWN']);
    }
  });

  test('that are running are refused another attempt', async () => {
    const service = await begin();
    const receiver = await startReceiver(() => undefined);
    await putHook(service, receiver.url);
    const stored = await notify(service, HOOK);
    await poll(() => receiver.received.length).toBe(1);
    const key = { ...ENDPOINT, notification_id: stored['id'] };
    const answer = await call(service, 'DeliveryService/RetryDelivery', key);
    expect([answer.status, reasonOf(answer)]).toEqual([412, 'DELIVERY_RUNNING']);
    expect(await listed(service)).toMatchObject([{ is_running: true }]);
  });

  test('are found by status, endpoint, user and time, page by page', async () => {
    const service = await begin({ NOTIFY_SEND_ATTEMPTS: '1' });
    const receiver = await startReceiver((response, _index, { body }) => {
      response.writeHead(body.includes('"bob"') ? 500 : 200).end();
    });
    await putHook(service, receiver.url);
    const ids: unknown[] = [];
    for (const user_id of ['ann', 'bob', 'ann', 'bob', 'ann']) {
      ids.unshift((await notify(service, { ...HOOK, user_id }))['id']);
    }
    await poll(() => listed(service, { status: 'DELIVERY_STATUS_PENDING' })).toEqual([]);
    const idsOf = (found: Listed): unknown[] => found.map((one) => one['notification_id']);
    expect(idsOf(await listed(service))).toEqual(ids);
    expect(idsOf(await listed(service, { status: 'DELIVERY_STATUS_DEAD' }))).toEqual([
      ids[1],
      ids[3],
    ]);
    expect(idsOf(await listed(service, { user_id: 'ann' }))).toEqual([ids[0], ids[2], ids[4]]);
    expect(await listed(service, { endpoint_id: 'none' })).toEqual([]);
    expect(await listed(service, { tenant_id: 'other' })).toEqual([]);
    const all = await listed(service);
    const from = { created_from: all[1]?.['created_at'], created_until: all[0]?.['created_at'] };
    for (const one of await listed(service, from)) {
      expect(Date.parse(String(one['created_at']))).toBeLessThan(
        Date.parse(String(all[0]?.['created_at'])),
      );
    }
    for (const created_from of ['2099-02-29T00:00:00Z', '2026-01-01T24:00:00Z']) {
      const query = { tenant_id: 'acme', created_from };
      const { status, body } = await call(service, 'DeliveryService/ListDeliveries', query);
      expect([status, String(body['message'])]).toEqual([
        400,
        expect.stringContaining('created_from: must be a time'),
      ]);
    }
    expect(await listed(service, { created_from: '2026-01-01t00:00:00z' })).toEqual(all);
    const paged: unknown[] = [];
    let token = '';
    do {
      const query = { tenant_id: 'acme', page_size: 2, page_token: token };
      const page = await mustCall(service, 'DeliveryService/ListDeliveries', query);
      paged.push(...idsOf(page['deliveries'] as Listed));
      token = String(page['next_page_token']);
    } while (token !== '');
    expect(paged).toEqual(ids);
  });

  test('to an endpoint that fails for long end with it, until it is enabled', async () => {
    const service = await begin({
      NOTIFY_ENDPOINT_FAILING_SECONDS: '1',
      NOTIFY_RETRY_BASE_MS: '200',
      NOTIFY_RETRY_MAX_MS: '200',
      NOTIFY_SEND_ATTEMPTS: '100',
    });
    let isWell = false;
    const receiver = await startReceiver((response) => {
      response.writeHead(isWell ? 200 : 500).end();
    });
    await putHook(service, receiver.url);
    const first = await notify(service, HOOK);
    await poll(() => service.events('endpoint_disabled')).toMatchObject([
      { level: 'warn', tenant_id: 'acme', endpoint_id: 'hook', failing_since: expect.any(String) },
    ]);
    expect(await series(service, 'notify_endpoints_disabled_total')).toBe(1);
    await notify(service, HOOK);
    await poll(() => listed(service, { status: 'DELIVERY_STATUS_DEAD' })).toHaveLength(2);
    const state = await mustCall(service, 'DeliveryService/GetEndpointState', ENDPOINT);
    expect(state['disabled_at']).toEqual(expect.any(String));
    const key = { ...ENDPOINT, notification_id: first['id'] };
    const refused = await call(service, 'DeliveryService/RetryDelivery', key);
    expect([refused.status, reasonOf(refused)]).toEqual([412, 'ENDPOINT_DISABLED']);
    isWell = true;
    const tested = await mustCall(service, 'DeliveryService/SendTestNotification', ENDPOINT);
    expect(tested['attempt']).toMatchObject({ outcome: 'ATTEMPT_OUTCOME_SENT' });
    await mustCall(service, 'DeliveryService/EnableEndpoint', ENDPOINT);
    await mustCall(service, 'DeliveryService/RetryDelivery', key);
    await notify(service, HOOK);
    await poll(() => listed(service, { status: 'DELIVERY_STATUS_SENT' })).toHaveLength(2);
  });

  test('a test is sent once, signed, and leaves nothing behind', async () => {
    const service = await begin();
    const receiver = await startReceiver((response) => response.writeHead(418).end('teapot'));
    await putHook(service, receiver.url);
    const { attempt } = await mustCall(service, 'DeliveryService/SendTestNotification', ENDPOINT);
    expect(attempt).toMatchObject({
      outcome: 'ATTEMPT_OUTCOME_FAILED',
      answer_status: 418,
      error: 'HTTP 418',
      answer: 'teapot',
    });
    expect(receiver.received).toHaveLength(1);
    const [request] = receiver.received as [Received];
    expect(verified(request, OLD)).toMatchObject({ type: 'notification.test' });
    expect(await listed(service)).toEqual([]);
  });

  test('are signed with both secrets while they overlap, as the project’s library verifies', async () => {
    const service = await begin({ NOTIFY_SECRET_KEYS: 'a-key-of-the-settings' });
    const receiver = await startReceiver((response) => response.writeHead(204).end());
    await putHook(service, receiver.url);
    await notify(service, HOOK);
    const rotation = { ...ENDPOINT, signing_secret: NEW, overlap_seconds: 3_600 };
    await poll(() => receiver.received.length).toBe(1);
    await mustCall(service, 'DeliveryService/RotateSigningSecret', rotation);
    // A call whose answer was lost is repeated, and the first secret must survive that.
    await mustCall(service, 'DeliveryService/RotateSigningSecret', rotation);
    await notify(service, HOOK);
    await poll(() => receiver.received.length).toBe(2);
    const [before, during] = receiver.received as [Received, Received];
    expect(verified(before, OLD)).toMatchObject({ type: 'notification.created' });
    expect(() => verified(before, NEW)).toThrow(/signature/i);
    expect(verified(during, OLD)).toEqual(verified(during, NEW));
    expect(() => verified({ ...during, body: `${during.body} ` }, NEW)).toThrow(/signature/i);
    const ending = { ...rotation, overlap_seconds: 1 };
    await mustCall(service, 'DeliveryService/RotateSigningSecret', ending);
    await poll(async () => {
      const state = await mustCall(service, 'DeliveryService/GetEndpointState', ENDPOINT);
      return state['previous_secret_until'] ?? null;
    }).toBeNull();
    await notify(service, HOOK);
    await poll(() => receiver.received.length).toBe(3);
    const last = receiver.received[2] as Received;
    expect(() => verified(last, OLD)).toThrow(/signature/i);
    expect(verified(last, NEW)).toMatchObject({ type: 'notification.created' });
  });
});

test('secrets are sealed at rest, also those from before, and read with older keys', async () => {
  const database = await emptyDatabase();
  const secretOf = async (): Promise<string> => {
    const { rows } = await database.pool.query<{ signing_secret: string }>(
      'select signing_secret from notify.endpoint',
    );
    return rows[0]?.signing_secret ?? '';
  };
  const receiver = await startReceiver((response) => response.writeHead(204).end());
  const plain = await startOn(database);
  expect(plain.events('signing_secrets_plain')).toHaveLength(1);
  await putHook(plain, receiver.url);
  expect(await secretOf()).toBe(OLD);
  await plain.stop();
  const one = await startOn(database, { NOTIFY_SECRET_KEYS: 'the-first-of-the-keys' });
  const sealed = await secretOf();
  expect(sealed).toMatch(/^enc1:[0-9a-f]{8}:/);
  expect(sealed).not.toContain(OLD.slice(6));
  await one.stop();
  const keys = 'the-second-of-the-keys,the-first-of-the-keys';
  const two = await startOn(database, { NOTIFY_SECRET_KEYS: keys });
  expect((await secretOf()).slice(0, 13)).not.toBe(sealed.slice(0, 13));
  await notify(two, HOOK);
  await poll(() => receiver.received.length).toBe(1);
  expect(verified(receiver.received[0] as Received, OLD)).toBeDefined();
  await two.stop();
  // Another endpoint's row is no place for it.
  await database.pool.query(`update notify.endpoint set id = 'other'`);
  const moved = await startOn(database, { NOTIFY_SECRET_KEYS: keys });
  await notify(moved, HOOK);
  await poll(() => listed(moved, { endpoint_id: 'other' })).toMatchObject([
    { last_error: 'no signing secret can be read with the keys that are set' },
  ]);
  expect(receiver.received).toHaveLength(1);
});

test('a secret from before that is no base64 signs as it did, and is kept by an empty one', async () => {
  const database = await emptyDatabase();
  const receiver = await startReceiver((response) => response.writeHead(204).end());
  const service = await startOn(database);
  await putHook(service, receiver.url);
  const old = 'whsec_what-was-never-base64!';
  await database.pool.query('update notify.endpoint set signing_secret = $1', [old]);
  await putHook(service, `${receiver.url}/moved`, '');
  await notify(service, HOOK);
  await poll(() => receiver.received.length).toBe(1);
  // What its letters, `-` read as `+`, are as base64.
  const key = Buffer.from('c216adfb06acfa77af7abf9b6ac7ba', 'hex');
  expect(isSigned(receiver.received[0] as Received, key)).toBe(true);
});
