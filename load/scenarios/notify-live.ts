import { fork, type ChildProcess } from 'node:child_process';
import { LoadClient, failureOf } from '../../bench/harness/client.ts';
import { cpuSeconds } from '../../bench/harness/service.ts';
import { type DueIssue, runAtRate } from '../harness/arrivals.ts';
import { askChild, reportOf } from '../harness/ask-child.ts';
import {
  metricSum,
  type NotifyService,
  residentBytes,
  startNotifyService,
} from '../harness/notify-service.ts';
import type { LoadOptions, Scenario } from '../harness/scenario.ts';
import type { StreamAnswer, StreamReport } from '../notify-stream-clients.ts';

/** At scale 1. */
const STREAMS = 2_000;
const DEVICES_OF_USER = 2;
const PER_SECOND = 1_000;
const CONNECTIONS_MAX = 1_024;
const WARM_UP_SECONDS = 3;
/** How long what was sent last may be on its way. */
const ARRIVAL_MS_MAX = 15_000;
const METHOD = '/notify.v1.NotifyService/';

export const notifyLive: Scenario = {
  name: 'notify-live',
  purpose: '2,000 live streams (times --scale) and 1,000 notifications a second',
  question:
    'How long after it was due does a notification reach the streams of its user, and what does a stream cost?',
  run: runOnce,
};

async function runOnce(options: LoadOptions): Promise<Record<string, unknown>> {
  const service = await startNotifyService({});
  const streams = fork('load/notify-stream-clients.ts');
  const client = new LoadClient({
    baseUrl: service.internalUrl,
    // Opened as they are needed, so that nothing waits for one.
    connections: CONNECTIONS_MAX,
    token: service.token,
  });
  try {
    return await measure(service, streams, client, options);
  } finally {
    streams.disconnect();
    await client.close();
    await service.stop();
  }
}

async function measure(
  service: NotifyService,
  streams: ChildProcess,
  client: LoadClient,
  options: LoadOptions,
): Promise<Record<string, unknown>> {
  const userCount = Math.max(1, Math.round((STREAMS * options.scale) / DEVICES_OF_USER));
  const perSecond = options.rate ?? PER_SECOND;
  const rssFresh = await residentBytes(service.pid);
  // Before the figures of streams, so that what is loaded and compiled once is not counted to streams.
  await runAtRate({ perSecond, seconds: WARM_UP_SECONDS, issue: notifyIssue(client, 1, false) });
  const paths = await streamPaths(client, userCount);
  const rssBefore = await residentBytes(service.pid);
  const opened = await askChild<StreamAnswer>(streams, {
    kind: 'open',
    port: service.clientPort,
    paths,
  });
  const rssOpen = await residentBytes(service.pid);
  const issue = notifyIssue(client, userCount, true);
  await runAtRate({
    perSecond,
    seconds: WARM_UP_SECONDS,
    issue: notifyIssue(client, userCount, false),
  });
  const cpuBefore = await cpuSeconds(service.pid);
  const calls = await runAtRate({ perSecond, seconds: options.seconds, issue });
  const cpuS = (await cpuSeconds(service.pid)) - cpuBefore;
  const delivered = await reportOf<StreamReport>(
    streams,
    (calls.count - calls.failed) * DEVICES_OF_USER,
    ARRIVAL_MS_MAX,
  );
  const { kind: _kind, ...delivery } = delivered;
  return {
    streams: paths.length,
    openedMs: 'tookMs' in opened ? opened.tookMs : Number.NaN,
    calls,
    expectedDeliveries: (calls.count - calls.failed) * DEVICES_OF_USER,
    delivery,
    dropped: await metricSum(service, 'notify_events_dropped_total'),
    replayed: await metricSum(service, 'notify_stream_events_total', 'kind="replay"'),
    cpuCores: cpuS / options.seconds,
    rssFreshMb: rssFresh / 1e6,
    rssBeforeMb: rssBefore / 1e6,
    rssOpenMb: rssOpen / 1e6,
    rssAfterMb: (await residentBytes(service.pid)) / 1e6,
    rssPerStreamKb: (rssOpen - rssBefore) / 1e3 / paths.length,
  };
}

/** Notifies users in turn; measured ones carry when they were due, on the clock that processes share. */
function notifyIssue(client: LoadClient, userCount: number, isMeasured: boolean): DueIssue {
  const offsetUs = Number(process.hrtime.bigint() / 1_000n) - performance.now() * 1_000;
  return (index, done, dueMs) => {
    const body = {
      tenant_id: 'load',
      user_id: `u${index % userCount}`,
      channels: ['CHANNEL_LIVE'],
      title: 'Build 4711 of main has passed',
      body: 'All 812 tests passed in 3 minutes. Nobody needs to do anything.',
      data: isMeasured ? { due_us: Math.round(dueMs * 1_000 + offsetUs) } : {},
    };
    client.post(`${METHOD}Notify`, JSON.stringify(body), (reply, error) =>
      done(failureOf(reply, error)),
    );
  };
}

async function streamPaths(client: LoadClient, userCount: number): Promise<readonly string[]> {
  const types = ['web', 'ios', 'android', 'desktop'];
  const minted = Array.from({ length: userCount * DEVICES_OF_USER }, async (_, i) => {
    const { token } = await client.call(`${METHOD}CreateStreamToken`, {
      tenant_id: 'load',
      user_id: `u${i % userCount}`,
      device_type: types[i % types.length],
      ttl_seconds: 3_600,
    });
    return `/v1/stream?access_token=${String(token)}`;
  });
  return Promise.all(minted);
}
