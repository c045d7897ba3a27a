import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { EventClient, type ClientEvent } from '../support/event-client.ts';
import { notify, series, startNotify, streamUrl } from './support/notify-process.ts';
import { serveNotify } from './support/notify-service.ts';
import { poll } from './support/poll.ts';
import { UnreadStream } from './support/unread-stream.ts';

const sequencesOf = (events: readonly ClientEvent[]): number[] =>
  events.filter(({ event }) => event === 'notification').map(({ id }) => Number(id));
const has = (count: number) => (events: readonly ClientEvent[]) =>
  sequencesOf(events).length >= count;

test('a stream begins with its place, and brings each notification once, in order', async () => {
  const service = await serveNotify();
  await notify(service);
  const first = await EventClient.open(await streamUrl(service));
  const second = await EventClient.open(await streamUrl(service, { device_type: 'ios' }));
  const [open] = await first.untilType('open');
  await second.untilType('open');
  expect(open).toEqual({
    id: '1',
    event: 'open',
    data: {
      connection_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      head: 1,
      unread_count: 1,
      reads: 0,
    },
  });
  expect(first.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'access-control-allow-origin': '*',
  });
  const stored = await notify(service, {
    title: 'Grüße 🎉',
    body: 'one\ntwo\r\n\u2028three',
    data: { n: [1, null] },
  });
  await notify(service, { user_id: 'bob' });
  await notify(service, { channels: ['CHANNEL_WEBHOOK'] });
  await notify(service);
  for (const client of [first, second]) {
    expect(sequencesOf(await client.until(has(2)))).toEqual([2, 4]);
    expect(client.events[1]?.data).toEqual({
      id: stored['id'],
      sequence: 2,
      title: 'Grüße 🎉',
      body: 'one\ntwo\r\n\u2028three',
      data: { n: [1, null] },
      created_at: stored['created_at'],
      read_at: null,
    });
  }
});

test('Last-Event-ID, as header or parameter, replays what followed, also that of no event at all', async () => {
  const service = await serveNotify();
  const url = await streamUrl(service);
  const before = await EventClient.open(url);
  const [open] = await before.untilType('open');
  before.close();
  // More than a page of what is replayed.
  await Promise.all(Array.from({ length: 210 }, () => notify(service)));
  const resumed = await EventClient.open(url, { 'last-event-id': open?.id ?? '' });
  expect(sequencesOf(await resumed.until(has(210)))).toEqual(
    Array.from({ length: 210 }, (_, i) => i + 1),
  );
  const late = await EventClient.open(`${url}&last_event_id=207`);
  expect(sequencesOf(await late.until(has(3)))).toEqual([208, 209, 210]);
  const fresh = await EventClient.open(url);
  await fresh.untilType('open');
  await notify(service);
  expect(sequencesOf(await fresh.until(has(1)))).toEqual([211]);
  expect(await series(service, 'notify_stream_events_total{kind="replay"}')).toBe(213);
});

test('a replay longer than the buffer of a slow reader drops nothing', async () => {
  const service = await serveNotify({ NOTIFY_CONNECTION_BUFFER_EVENTS: '7' });
  const url = await streamUrl(service);
  const body = 'x'.repeat(16_000);
  await Promise.all(Array.from({ length: 150 }, () => notify(service, { body })));
  const client = await EventClient.open(`${url}&last_event_id=0`);
  client.pause();
  await poll(() => series(service, 'notify_stream_events_total{kind="replay"}')).toBeGreaterThan(
    20,
  );
  client.resume();
  expect(sequencesOf(await client.until(has(150)))).toEqual(
    Array.from({ length: 150 }, (_, i) => i + 1),
  );
  expect(service.events('event_queue_full')).toEqual([]);
});

test('a place beyond the head begins anew with a reset, and the next id is of this history', async () => {
  const service = await serveNotify();
  await notify(service);
  const url = await streamUrl(service);
  const client = await EventClient.open(url, { 'last-event-id': '900' });
  await client.untilType('reset');
  expect(client.events.map(({ id, event, data }) => [id, event, data['head']])).toEqual([
    ['1', 'open', 1],
    ['', 'reset', 1],
  ]);
  await notify(service);
  expect(sequencesOf(await client.until(has(1)))).toEqual([2]);
  expect(await series(service, 'notify_stream_events_total{kind="reset"}')).toBe(1);
});

