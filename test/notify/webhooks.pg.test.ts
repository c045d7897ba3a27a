import { lookup } from 'node:dns/promises';
import { hostname } from 'node:os';
import { afterAll, expect, test } from 'vitest';
import { call, mustCall, notify, series } from './support/notify-process.ts';
import { serveNotify, type ServedNotify } from './support/notify-service.ts';
import { poll } from './support/poll.ts';
import { isSigned, startReceiver } from './support/webhook-receiver.ts';

const KEY = Buffer.from('0123456789abcdefghijklmnopqrstuv');
const SECRET = `whsec_${KEY.toString('base64')}`;
const HOOK = { channels: ['CHANNEL_WEBHOOK'] };

let shared: Promise<ServedNotify> | undefined;
const undo: (() => unknown)[] = [];
/** For tests with users of their own. */
const sharedService = (): Promise<ServedNotify> =>
  (shared ??= serveNotify({}, (end) => undo.unshift(end)));
afterAll(async () => {
  for (const step of undo) await step();
});

async function putHook(
  service: ServedNotify,
  address: string,
  given: Record<string, unknown> = {},
  secret = SECRET,
): Promise<void> {
  const endpoint = { id: 'hook', tenant_id: 'acme', channel: 'CHANNEL_WEBHOOK', address, ...given };
  await mustCall(service, 'PutEndpoint', { endpoint, signing_secret: secret });
}

type Delivery = Readonly<Record<'status' | 'attempts' | 'last_error' | 'endpoint_id', unknown>>;

async function deliveries(service: ServedNotify, userId = 'ann'): Promise<readonly Delivery[]> {
  const query = { tenant_id: 'acme', user_id: userId, channels: ['CHANNEL_WEBHOOK'] };
  const { notifications } = await mustCall(service, 'ListNotifications', query);
  return (notifications as { deliveries: Delivery[] }[]).flatMap((one) => one.deliveries);
}

const SENT = 'DELIVERY_STATUS_SENT';
const DEAD = 'DELIVERY_STATUS_DEAD';

test('posts once, signed, with what the notification says', async () => {
  const service = await serveNotify();
  const receiver = await startReceiver((response) => response.writeHead(204).end());
  await putHook(service, receiver.url);
  await putHook(
    service,
    `${receiver.url}/ann`,
    { id: 'own', user_id: 'ann' },
    'sixteen plain ones',
  );
  await putHook(service, `${receiver.url}/bob`, { id: 'other', user_id: 'bob' });
  const stored = await notify(service, { ...HOOK, body: 'Grüße\n', data: { n: 1 } });
  await poll(() => deliveries(service)).toMatchObject([
    { endpoint_id: 'hook', status: SENT, attempts: 1, last_error: '' },
    { endpoint_id: 'own', status: SENT, attempts: 1, last_error: '' },
  ]);
  expect(receiver.received.map(({ path }) => path).sort()).toEqual(['/hook', '/hook/ann']);
  const [whole, own] = [...receiver.received].sort((a, b) => a.path.length - b.path.length);
  expect(whole && isSigned(whole, KEY)).toBe(true);
  expect(own && isSigned(own, Buffer.from('sixteen plain ones'))).toBe(true);
  expect(whole?.headers).toMatchObject({
    'content-type': 'application/json',
    'webhook-id': `${String(stored['id'])}.hook`,
  });
  expect(Math.abs(Number(whole?.headers['webhook-timestamp']) - Date.now() / 1000)).toBeLessThan(
    60,
  );
  expect(JSON.parse(whole?.body ?? '')).toEqual({
    type: 'notification.created',
    timestamp: stored['created_at'],
    data: {
      id: stored['id'],
      tenant_id: 'acme',
      user_id: 'ann',
      sequence: 1,
      title: 'Build passed',
      body: 'Grüße\n',
      data: { n: 1 },
    },
  });
  const labels = '{channel="webhook",provider="http",status="sent"}';
  expect(await series(service, `notify_send_total${labels}`)).toBe(2);
  expect(service.events('retry_failed')).toEqual([]);
});

test('tries again with back-off and the same id, and logs each failed attempt once', async () => {
  const service = await serveNotify({ NOTIFY_RETRY_BASE_MS: '100' });
  const receiver = await startReceiver((response, index) => {
    if (index === 0) response.writeHead(500).end('no');
    else if (index === 1) response.destroy();
    else if (index === 2) response.writeHead(302, { location: '/elsewhere' }).end();
    else if (index === 3) response.writeHead(429, { 'retry-after': '1' }).end();
    else response.writeHead(200).end();
  });
  await putHook(service, receiver.url);
  const stored = await notify(service, HOOK);
  await poll(() => deliveries(service)).toMatchObject([
    { status: SENT, attempts: 5, last_error: '' },
  ]);
  const { received } = receiver;
  expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  expect(received.every((one) => one.path === '/hook' && isSigned(one, KEY))).toBe(true);
  const gaps = received.slice(1).map(({ atMs }, i) => atMs - (received[i]?.atMs ?? 0));
  // Half of 100, 200 and 400 ms at least, then what was asked for; a millisecond for rounding.
  [50, 100, 200, 1_000].forEach((least, i) => expect(gaps[i]).toBeGreaterThanOrEqual(least - 1));
  expect(service.events('retry_failed').map(({ time: _time, ...line }) => line)).toEqual(
    ['HTTP 500', expect.stringMatching(/socket hang up|ECONNRESET/), 'HTTP 302', 'HTTP 429'].map(
      (error, i) => ({
        level: 'warn',
        msg: 'retry_failed',
        key: stored['id'],
        connection_id: 'hook',
        attempt: i + 1,
        error,
        tenant_id: 'acme',
        user_id: 'ann',
        delivery_id: `${String(stored['id'])}.hook`,
      }),
    ),
  );
  expect(await series(service, 'notify_retry_total{result="failed"}')).toBe(3);
  expect(await series(service, 'notify_retry_total{result="sent"}')).toBe(1);
});

