import { type ChildProcess, fork } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { LoadClient, failureOf } from '../../bench/harness/client.ts';
import { cpuSecondsOf } from '../../bench/harness/cpu.ts';
import { percentilesOf } from '../drive/counts.ts';
import { LatencyHistogram } from '../drive/latency-histogram.ts';
import type { StreamCommand, StreamReport } from '../notify-stream-clients.ts';
import { type NotifyService, startNotifyService } from './notify-service.ts';
import type { LoadOptions, Scenario, ScenarioResult } from './scenario.ts';

/** At scale 1. */
const STREAMS = 2_000;
const DEVICES_OF_USER = 2;
const CONNECTIONS_MAX = 1_024;
const WARM_UP_SECONDS = 3;
/** How long what was sent last may be on its way. */
const ARRIVAL_MS_MAX = 15_000;
const METHOD = '/notify.v1.NotifyService/';

export const notifyLive: Scenario = {
  name: 'notify-live',
  question:
    'How long after it was due does a notification reach the live streams of its user, and what does a stream cost?',
  run: async (options) => {
    const service = await startNotifyService();
    const streams = fork(new URL('../notify-stream-clients.ts', import.meta.url), { execArgv: [] });
    const { internalUrl: baseUrl, token } = service;
    // Opened as they are needed, so that nothing waits for one.
    const client = new LoadClient({ baseUrl, connections: CONNECTIONS_MAX, token });
    const result = await measure(service, streams, client, options);
    streams.disconnect();
    await client.close();
    return result;
  },
};

async function measure(
  service: NotifyService,
  streams: ChildProcess,
  client: LoadClient,
  { scale, seconds, rate = 1_000 }: LoadOptions,
): Promise<ScenarioResult> {
  const users = Math.max(1, Math.round((STREAMS * scale) / DEVICES_OF_USER));
  const memory = (): Promise<number> => service.metric('process_resident_memory_bytes');
  // Before the figures of streams, so that what is loaded and compiled once is not counted to streams.
  await notifyAll(client, 1, rate, WARM_UP_SECONDS);
  const paths = await streamPaths(client, users);
  const before = await memory();
  await tell(streams, { kind: 'open', port: service.clientPort, paths });
  const opened = await memory();
  await notifyAll(client, users, rate, WARM_UP_SECONDS);
  const cpuBefore = cpuSecondsOf(service.pid);
  const calls = await notifyAll(client, users, rate, seconds, true);
  const cpuCores = (cpuSecondsOf(service.pid) - cpuBefore) / seconds;
  const expected = (calls.called - calls.failed) * DEVICES_OF_USER;
  const untilMs = performance.now() + ARRIVAL_MS_MAX;
  let delivered = await tell(streams, { kind: 'report' });
  while (delivered.received < expected && performance.now() < untilMs) {
    await delay(200);
    delivered = await tell(streams, { kind: 'report' });
  }
  const figures = {
    streams: paths.length,
    calls,
    expected,
    delivered,
    dropped: await service.metric('notify_events_dropped_total'),
    cpuCores,
    residentMib: (await memory()) / 2 ** 20,
    kibPerStream: (opened - before) / 1024 / paths.length,
  };
  return { figures };
}

/** Errors: throws when the process ends before it answers. */
function tell(streams: ChildProcess, command: StreamCommand): Promise<StreamReport> {
  return new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error('the process with the streams ended'));
    streams.once('exit', onExit);
    streams.once('message', (report) => {
      streams.off('exit', onExit);
      resolve(report as StreamReport);
    });
    streams.send(command);
  });
}

/** Notifies users in turn, each call at its time; measured ones carry when they were due, on the clock that processes share. */
async function notifyAll(
  client: LoadClient,
  users: number,
  rate: number,
  seconds: number,
  isMeasured = false,
) {
  const offsetUs = Number(process.hrtime.bigint() / 1_000n) - performance.now() * 1_000;
  const histogram = new LatencyHistogram();
  const failures: string[] = [];
  const startMs = performance.now();
  const call = (index: number, dueMs: number): Promise<void> => {
    const body = {
      tenant_id: 'load',
      user_id: `u${index % users}`,
      channels: ['CHANNEL_LIVE'],
      title: 'Build 4711 of main has passed',
      body: 'All 812 tests passed in 3 minutes. Nobody needs to do anything.',
      data: isMeasured ? { due_us: Math.round(dueMs * 1_000 + offsetUs) } : {},
    };
    return new Promise((resolve) => {
      client.post(`${METHOD}Notify`, JSON.stringify(body), (reply, error) => {
        histogram.record(performance.now() - dueMs);
        const failure = failureOf(reply, error);
        if (failure !== undefined) failures.push(failure);
        resolve();
      });
    });
  };
  const calls: Promise<void>[] = [];
  while (calls.length < rate * seconds) {
    const dueMs = startMs + (calls.length * 1_000) / rate;
    if (dueMs > performance.now()) await delay(1);
    else calls.push(call(calls.length, dueMs));
  }
  await Promise.all(calls);
  return {
    called: calls.length,
    failed: failures.length,
    failures: failures.slice(0, 3),
    latencies: percentilesOf(histogram),
  };
}

async function streamPaths(client: LoadClient, users: number): Promise<readonly string[]> {
  const minted = Array.from({ length: users * DEVICES_OF_USER }, async (_, i) => {
    const { token } = await client.call(`${METHOD}CreateStreamToken`, {
      tenant_id: 'load',
      user_id: `u${i % users}`,
      device_type: i < users ? 'web' : 'ios',
      ttl_seconds: 3_600,
    });
    return `/v1/stream?access_token=${String(token)}`;
  });
  return Promise.all(minted);
}
