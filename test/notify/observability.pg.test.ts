import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createNotifyMetrics } from '../../src/notify/service/metrics.ts';
import { loadNotifySettings } from '../../src/notify/service/settings.ts';
import type { LogLine } from '../support/child-service.ts';
import { EventClient } from '../support/event-client.ts';
import { isOfPlatform } from '../support/http1-parsers.ts';
import { inLong, inShort } from '../support/test-length.ts';
import { parseExposition } from './support/exposition.ts';
import {
  call,
  mustCall,
  type NotifyProcess,
  notify,
  series,
  spawnNotify,
  startNotify,
  streamUrl,
} from './support/notify-process.ts';
import { serveNotify } from './support/notify-service.ts';
import { poll } from './support/poll.ts';
import { UnreadStream } from './support/unread-stream.ts';
import { startReceiver } from './support/webhook-receiver.ts';

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

async function healthz(service: Pick<NotifyProcess, 'metricsUrl'>, path = '/healthz') {
  const response = await fetch(`${service.metricsUrl}${path}`);
  const text = await response.text();
  return [response.status, text, response.headers.get('cache-control')];
}

inShort(test)('logs each named event with exactly its fields, one JSON object a line', async () => {
  const service = await startNotify({
    NOTIFY_COMMIT: 'abc123',
    NOTIFY_CONNECTION_BUFFER_EVENTS: '1',
    NOTIFY_SEND_ATTEMPTS: '1',
  });
  const user = { tenant_id: '"\\{}', user_id: "'\\n[2J" };
  const url = new URL(await streamUrl(service, { ...user, device_type: 'ios' }));
  const unread = await UnreadStream.dropping(service, url, 1, user);
  const receiver = await startReceiver((response) =>
    response.socket?.end('HTTP/1.1 200 \u0007\u001b[2J\r\nbad header\r\n\r\n'),
  );
  const hook = { id: 'hook', tenant_id: 'acme', channel: 'CHANNEL_WEBHOOK', address: receiver.url };
  const secret = { signing_secret: 'sixteen characters' };
  await mustCall(service, 'PutEndpoint', { endpoint: hook, ...secret });
  const failing = await notify(service, { channels: ['CHANNEL_WEBHOOK'], title: 'a secret title' });
  await poll(() => service.events('retry_failed')).toHaveLength(1);
  unread.socket.destroy();
  await poll(() => unread.events('stream_close')).toHaveLength(1);
  service.signal('SIGTERM');
  expect(await service.exited).toBe(0);

  for (const raw of service.rawLog) {
    // oxlint-disable-next-line no-control-regex -- control characters are what must not be there
    expect(raw).toMatch(/^\{[^\u0000-\u001f]*\}$/);
    const line = JSON.parse(raw) as Record<string, unknown>;
    expect(line['time']).toMatch(ISO);
    expect(['info', 'warn']).toContain(line['level']);
  }
  expect(service.rawLog.join('\n')).not.toMatch(/a secret title|sixteen characters|xxxx/);
  const withoutTime = ({ time: _time, ...rest }: LogLine) => rest;
  const shown = (msg: string) => service.events(msg).map(withoutTime);
  const ofStream = (msg: string) => unread.events(msg).map(withoutTime);
  const stream = {
    connection_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    ...user,
    device_type: 'ios',
  };
  expect(shown('notifyd_starting')).toEqual([
    {
      level: 'info',
      msg: 'notifyd_starting',
      pid: service.pid,
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      commit: 'abc123',
      store_driver: 'postgres',
      live_connections: true,
      client_port: 0,
      internal_port: 0,
      metrics_port: 0,
    },
  ]);
  expect(service.log[0]?.msg).toBe('notifyd_starting');
  expect(shown('server_listen')).toEqual(
    ['metrics', 'internal', 'client'].map((listener) => ({
      level: 'info',
      msg: 'server_listen',
      listener,
      address: '127.0.0.1',
      port: expect.any(Number),
    })),
  );
  expect(ofStream('stream_open')).toEqual([{ level: 'info', msg: 'stream_open', ...stream }]);
  expect(ofStream('stream_close')).toEqual([
    { ...ofStream('stream_open')[0], msg: 'stream_close' },
  ]);
  for (const line of shown('event_queue_full')) {
    expect(line).toEqual({ level: 'warn', msg: 'event_queue_full', ...stream });
  }
  expect(shown('retry_failed')).toEqual([
    {
      level: 'warn',
      msg: 'retry_failed',
      key: failing['id'],
      connection_id: 'hook',
      attempt: 1,
      error: expect.stringMatching(/Parse Error/),
      tenant_id: 'acme',
      user_id: 'ann',
      delivery_id: `${String(failing['id'])}.hook`,
    },
  ]);
  expect(shown('server_shutdown_signal')).toEqual([
    { level: 'info', msg: 'server_shutdown_signal', signal: 'SIGTERM' },
  ]);
  expect(service.events('server_shutdown_error')).toEqual([]);
  const named = new Set(
    service.log.map(({ msg }) => msg ?? '').filter((msg) => !isOfPlatform(msg)),
  );
  expect([...named].sort()).toEqual(
    [
      'notifyd_starting',
      'server_listen',
      'stream_open',
      'stream_close',
      'event_queue_full',
      'retry_failed',
      'server_shutdown_signal',
    ].sort(),
  );
});

