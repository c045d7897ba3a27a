import { fork } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { LoadClient, failureOf } from '../../bench/harness/client.ts';
import { type DueIssue, runAtRate } from '../harness/arrivals.ts';
import { askChild, reportOf } from '../harness/ask-child.ts';
import { type NotifyService, startNotifyService } from '../harness/notify-service.ts';
import type { LoadOptions, Scenario } from '../harness/scenario.ts';
import type { HookReport } from '../notify-hook-receiver.ts';
import type { StreamReport } from '../notify-stream-clients.ts';

/** Tenants that flood, each with as many endpoints that never answer. */
const LOUD_TENANTS = 10;
const STALLED_OF_TENANT = 4;
/** Streams of each that are opened and never read. */
const UNREAD_OF_TENANT = 4;
/** Notifications a second: of the quiet tenant, and of all others together at scale 1. */
const QUIET_PER_SECOND = 20;
const LOUD_PER_SECOND = 50;
const CONNECTIONS_MAX = 256;
const WARM_UP_SECONDS = 3;
const ARRIVAL_MS_MAX = 30_000;
const METHOD = '/notify.v1.NotifyService/';

export const notifyFair: Scenario = {
  name: 'notify-fair',
  purpose: 'a quiet tenant’s webhooks and streams, alone and while ten tenants flood and stall',
  question:
    'How much later do the webhooks and live events of a quiet tenant arrive while ten others flood, with endpoints that never answer?',
  async run(options) {
    const service = await startNotifyService({
      NOTIFY_WEBHOOK_ALLOW_PRIVATE: 'true',
    });
    try {
      const alone = await measure(service, options, 0);
      const loudPerSecond = Math.round((options.rate ?? LOUD_PER_SECOND) * options.scale);
      const beside = await measure(service, options, loudPerSecond);
      return {
        alone,
        beside,
        webhookP99Ratio: beside.webhook.p99Ms / alone.webhook.p99Ms,
        liveP99Ratio: beside.live.p99Ms / alone.live.p99Ms,
      };
    } finally {
      await service.stop();
    }
  },
};

async function measure(service: NotifyService, { seconds }: LoadOptions, loudPerSecond: number) {
  const hooks = fork('load/notify-hook-receiver.ts');
  const streams = fork('load/notify-stream-clients.ts');
  const client = new LoadClient({
    baseUrl: service.internalUrl,
    connections: CONNECTIONS_MAX,
    token: service.token,
  });
  const unread: Socket[] = [];
  try {
    const { port } = await askChild<{ readonly port: number }>(hooks, { kind: 'listen' });
    await putEndpoints(client, port);
    const paths = [await streamPath(client, 'quiet')];
    if (loudPerSecond > 0) {
      for (const tenantId of loudTenants()) {
        paths.push(await streamPath(client, tenantId));
        for (let i = 0; i < UNREAD_OF_TENANT; i++) {
          unread.push(openUnread(service, await streamPath(client, tenantId)));
        }
      }
    }
    await askChild(streams, { kind: 'open', port: service.clientPort, paths });
    await runPhase(client, WARM_UP_SECONDS, loudPerSecond, false);
    const sent = await runPhase(client, seconds, loudPerSecond, true);
    const webhook = await reportOf<HookReport>(hooks, sent, ARRIVAL_MS_MAX);
    const live = await reportOf<StreamReport>(streams, sent, ARRIVAL_MS_MAX);
    return { sent, webhook, live };
  } finally {
    for (const socket of unread) socket.destroy();
    hooks.disconnect();
    streams.disconnect();
    await client.close();
  }
}

async function streamPath(client: LoadClient, tenantId: string): Promise<string> {
  const user = { tenant_id: tenantId, user_id: 'u0', device_type: 'web', ttl_seconds: 3_600 };
  const { token } = await client.call(`${METHOD}CreateStreamToken`, user);
  return `/v1/stream?access_token=${String(token)}`;
}

function openUnread({ clientPort }: NotifyService, path: string): Socket {
  const socket = connect(clientPort, '127.0.0.1');
  socket.on('error', () => socket.destroy());
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n\r\n`);
  return socket;
}

function loudTenants(): readonly string[] {
  return Array.from({ length: LOUD_TENANTS }, (_, i) => `loud-${i}`);
}

async function putEndpoints(client: LoadClient, port: number): Promise<void> {
  const put = (tenantId: string, id: string, path: string) =>
    client.call(`${METHOD}PutEndpoint`, {
      endpoint: {
        id,
        tenant_id: tenantId,
        channel: 'CHANNEL_WEBHOOK',
        address: `http://127.0.0.1:${port}${path}`,
      },
      signing_secret: 'a secret of the load test',
    });
  await put('quiet', 'hook', '/quiet');
  for (const tenantId of loudTenants()) {
    await put(tenantId, 'well', '/well');
    for (let i = 0; i < STALLED_OF_TENANT; i++) await put(tenantId, `stalled-${i}`, '/stalled');
  }
}

/** Returns how many of the quiet tenant were sent; measured ones carry when they were due. */
async function runPhase(
  client: LoadClient,
  seconds: number,
  loudPerSecond: number,
  isMeasured: boolean,
): Promise<number> {
  const offsetUs = Number(process.hrtime.bigint() / 1_000n) - performance.now() * 1_000;
  const tenants = loudTenants();
  const issue =
    (tenantOf: (index: number) => string, isCounted: boolean): DueIssue =>
    (index, done, dueMs) => {
      const body = {
        tenant_id: tenantOf(index),
        user_id: 'u0',
        channels: ['CHANNEL_LIVE', 'CHANNEL_WEBHOOK'],
        title: 'Build 4711 of main has passed',
        data: isCounted ? { due_us: Math.round(dueMs * 1_000 + offsetUs) } : {},
      };
      client.post(`${METHOD}Notify`, JSON.stringify(body), (reply, error) =>
        done(failureOf(reply, error)),
      );
    };
  const quiet = runAtRate({
    perSecond: QUIET_PER_SECOND,
    seconds,
    issue: issue(() => 'quiet', isMeasured),
  });
  const loud =
    loudPerSecond === 0
      ? Promise.resolve()
      : runAtRate({
          perSecond: loudPerSecond,
          seconds,
          issue: issue((index) => tenants[index % tenants.length] ?? '', false),
        });
  const [calls] = await Promise.all([quiet, loud]);
  return calls.count - calls.failed;
}
