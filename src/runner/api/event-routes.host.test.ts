import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { EventClient } from '../../../test/support/event-client.ts';
import { createHttpServer } from '../../http/listener/http-server.ts';
import { EventHub, type EventHubOptions } from '../events/event-hub.ts';
import type { Step, WorkflowRun } from '../model/run.ts';
import { Access } from './access.ts';
import { serveApi } from './api-server.ts';
import { eventRoutes } from './event-routes.ts';

type Served = { readonly hub: EventHub; readonly url: string; readonly port: number };

async function serve(options: Partial<EventHubOptions> = {}): Promise<Served> {
  const hub = new EventHub({ subscribersMax: 256, bufferBytesMax: 1_048_576, ...options });
  const server = createHttpServer({ host: '127.0.0.1', port: 0 });
  let port = 0;
  const access = new Access(
    { host: '127.0.0.1', allowedHosts: [], allowedOrigins: [], apiToken: undefined },
    { apiToken: 'a-token', isTokenDemanded: () => false },
  );
  serveApi(
    server,
    {
      routes: eventRoutes(hub, { get: () => undefined }),
      access,
      openPaths: new Set(),
      queryTokenPaths: new Set(),
      maxBodyBytes: 1024,
      onFault: (error) => {
        throw error;
      },
      onRequest: () => undefined,
    },
    () => port,
  );
  ({ port } = await server.listen());
  onTestFinished(async () => {
    hub.close();
    await server.stop(0);
  });
  return { hub, port, url: `http://127.0.0.1:${port}/api/events` };
}

const STEP: Step = { number: 1, name: 's', status: 'completed', log: '', outputs: {} };

function stepStarted(hub: EventHub, runId: string, stepNumber: number): void {
  hub.publish({ type: 'step.started', runId, jobId: 'j', stepNumber, step: STEP });
}

function runCompleted(hub: EventHub, runId: string): void {
  hub.publish({ type: 'run.completed', runId, run: { id: runId } as WorkflowRun });
}

function lines(count: number, text = 'line'): string[] {
  return Array.from({ length: count }, (_, index) => `${text} ${index}`);
}

test('the stream begins with ping and has exactly the headers of the contract', async () => {
  const { port } = await serve();
  const head = await new Promise<string>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`GET /api/events HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`);
    });
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
      if (text.includes('data: {}\n\n')) socket.destroy();
    });
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });
  expect(head).toMatch(/^HTTP\/1.1 200 OK\r\n/);
  expect(head).toMatch(/\r\ncontent-type: text\/event-stream\r\n/i);
  expect(head).toMatch(/\r\ncache-control: no-cache\r\n/i);
  expect(head).toMatch(/\r\nconnection: keep-alive\r\n/i);
  expect(head).toMatch(/\r\nx-accel-buffering: no\r\n/i);
  expect(head).toMatch(/\r\naccess-control-allow-origin: \*\r\n/i);
  expect(head).toContain('\r\nevent: ping\ndata: {}\n\n');
});