inShort(test)('at debug each call has a line, failed ones, too', async () => {
  const service = await serveNotify({ NOTIFY_LOG_LEVEL: 'debug' });
  await call(service, 'Notify', {}, { 'x-request-id': 'r1' });
  await call(service, 'ListNotifications', { tenant_id: 'a', user_id: 'b' });
  await call(service, 'Notify', {}, { authorization: 'Bearer wrong' });
  await call(service, 'NoSuchMethod', {});
  const lines = service.events('rpc');
  expect(lines.map(({ procedure }) => procedure)).toEqual([
    '/notify.v1.NotifyService/Notify',
    '/notify.v1.NotifyService/ListNotifications',
    '/notify.v1.NotifyService/Notify',
  ]);
  expect(lines[0]).toEqual({
    level: 'debug',
    time: expect.stringMatching(ISO),
    msg: 'rpc',
    procedure: '/notify.v1.NotifyService/Notify',
    duration_ms: expect.any(Number),
    request_id: 'r1',
  });
});

/** That the level a service was started with is none, counts as info, and was told once. */
async function expectInvalidLevel(service: NotifyProcess): Promise<void> {
  await call(service, 'Notify', {});
  const warned = service.log.filter(({ level, msg }) => level === 'warn' && !isOfPlatform(msg));
  expect(warned).toEqual([
    {
      level: 'warn',
      time: expect.stringMatching(ISO),
      msg: 'setting_invalid',
      setting: 'NOTIFY_LOG_LEVEL',
      accepts: ['debug', 'info', 'warn', 'error'],
      used: 'info',
    },
  ]);
  expect(service.events('server_listen')).toHaveLength(3);
  expect(service.events('rpc')).toEqual([]);
}

// In short a test of health shows it, which has a process anyway.
inLong(test.each(['verbose', 'INFO', 'fatal', 'silent']))(
  'the invalid level %j counts as info and is told once',
  async (level) => {
    await expectInvalidLevel(await startNotify({ NOTIFY_LOG_LEVEL: level }));
  },
);

/** The lines that a process wrote until it ended by itself, and its exit code. */
async function ended(env: Record<string, string>): Promise<{ code: number | null; text: string }> {
  const child = spawnNotify(env);
  let text = '';
  child.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, text };
}

inShort(test)('wrong settings are told all at once, with exit code 2, and no secret', async () => {
  const { code, text } = await ended({
    NOTIFY_CLIENT_PORT: '70000',
    NOTIFY_STORE_DRIVER: 'memory',
    NOTIFY_STREAM_SECRET: 'too short',
    NOTIFY_SMTP_URL: 'http://user:hunter2@x',
    NOTIFY_DRAINMS: '1',
    NOTIFY_MAIL_FROM: 'nobody',
    NOTIFY_SOCKET: '/run/systemd/notify',
  });
  expect(code).toBe(2);
  for (const name of [
    'NOTIFY_CLIENT_PORT',
    'NOTIFY_STORE_DRIVER: must be one of postgres',
    'NOTIFY_STREAM_SECRET',
    'NOTIFY_SMTP_URL',
    'NOTIFY_DRAINMS: no such setting; did you mean NOTIFY_DRAIN_MS?',
    'NOTIFY_MAIL_FROM',
  ]) {
    expect(text).toContain(name);
  }
  expect(text).not.toMatch(/too short|hunter2|NOTIFY_SOCKET/);
  const clash = { NOTIFY_CLIENT_PORT: '19100', NOTIFY_METRICS_PORT: '19100' };
  expect(() => loadNotifySettings(clash)).toThrow('must differ');
  expect(loadNotifySettings({ NOTIFY_STORE_DRIVER: 'postgres' }).storeDriver).toBe('postgres');
});

inShort(test)(
  'a port that is taken, or a database that is away, ends the start with code 1',
  async () => {
    const taker = createServer().listen(0, '127.0.0.1');
    await once(taker, 'listening');
    onTestFinished(() => {
      taker.close();
    });
    const { port } = taker.address() as AddressInfo;
    await expect(serveNotify({ NOTIFY_CLIENT_PORT: String(port) })).rejects.toThrow('EADDRINUSE');
    const away = await ended({
      DATABASE_URL: 'postgres://nobody:hunter2@127.0.0.1:1/none',
    });
    expect(away.code).toBe(1);
    expect(away.text).toContain('start_failed');
    expect(away.text).not.toContain('hunter2');
  },
);