test('gives up at once on 410, and after the last attempt otherwise', async () => {
  const service = await serveNotify({ NOTIFY_SEND_ATTEMPTS: '3', NOTIFY_RETRY_BASE_MS: '1' });
  const receiver = await startReceiver((response, _index, { path }) =>
    response.writeHead(path === '/hook/gone' ? 410 : 503).end(),
  );
  await putHook(service, `${receiver.url}/gone`, { id: 'gone' });
  await putHook(service, receiver.url);
  await notify(service, HOOK);
  await poll(() => deliveries(service)).toMatchObject([
    { endpoint_id: 'gone', status: DEAD, attempts: 1, last_error: 'HTTP 410' },
    { endpoint_id: 'hook', status: DEAD, attempts: 3, last_error: 'HTTP 503' },
  ]);
  expect(receiver.received).toHaveLength(4);
  const dead = 'notify_send_total{channel="webhook",provider="http",status="dead"}';
  expect(await series(service, dead)).toBe(2);
  await poll(() => series(service, 'notify_queue_depth')).toBe(0);
});

test('the head of an answer counts, however long its body; without a head the time-out does', async () => {
  const service = await serveNotify({ NOTIFY_SEND_TIMEOUT_MS: '300', NOTIFY_SEND_ATTEMPTS: '2' });
  const receiver = await startReceiver((response, _index, { path }) => {
    if (path === '/hook/endless') response.writeHead(200).write('x');
    if (path === '/hook/huge') {
      response.writeHead(200);
      const more = (): void => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
      };
      response.on('drain', more);
      more();
    }
    if (path === '/hook/half') response.socket?.write('HTTP/1.1 200 OK\r\nx-half: ');
    if (path === '/hook/nonsense') response.socket?.end('what\r\n\r\n');
  });
  for (const id of ['endless', 'half', 'huge', 'nonsense', 'silent']) {
    await putHook(service, `${receiver.url}/${id}`, { id });
  }
  await notify(service, HOOK);
  await poll(() => deliveries(service)).toMatchObject(
    [
      { endpoint_id: 'endless', status: SENT, attempts: 1 },
      { endpoint_id: 'half', status: DEAD, attempts: 2, last_error: 'timed out' },
      { endpoint_id: 'huge', status: SENT, attempts: 1 },
      { endpoint_id: 'nonsense', status: DEAD, attempts: 2, last_error: /Parse Error/ },
      { endpoint_id: 'silent', status: DEAD, attempts: 2, last_error: 'timed out' },
    ].map((one) => ({
      ...one,
      ...(one.last_error instanceof RegExp
        ? { last_error: expect.stringMatching(one.last_error) }
        : {}),
    })),
  );
  await poll(() => series(service, 'notify_send_inflight')).toBe(0);
});

test('an endpoint that does not answer leaves the others their places', async () => {
  const service = await serveNotify({ NOTIFY_SENDS_MAX: '8', NOTIFY_SEND_TIMEOUT_MS: '60000' });
  const receiver = await startReceiver((response, _index, { path }) => {
    if (path === '/hook/good') response.writeHead(200).end();
  });
  await putHook(service, `${receiver.url}/stuck`, { id: 'stuck', user_id: 'ann' });
  await putHook(service, `${receiver.url}/good`, { id: 'good', user_id: 'bob' });
  await Promise.all(Array.from({ length: 40 }, () => notify(service, HOOK)));
  await poll(() => receiver.received.length).toBeGreaterThan(0);
  await Promise.all(Array.from({ length: 20 }, () => notify(service, { ...HOOK, user_id: 'bob' })));
  await poll(() => receiver.received.filter(({ path }) => path === '/hook/good').length).toBe(20);
  expect(receiver.received.filter(({ path }) => path === '/hook/stuck').length).toBeLessThan(8);
});