const DROPPED_MIN = 3;

test('a client that does not read loses the oldest, each logged and counted, and is told of the gap', async () => {
  // In a process of its own: a busy thread of the test would let more hints overtake.
  const service = await startNotify({
    NOTIFY_CONNECTION_BUFFER_EVENTS: '2',
  });
  const url = new URL(await streamUrl(service));
  const stream = await UnreadStream.dropping(service, url, DROPPED_MIN);
  expect(stream.events('stream_close')).toEqual([]);
  const droppedOfAll = service.events('event_queue_full').length;
  await poll(() => series(service, 'notify_events_dropped_total{reason="buffer_full"}')).toBe(
    droppedOfAll,
  );
  expect(
    await series(service, 'notify_send_total{channel="live",provider="sse",status="dropped"}'),
  ).toBe(droppedOfAll);
  const dropped = stream.events('event_queue_full').length;
  stream.socket.resume();
  // Without anything new: what waited must come by itself.
  await stream.untilLast();
  const { text, total } = stream;
  const came = [...text.matchAll(/"title":"t(\d+)"/g)].map(([, number]) => Number(number));
  expect(came).toEqual([...new Set(came)].sort((a, b) => a - b));
  expect(came.length).toBe(total - dropped);
  expect(came.slice(-2)).toEqual([total - 1, total]);
  const gaps = [...text.matchAll(/event: gap\ndata: \{"dropped":(\d+)\}\n\n/g)];
  expect(gaps.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(dropped);
  const [opened] = stream.events('stream_open');
  for (const line of stream.events('event_queue_full')) {
    expect({ ...line, time: '', msg: '' }).toEqual({ ...opened, level: 'warn', time: '', msg: '' });
  }
  await notify(service, { title: 'after' });
  await poll(() => stream.text.includes('"title":"after"')).toBe(true);
});

test('an idle stream lives on heartbeats and is counted while it is open', async () => {
  const service = await serveNotify({ NOTIFY_HEARTBEAT_MS: '100' });
  const url = await streamUrl(service, { device_type: 'toaster' });
  const socket = new URL(url);
  const client = connect(Number(socket.port), socket.hostname);
  onTestFinished(() => {
    client.destroy();
  });
  let text = '';
  client.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  client.write(`GET ${socket.pathname}${socket.search} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await poll(() => text.split(':\n\n').length).toBeGreaterThan(3);
  expect(await series(service, 'notify_live_connections{device_type="other"}')).toBe(1);
  client.destroy();
  await poll(() => series(service, 'notify_live_connections{device_type="other"}')).toBe(0);
  await poll(() => service.events('stream_close')).toHaveLength(1);
});

test('an idle stream without heartbeats is not cut by the listener', async () => {
  const service = await serveNotify({ NOTIFY_HTTP_IDLE_MS: '1000' });
  const client = await EventClient.open(await streamUrl(service));
  await client.untilType('open');
  // A connection that asks for nothing is given up later than the stream would be.
  const { port, hostname } = new URL(service.clientUrl);
  const idle = connect(Number(port), hostname).resume();
  idle.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await once(idle, 'close');
  await notify(service);
  expect(sequencesOf(await client.until(has(1)))).toEqual([1]);
});

const statusOf = async (url: string, headers: Record<string, string> = {}, method = 'GET') => {
  const response = await fetch(url, { method, headers });
  // An open stream has no end.
  if (response.status === 200) await response.body?.cancel();
  const text = response.status === 200 ? '' : await response.text();
  const reason = /"reason":"(\w+)"/.exec(text)?.[1] ?? '';
  const metadata: unknown = JSON.parse(/"metadata":(\{[^}]*\})/.exec(text)?.[1] ?? '{}');
  return { status: response.status, reason, metadata, headers: response.headers };
};

test('stream tokens: expired, forged, changed, of another key, or missing are refused', async () => {
  const service = await serveNotify({ NOTIFY_STREAM_SECRET: 'a-secret-of-streams' });
  const url = await streamUrl(service, { ttl_seconds: 1 });
  const token = new URL(url).searchParams.get('access_token') ?? '';
  const [version, payload = '', signature] = token.split('.');
  expect(JSON.parse(Buffer.from(payload, 'base64url').toString()).slice(0, 3)).toEqual([
    'acme',
    'ann',
    'web',
  ]);
  const sign = (text: string, key: string): string =>
    `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
  const otherTenant = Buffer.from(
    JSON.stringify(['other', 'ann', 'web', Date.now() + 60_000]),
  ).toString('base64url');
  const endpoint = `${service.clientUrl}/v1/stream`;
  const bad = [
    '',
    'x',
    `${version}.${payload}`,
    `${version}.${otherTenant}.${signature}`,
    sign(`ns1.${otherTenant}`, 'another secret of 16'),
    sign(`ns2.${payload}`, 'a-secret-of-streams'),
    `${token}x.y`,
    `${token.slice(0, -4)}AAAA`,
    'a'.repeat(2_000),
  ];
  for (const given of bad) {
    for (const answer of [
      await statusOf(`${endpoint}?access_token=${given}`),
      await statusOf(endpoint, { authorization: `Bearer ${given}` }),
    ]) {
      expect([given, answer.status, answer.reason]).toEqual([given, 401, 'STREAM_TOKEN_INVALID']);
      expect(answer.headers.get('x-request-id')).not.toBeNull();
    }
  }
  const byHeader = await EventClient.open(endpoint, { authorization: `bearer ${token}` });
  await byHeader.untilType('open');
  await poll(() => statusOf(url)).toMatchObject({ status: 401 });
  // An open stream outlives its token.
  await notify(service);
  expect(sequencesOf(await byHeader.until(has(1)))).toEqual([1]);
  expect(service.rawLog.join('\n')).not.toContain(token);
});

test('a stream shows nothing of another tenant with the same user id', async () => {
  const service = await serveNotify();
  const other = await EventClient.open(await streamUrl(service, { tenant_id: 'other' }));
  await other.untilType('open');
  await notify(service);
  await notify(service, { tenant_id: 'other', title: 'theirs' });
  await other.until(has(1));
  expect(other.events.map(({ data }) => data['title'])).toEqual([undefined, 'theirs']);
});

test('limits of streams, a bad place, other methods and paths', async () => {
  const service = await serveNotify({
    NOTIFY_MAX_CONNECTIONS: '3',
    NOTIFY_MAX_CONNECTIONS_PER_USER: '2',
  });
  const url = await streamUrl(service);
  const first = await EventClient.open(url);
  await EventClient.open(url);
  const tooMany = await statusOf(url);
  expect([tooMany.status, tooMany.reason]).toEqual([429, 'STREAM_LIMIT']);
  expect(tooMany.metadata).toEqual({ limit: 'user' });
  expect(tooMany.headers.get('retry-after')).toBe('5');
  await EventClient.open(await streamUrl(service, { user_id: 'bob' }));
  const full = await statusOf(await streamUrl(service, { user_id: 'carl' }));
  expect([full.status, full.metadata]).toEqual([429, { limit: 'instance' }]);
  first.close();
  await poll(() => series(service, 'notify_live_connections{device_type="web"}')).toBe(2);
  for (const place of ['-1', '1.5', 'x', '1'.repeat(16)]) {
    const answer = await statusOf(url, { 'last-event-id': place });
    expect([place, answer.status, answer.reason]).toEqual([place, 400, 'FIELD_INVALID']);
  }
  expect(await statusOf(url, {}, 'POST')).toMatchObject({ status: 405 });
  expect(await statusOf(`${service.clientUrl}/v2`)).toMatchObject({ status: 404 });
  const off = await serveNotify({ NOTIFY_LIVE_CONNECTIONS: 'false' });
  const refused = await statusOf(`${off.clientUrl}/v1/stream?access_token=x`);
  expect([refused.status, refused.reason]).toEqual([503, 'STREAMS_DISABLED']);
});

test('pages of allowed origins may open streams, with a preflight, others may not', async () => {
  const service = await serveNotify({ NOTIFY_ALLOWED_ORIGINS: 'https://app.example' });
  const url = await streamUrl(service);
  const preflight = await statusOf(
    url,
    { origin: 'https://app.example', 'access-control-request-headers': 'authorization' },
    'OPTIONS',
  );
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get('access-control-allow-origin')).toBe('https://app.example');
  expect(preflight.headers.get('access-control-allow-headers')).toContain('Authorization');
  expect(preflight.headers.get('vary')).toBe('origin');
  const client = await EventClient.open(url, { origin: 'https://app.example' });
  expect(client.headers['access-control-allow-origin']).toBe('https://app.example');
  await EventClient.open(url);
  for (const method of ['GET', 'OPTIONS']) {
    const refused = await statusOf(url, { origin: 'https://evil.example' }, method);
    expect([refused.status, refused.reason]).toEqual([403, 'ORIGIN_NOT_ALLOWED']);
    expect(refused.headers.get('access-control-allow-origin')).toBeNull();
  }
  const unauthorized = await statusOf(`${service.clientUrl}/v1/stream`, {
    origin: 'https://app.example',
  });
  // A page must be able to read why.
  expect(unauthorized.status).toBe(401);
  expect(unauthorized.headers.get('access-control-allow-origin')).toBe('https://app.example');
});

test('what is refused is counted by reason, and logged at most once a second for each', async () => {
  const service = await serveNotify({
    NOTIFY_MAX_CONNECTIONS_PER_USER: '1',
    NOTIFY_ALLOWED_ORIGINS: 'https://app.example',
  });
  const url = await streamUrl(service);
  await EventClient.open(url);
  for (let i = 0; i < 20; i++) await statusOf(url);
  await statusOf(`${service.clientUrl}/v1/stream?access_token=x`);
  await statusOf(url, { origin: 'https://evil.example' });
  await statusOf(await streamUrl(service, { user_id: 'bob' }), { 'last-event-id': 'x' });
  const countOf = (reason: string): Promise<number> =>
    series(service, `notify_connections_refused_total{reason="${reason}"}`);
  expect(await countOf('user_limit')).toBe(20);
  const others = ['token_invalid', 'origin_not_allowed', 'place_invalid', 'instance_limit'];
  expect(await Promise.all(others.map(countOf))).toEqual([1, 1, 1, 0]);
  const lines = service.events('stream_refused');
  expect(lines.length).toBeLessThan(15);
  const shown = lines.map(({ level, reason, detail }) => [level, reason, detail]);
  expect(shown[0]).toEqual(['warn', 'user_limit', 'acme/ann: the user has 1 streams open']);
  expect(shown).toContainEqual(['warn', 'token_invalid', expect.stringContaining('not valid')]);
  expect(shown).toContainEqual(['warn', 'origin_not_allowed', expect.stringContaining('origin')]);
  expect(shown).toContainEqual([
    'warn',
    'place_invalid',
    expect.stringMatching(/^acme\/bob: last/),
  ]);
  expect(service.rawLog.join('\n')).not.toContain(url.split('=').at(-1));
});

test('connections beyond what the listener takes are counted and told, too', async () => {
  const service = await serveNotify({ NOTIFY_MAX_CONNECTIONS: '1' });
  const { port, hostname } = new URL(service.clientUrl);
  const sockets = Array.from({ length: 270 }, () =>
    connect(Number(port), hostname).on('error', () => undefined),
  );
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  const name = 'notify_connections_refused_total{reason="connection_limit"}';
  await poll(() => series(service, name)).toBe(13);
  const [line] = service.events('connection_limit');
  expect(line).toMatchObject({
    level: 'warn',
    listener: 'client',
    detail: '257 connections are open',
  });
  expect(service.events('connection_limit').length).toBeLessThan(13);
});