inShort(test)(
  'health: ok when all listeners are bound, not ready from the signal until the end; an invalid level is told once',
  async () => {
    const service = await startNotify({ NOTIFY_DRAIN_MS: '1500', NOTIFY_LOG_LEVEL: 'info debug' });
    await expectInvalidLevel(service);
    for (const path of ['/healthz', '/health']) {
      expect(await healthz(service, path)).toEqual([200, '{"status":"ok"}', 'no-store']);
    }
    const posted = await fetch(`${service.metricsUrl}/healthz`, { method: 'POST' });
    expect(posted.status).toBe(405);
    const client = await EventClient.open(await streamUrl(service));
    await client.untilType('open');
    const begunMs = performance.now();
    service.signal('SIGTERM');
    await poll(() => service.events('server_shutdown_signal')).toHaveLength(1);
    // All the while: health says no, liveness and everything else yes.
    let served = 0;
    while (performance.now() - begunMs < 1_000 && served < 10) {
      expect(await healthz(service)).toEqual([503, '{"status":"not_ready"}', 'no-store']);
      expect((await healthz(service, '/health'))[0]).toBe(503);
      expect((await healthz(service, '/livez'))[0]).toBe(200);
      expect(await series(service, 'notify_ready')).toBe(0);
      await notify(service, { title: `during ${++served}` });
      const late = await EventClient.open(await streamUrl(service, { user_id: `late${served}` }));
      await late.untilType('open');
    }
    expect(served).toBeGreaterThan(0);
    await client.until(() => false);
    const titles = client.events.flatMap(({ event, data }) =>
      event === 'notification' ? [data['title']] : [],
    );
    expect(titles).toEqual(Array.from({ length: served }, (_, i) => `during ${i + 1}`));
    // Told when to come back, spread over some seconds.
    expect(client.text).toMatch(/retry: \d{3,4}\n\n$/);
    expect(await service.exited).toBe(0);
    expect(performance.now() - begunMs).toBeGreaterThanOrEqual(1_500);
    expect(service.events('stream_close')).toHaveLength(served + 1);
  },
);

inShort(test)(
  'health: not ready while the store is not there yet, and no second signal is needed to end that',
  async () => {
    // A database that takes connections and says nothing.
    const mute = createServer((socket) => socket.on('error', () => undefined));
    mute.listen(0, '127.0.0.1');
    await once(mute, 'listening');
    onTestFinished(() => {
      mute.close();
    });
    const { port } = mute.address() as AddressInfo;
    const child = spawnNotify({
      DATABASE_URL: `postgres://x:y@127.0.0.1:${port}/z`,
      // Or the whole time-out is waited for.
      NOTIFY_SHUTDOWN_TIMEOUT_MS: '0',
    });
    let text = '';
    child.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()));
    const bound = (): string | undefined => /"listener":"metrics".*"port":(\d+)/.exec(text)?.[1];
    await poll(bound).toBeDefined();
    const service = { metricsUrl: `http://127.0.0.1:${bound()}` };
    expect(await healthz(service)).toEqual([503, '{"status":"not_ready"}', 'no-store']);
    expect((await healthz(service, '/livez'))[0]).toBe(200);
    expect(
      parseExposition(await (await fetch(`${service.metricsUrl}/metrics`)).text()).size,
    ).toBeGreaterThan(7);
    child.kill('SIGTERM');
    await once(child, 'exit');
    expect(text).toContain('server_shutdown_signal');
    expect(text).not.toContain('"listener":"client"');
  },
);

inShort(test)(
  'a second signal ends at once with code 1, unless it is an echo of the first',
  async () => {
    const service = await startNotify({ NOTIFY_DRAIN_MS: '60000', NOTIFY_LOG_LEVEL: 'debug' });
    // Secrets are not among the settings that are logged at this level.
    expect(JSON.stringify(service.events('settings'))).toContain(
      '"NOTIFY_SERVICE_AUTH_TOKENS":"redacted"',
    );
    service.signal('SIGINT');
    await poll(() => service.events('server_shutdown_signal')).toHaveLength(1);
    // As npm passes on what the terminal has sent already.
    service.signal('SIGTERM');
    await sleep(1_100);
    expect(service.events('server_shutdown_signal')).toHaveLength(1);
    service.signal('SIGTERM');
    expect(await service.exited).toBe(1);
    const signals = service.events('server_shutdown_signal').map(({ signal }) => signal);
    expect(signals).toEqual(['SIGINT', 'SIGTERM']);
  },
);