test('private addresses are refused, as written, as resolved, and in any spelling', async () => {
  const service = await serveNotify({ NOTIFY_WEBHOOK_ALLOW_PRIVATE: 'false' });
  const hosts = [
    'localhost',
    'LOCALHOST',
    'a.localhost',
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.1',
    '0',
    '127.0.0.1.',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '[::]',
    '[::1]',
    '[::127.0.0.1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:a00:1]',
    '[fe80::1]',
    '[fd00::1]',
    '[fec0::1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '[2001:db8::1]',
    '[ff02::1]',
  ];
  for (const host of hosts) {
    const endpoint = {
      id: 'hook',
      tenant_id: 'acme',
      channel: 'CHANNEL_WEBHOOK',
      address: `http://${host}/x`,
    };
    const answer = await call(service, 'PutEndpoint', { endpoint, signing_secret: SECRET });
    expect([host, answer.status, JSON.stringify(answer.body)]).toEqual([
      host,
      400,
      expect.stringContaining('"field":"endpoint.address"'),
    ]);
  }
  // The name of this machine, which its own hosts file mostly leads to a private address.
  const found = await lookup(hostname()).catch(() => undefined);
  if (found === undefined || !/^(?:127|10|192\.168|172)\./.test(found.address)) return;
  const receiver = await startReceiver((response) => response.writeHead(200).end());
  await putHook(service, receiver.url.replace('127.0.0.1', hostname()));
  await notify(service, HOOK);
  await poll(() => deliveries(service)).toMatchObject([
    { status: DEAD, attempts: 1, last_error: 'the address is not one that webhooks may go to' },
  ]);
  expect(receiver.received).toEqual([]);
});

test('removing an endpoint gives up what waits for it, replacing it moves what waits', async () => {
  const service = await serveNotify({ NOTIFY_RETRY_BASE_MS: '300' });
  const receiver = await startReceiver((response, _index, { path }) =>
    response.writeHead(path === '/hook/new' ? 200 : 503).end(),
  );
  await putHook(service, receiver.url, { id: 'kept' });
  await putHook(service, receiver.url, { id: 'removed' });
  await notify(service, HOOK);
  await poll(() => receiver.received.length).toBeGreaterThanOrEqual(2);
  await putHook(service, `${receiver.url}/new`, { id: 'kept' }, '');
  await mustCall(service, 'DeleteEndpoint', { tenant_id: 'acme', id: 'removed' });
  await poll(() => deliveries(service)).toMatchObject([
    { endpoint_id: 'kept', status: SENT },
    { endpoint_id: 'removed', status: DEAD, last_error: 'the endpoint was removed' },
  ]);
  const last = receiver.received.find(({ path }) => path === '/hook/new');
  expect(last && isSigned(last, KEY)).toBe(true);
});

const base64Of = (bytes: number): string => Buffer.alloc(bytes, 0xfb).toString('base64');

test.each([
  ['text', 'not base64 at all'],
  ['nothing', ''],
  ['23 bytes', base64Of(23)],
  ['65 bytes', base64Of(65)],
  ['66 bytes', base64Of(66)],
  ['no padding', base64Of(32).replace('=', '')],
  ['too much padding', `${base64Of(32)}=`],
  ['a length that no bytes have', `${base64Of(24)}A`],
  ['bits left over', `${base64Of(32).slice(0, -2)}/=`],
  ['the alphabet of addresses', base64Of(24).replaceAll('+', '-').replaceAll('/', '_')],
  ['a space', ` ${base64Of(24)}`],
])('a secret of whsec_ and %s is refused, by its field', async (_name, text) => {
  const service = await sharedService();
  const key = { id: 'hook', tenant_id: 'refused', channel: 'CHANNEL_WEBHOOK' };
  const endpoint = { ...key, address: 'https://example.test/' };
  const secret = { signing_secret: `whsec_${text}` };
  for (const [method, body] of [
    ['PutEndpoint', { endpoint, ...secret }],
    [
      'DeliveryService/RotateSigningSecret',
      { tenant_id: 'refused', endpoint_id: 'hook', ...secret },
    ],
  ] as const) {
    const { status, body: answer } = await call(service, method, body);
    expect([method, status, answer]).toMatchObject([
      method,
      400,
      {
        code: 'invalid_argument',
        message: 'signing_secret: must be base64 of 24 to 64 bytes after whsec_',
        details: [{ debug: { reason: 'FIELD_INVALID', metadata: { field: 'signing_secret' } } }],
      },
    ]);
  }
  const { endpoints } = await mustCall(service, 'ListEndpoints', { tenant_id: 'refused' });
  expect(endpoints ?? []).toEqual([]);
});

test.each([24, 25, 64])('a secret of whsec_ and %d bytes signs with those', async (bytes) => {
  const service = await sharedService();
  const receiver = await startReceiver((response) => response.writeHead(204).end());
  const userId = `of-${bytes}`;
  await putHook(service, receiver.url, { id: userId, user_id: userId }, `whsec_${base64Of(bytes)}`);
  await notify(service, { ...HOOK, user_id: userId });
  await poll(() => receiver.received.length).toBe(1);
  const [received] = receiver.received;
  expect(received && isSigned(received, Buffer.alloc(bytes, 0xfb))).toBe(true);
  expect(received && isSigned(received, Buffer.from(base64Of(bytes)))).toBe(false);
});