test('events come in order, ids before names, each exactly once, lines escaped', async () => {
  const { hub, url } = await serve();
  const client = await EventClient.open(url);
  await client.untilType('ping');
  stepStarted(hub, 'r', 1);
  hub.publishLog('r', 'j', 1, ['a "quoted" \\ line', 'tab\t and \u2028 ümlaut', '']);
  hub.publish({ type: 'step.log', runId: 'r', jobId: 'j', stepNumber: 1, line: 'single' });
  runCompleted(hub, 'r');
  const events = await client.untilType('run.completed');
  expect(events.map(({ event, data }) => [event, data['line']])).toEqual([
    ['ping', undefined],
    ['step.started', undefined],
    ['step.log', 'a "quoted" \\ line'],
    ['step.log', 'tab\t and \u2028 ümlaut'],
    ['step.log', ''],
    ['step.log', 'single'],
    ['run.completed', undefined],
  ]);
  expect(events[2]?.data).toEqual({
    runId: 'r',
    jobId: 'j',
    stepNumber: 1,
    line: 'a "quoted" \\ line',
  });
  expect(events[1]?.data).toEqual({ runId: 'r', jobId: 'j', stepNumber: 1, step: STEP });
  const numbers = events.slice(1).map(({ id }) => Number(id.split('-')[1]));
  expect(numbers).toEqual([1, 2, 3, 4, 5, 6]);
  expect(client.text).toMatch(/id: \w+-1\nevent: step\.started\ndata: \{/);
});

test('pings keep coming', async () => {
  const { url } = await serve({ pingMs: 20 });
  const client = await EventClient.open(url);
  const events = await client.until((all) => all.length >= 3);
  expect(events.every(({ event, id }) => event === 'ping' && id === '')).toBe(true);
});

test('a subscriber that comes back gets what it missed, then what happens', async () => {
  const { hub, url } = await serve();
  stepStarted(hub, 'r', 1);
  hub.publishLog('r', 'j', 1, lines(5));
  const first = await EventClient.open(`${url}?lastEventId=none`);
  await first.untilType('reset');
  hub.publishLog('r', 'j', 1, lines(5, 'more'));
  const seen = await first.until((all) => all.length === 7);
  const lastId = seen.at(-3)?.id ?? '';
  first.close();

  const second = await EventClient.open(url, { 'last-event-id': lastId });
  runCompleted(hub, 'r');
  const events = await second.untilType('run.completed');
  expect(events.map(({ event, data }) => data['line'] ?? event)).toEqual([
    'ping',
    'more 3',
    'more 4',
    'run.completed',
  ]);
});

test('an id that is too old, from another process or no id at all leads to reset', async () => {
  const { hub, url } = await serve({ ringFramesMax: 10 });
  const early = await EventClient.open(url);
  stepStarted(hub, 'r', 1);
  const [, started] = await early.untilType('step.started');
  const id = started?.id ?? '';
  for (let i = 0; i < 30; i++) stepStarted(hub, 'r', i + 2);
  await early.until((all) => all.length === 32);
  const future = id.replace(/-\d+$/, '-1000');
  for (const lastId of [id, 'abcdef12-3', 'nonsense', future]) {
    const client = await EventClient.open(url, { 'last-event-id': lastId });
    const events = await client.untilType('reset');
    expect(events.map(({ event }) => event)).toEqual(['ping', 'reset']);
  }
  const newest = early.events.at(-1)?.id ?? '';
  const current = await EventClient.open(url, { 'last-event-id': newest });
  runCompleted(hub, 'r');
  const events = await current.untilType('run.completed');
  expect(events.map(({ event }) => event)).toEqual(['ping', 'run.completed']);
});

test('filters choose by run and by type', async () => {
  const { hub, url } = await serve();
  const one = await EventClient.open(`${url}?runId=r1&types=step.log,run.completed`);
  const all = await EventClient.open(url);
  await Promise.all([one.untilType('ping'), all.untilType('ping')]);
  for (const runId of ['r2', 'r1']) {
    stepStarted(hub, runId, 1);
    hub.publishLog(runId, 'j', 1, ['x']);
    runCompleted(hub, runId);
  }
  const events = await one.untilType('run.completed');
  expect(events.map(({ event, data }) => [event, data['runId']])).toEqual([
    ['ping', undefined],
    ['step.log', 'r1'],
    ['run.completed', 'r1'],
  ]);
  await all.until((seen) => seen.length === 7);
  await expect(EventClient.open(`${url}?types=step.logs`)).rejects.toThrow('status 400');
  await expect(EventClient.open(`${url}?runId=../x`)).rejects.toThrow('status 400');
});

test('one subscriber too many gets 429; a place that is left is free again', async () => {
  const { hub, url } = await serve({ subscribersMax: 2 });
  const first = await EventClient.open(url);
  await EventClient.open(url);
  const refused = await fetch(url);
  expect(refused.status).toBe(429);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(await refused.json()).toMatchObject({ error: { code: 'too_many_subscribers' } });
  expect((await fetch(url, { method: 'HEAD' })).status).toBe(200);
  first.close();
  while (hub.stats.subscribers > 1) await new Promise((resolve) => setTimeout(resolve, 5));
  await EventClient.open(url);
});

test('a slow subscriber loses lines to a gap, no event of a run, and nobody else notices', async () => {
  const { hub, url } = await serve({ bufferBytesMax: 256 * 1024 });
  const slow = await EventClient.open(url);
  await slow.untilType('ping');
  slow.pause();
  const fast = await EventClient.open(url);
  await fast.untilType('ping');
  let sent = 0;
  while (hub.stats.dropped === 0) {
    const batch = lines(200, 'x'.repeat(500));
    hub.publishLog('r', 'j', 1, batch);
    sent += batch.length;
    await fast.until((all) => all.length >= sent + 1);
  }
  stepStarted(hub, 'r', 2);
  hub.publishLog('r', 'j', 2, lines(100, 'late'));
  runCompleted(hub, 'r');
  slow.resume();
  const seen = await slow.untilType('run.completed');
  const gaps = seen.filter(({ event }) => event === 'gap');
  const dropped = gaps.reduce((sum, { data }) => sum + Number(data['dropped']), 0);
  const received = seen.filter(({ event }) => event === 'step.log').length;
  expect(gaps.every(({ data }) => data['runId'] === 'r')).toBe(true);
  expect(received + dropped).toBe(sent + 100);
  expect(seen.filter(({ event }) => event === 'step.started')).toHaveLength(1);
  // The gap stands where the lines are missing: before the event that followed them.
  const firstGap = seen.findIndex(({ event }) => event === 'gap');
  expect(firstGap).toBeLessThan(seen.findIndex(({ event }) => event === 'step.started'));
  const others = await fast.untilType('run.completed');
  expect(others.filter(({ event }) => event === 'step.log')).toHaveLength(sent + 100);
  expect(others.some(({ event }) => event === 'gap')).toBe(false);
  // It has caught up: what comes now comes whole.
  hub.publishLog('r', 'j', 3, ['again']);
  const after = await slow.until((all) => all.at(-1)?.data['line'] === 'again');
  expect(after.at(-1)?.event).toBe('step.log');
});

test('a subscriber that takes nothing at all is disconnected when events of runs no longer fit', async () => {
  const { hub, url } = await serve({ bufferBytesMax: 128 * 1024 });
  const stuck = await EventClient.open(url);
  await stuck.untilType('ping');
  stuck.pause();
  let stepNumber = 0;
  while (hub.stats.subscribers > 0) {
    stepNumber += 1;
    const step = { ...STEP, name: 'n'.repeat(10_000) };
    hub.publish({ type: 'step.started', runId: 'r', jobId: 'j', stepNumber, step });
    await new Promise((resolve) => setImmediate(resolve));
  }
  stuck.resume();
  await stuck.until(() => false);
  expect(stuck.isClosed).toBe(true);
});

test('a slow reader of the history gets all of it', async () => {
  const { hub, url } = await serve({ bufferBytesMax: 64 * 1024 });
  const first = await EventClient.open(url);
  stepStarted(hub, 'r', 1);
  const [, started] = await first.untilType('step.started');
  first.close();
  const text = 'y'.repeat(1_000);
  for (let i = 0; i < 9; i++) hub.publishLog('r', 'j', 1, lines(1_000, text));
  const late = await EventClient.open(url, { 'last-event-id': started?.id ?? '' });
  late.pause();
  hub.publishLog('r', 'j', 1, ['last']);
  runCompleted(hub, 'r');
  late.resume();
  const events = await late.untilType('run.completed');
  const logs = events.filter(({ event }) => event === 'step.log');
  expect(logs).toHaveLength(9_001);
  expect(logs.at(-1)?.data['line']).toBe('last');
  expect(events.some(({ event }) => event === 'gap')).toBe(false);
});

test('64 subscribers each get every one of 20,000 lines', async () => {
  const { hub, url } = await serve({ bufferBytesMax: 64 * 1_048_576 });
  const clients = await Promise.all(Array.from({ length: 64 }, () => EventClient.open(url)));
  for (let i = 0; i < 20; i++) {
    hub.publishLog('r', 'j', 1, lines(1_000, `batch ${i}`));
    await new Promise((resolve) => setImmediate(resolve));
  }
  runCompleted(hub, 'r');
  for (const client of clients) {
    const events = await client.untilType('run.completed');
    const logs = events.filter(({ event }) => event === 'step.log');
    expect(logs).toHaveLength(20_000);
    expect(logs[19_999]?.data['line']).toBe('batch 19 999');
  }
});

test('closing completes the streams and refuses new ones', async () => {
  const { hub, url } = await serve();
  const client = await EventClient.open(url);
  await client.untilType('ping');
  runCompleted(hub, 'r');
  hub.close();
  const events = await client.until(() => false);
  expect(events.at(-1)?.event).toBe('run.completed');
  expect((await fetch(url)).status).toBe(503);
});