inShort(test)('deliveries in progress end before the service does', async () => {
  const service = await serveNotify({ NOTIFY_SHUTDOWN_TIMEOUT_MS: '60000' });
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const receiver = await startReceiver((response) => {
    void released.then(() => response.writeHead(200).end());
  });
  const hook = { id: 'hook', tenant_id: 'acme', channel: 'CHANNEL_WEBHOOK', address: receiver.url };
  await mustCall(service, 'PutEndpoint', { endpoint: hook, signing_secret: 'sixteen characters' });
  await notify(service, { channels: ['CHANNEL_WEBHOOK'] });
  await poll(() => receiver.received).toHaveLength(1);
  const stopping = service.stop();
  await poll(() => fetch(service.internalUrl).catch(() => 'gone')).toBe('gone');
  expect((await healthz(service))[0]).toBe(503);
  release();
  await stopping;
  expect(service.events('retry_failed')).toEqual([]);
});

const SEVEN: Readonly<Record<string, readonly [string, readonly string[]]>> = {
  notify_notify_requests_total: ['counter', ['code']],
  notify_send_total: ['counter', ['channel', 'provider', 'status']],
  notify_send_duration_seconds: ['histogram', ['channel', 'provider']],
  notify_store_op_total: ['counter', ['code', 'op']],
  notify_store_op_duration_seconds: ['histogram', ['op']],
  notify_live_connections: ['gauge', ['device_type']],
  notify_stream_events_total: ['counter', ['kind']],
};

inShort(test)(
  'metrics: the seven series exist from the first scrape, and stay the same set',
  async () => {
    const service = await serveNotify();
    const scrape = async () => {
      const response = await fetch(`${service.metricsUrl}/metrics`);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4');
      return parseExposition(await response.text());
    };
    const first = await scrape();
    for (const [name, [type, labels]] of Object.entries(SEVEN)) {
      const family = first.get(name);
      expect([name, family?.type, family?.help.length]).toEqual([name, type, expect.any(Number)]);
      expect(family?.samples.length).toBeGreaterThan(0);
      for (const sample of family?.samples ?? []) {
        const names = Object.keys(sample.labels).filter((label) => label !== 'le');
        expect(names.sort()).toEqual(labels);
        if (!name.startsWith('notify_store_op')) expect([name, sample.value]).toEqual([name, 0]);
      }
    }
    const client = await EventClient.open(await streamUrl(service, { device_type: 'unheard of' }));
    await client.untilType('open');
    await notify(service);
    await call(service, 'Notify', {});
    await client.until((events) => events.length > 1);
    const second = await scrape();
    const namesOf = (families: typeof first) =>
      [...families].flatMap(([name, { samples }]) =>
        samples.map(({ series: one }) => `${name} ${one}`),
      );
    // No label set is made by what happens: the series are closed.
    expect(namesOf(second)).toEqual(namesOf(first));
    const value = (name: string): number | undefined =>
      [...second.values()].flatMap(({ samples }) => samples).find((one) => one.series === name)
        ?.value;
    expect(value('notify_notify_requests_total{code="ok"}')).toBe(1);
    expect(value('notify_notify_requests_total{code="invalid_argument"}')).toBe(1);
    expect(value('notify_send_total{channel="live",provider="sse",status="sent"}')).toBe(1);
    expect(value('notify_send_duration_seconds_count{channel="live",provider="sse"}')).toBe(1);
    expect(value('notify_store_op_total{op="put",code="ok"}')).toBe(1);
    expect(value('notify_store_op_duration_seconds_count{op="put"}')).toBe(1);
    expect(value('notify_live_connections{device_type="other"}')).toBe(1);
    expect(value('notify_stream_events_total{kind="open"}')).toBe(1);
    expect(value('notify_stream_events_total{kind="notification"}')).toBe(1);
    expect(JSON.stringify(namesOf(second))).not.toContain('acme');
    const promtool = spawnSync('promtool', ['check', 'metrics'], {
      input: await (await fetch(`${service.metricsUrl}/metrics`)).text(),
      encoding: 'utf8',
    });
    // Not on every machine; the parser above is strict anyway.
    if (promtool.error === undefined) {
      expect([promtool.status, promtool.stdout + promtool.stderr]).toEqual([0, '']);
    }
  },
);

inShort(test)('metrics stay parseable when a collector throws, and say so', async () => {
  const metrics = createNotifyMetrics('1', 'a"\\\nb');
  metrics.onCollect(() => {
    throw new Error('no figures');
  });
  const families = parseExposition(await metrics.render());
  expect(families.get('notify_scrape_errors_total')?.samples[0]?.value).toBe(1);
  expect(families.get('notify_build_info')?.samples[0]?.labels['commit']).toBe('a"\\\nb');
});
