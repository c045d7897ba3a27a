import { Code } from '@connectrpc/connect';
import { codeToString } from '@connectrpc/connect/protocol-connect';
import type { Gauge } from 'prom-client';
import type { BackgroundLoops } from '../../observability/background-loops.ts';
import {
  type BodyFigures,
  createMessageRefusals,
  registerBodyMetrics,
} from '../../observability/body-metrics.ts';
import {
  createCredentialMetrics,
  type CredentialMetrics,
} from '../../observability/credential-report.ts';
import {
  type HotCounter,
  type HotHistogram,
  MetricStore,
} from '../../observability/metric-store.ts';
import { registerProcessMetrics } from '../../observability/process-metrics.ts';
import { assert } from '../../shared/assert.ts';
import { recordOf } from '../../shared/record.ts';
import type { DispatchMetrics } from '../channels/dispatcher.ts';
import { type ChannelRegistry, CHANNELS } from '../channels/registry.ts';
import { REFUSAL_REASONS, type RefusalMetrics } from '../core/refusals.ts';
import { DROP_REASONS, END_REASONS, type LiveMetrics, STREAM_KINDS } from '../live/live-metrics.ts';
import { ATTEMPT_OUTCOMES } from '../model/delivery.ts';
import { type Channel, DEVICE_TYPES, LIVE_CHANNEL } from '../model/notification.ts';
import type { NewStreamOrder } from '../model/stream-order.ts';
import {
  type ListenMetrics,
  STORE_CODES,
  STORE_OPS,
  type StoreCode,
  type StoreMetrics,
  type StoreOp,
} from '../store/store-metrics.ts';

/**
 * `failed` is tried again, `dead` is not; `offline`: no stream of the user is open in this process;
 * `dropped`: a stream lost it, since its buffer was full.
 */
const SEND_STATUSES = [...ATTEMPT_OUTCOMES, 'dropped', 'offline'] as const;
type SendStatus = (typeof SEND_STATUSES)[number];
const REQUEST_CODES: readonly string[] = [
  'ok',
  ...Object.values(Code).flatMap((code) => (typeof code === 'number' ? [codeToString(code)] : [])),
];

const ORDER_KINDS = ['revoke_user', 'revoke_token', 'disconnect', 'policy'] as const;

/** Seconds. */
const DURATION_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** What the composition itself counts and shows. */
type ServiceMetrics = {
  /** The text of /metrics; never rejects, whatever a collector does. */
  readonly render: () => Promise<string>;
  /** Runs before each scrape: set gauges from figures that nobody pushes. It may throw. */
  readonly onCollect: (collector: () => void) => void;
  /** What request bodies hold; once. */
  readonly bodies: (figures: BodyFigures) => void;
  /** Loops in the background; once. */
  readonly showLoops: (loops: BackgroundLoops) => void;
  /** A request that holds more than it may. */
  readonly messageRefused: (reason: string) => void;
  /** A call on the internal listener; `code` is `ok` or a Connect code. */
  readonly request: (code: string) => void;
  readonly send: (channel: Channel, status: SendStatus, seconds: number) => void;
  readonly liveConnections: Gauge<'device_type'>;
  readonly sendInflight: Gauge;
  readonly places: Readonly<Record<'max' | 'used', Gauge<'channel'>>>;
  readonly ordersAge: Gauge;
  readonly streamOrder: (kind: NewStreamOrder['kind']) => void;
  readonly queueDepth: Gauge;
  readonly oldestDue: Gauge;
  readonly writeQueueDepth: Gauge;
  readonly ready: Gauge;
  readonly pool: Readonly<Record<'open' | 'idle' | 'waiting', Gauge>>;
};

/**
 * The metrics of one process of the notification service: what each module asks for, and what the
 * composition adds. Every series exists from the first scrape.
 */
export type NotifyMetrics = ServiceMetrics &
  CredentialMetrics &
  DispatchMetrics &
  ListenMetrics &
  LiveMetrics &
  RefusalMetrics &
  StoreMetrics;

/** Body of /metrics when nothing can be rendered: still a valid, empty exposition. */
export const METRICS_PLACEHOLDER = '# no series at this moment\n';

/** Makes every series, for each channel too. `version` and `commit` are the product's own. */
export function createNotifyMetrics(
  version: string,
  commit: string,
  channels: ChannelRegistry = CHANNELS,
): NotifyMetrics {
  const store = new MetricStore('notify');
  store
    .gauge({
      name: 'notify_build_info',
      help: 'Always 1; the labels name the build.',
      labelNames: ['version', 'commit', 'node'],
    })
    .set({ version, commit, node: process.version }, 1);
  registerProcessMetrics(store);
  const gauge = (name: string, help: string): Gauge => store.gauge({ name, help });
  return {
    ...requestMetrics(store),
    ...sendMetrics(store, channels),
    ...storeMetrics(store),
    ...listenMetrics(store),
    ...streamMetrics(store),
    ...createCredentialMetrics(store, 'notify'),
    places: {
      max: placesGauge(
        store,
        'notify_send_places',
        'Attempts to deliver that may be in progress at once, by channel.',
        channels,
      ),
      used: placesGauge(
        store,
        'notify_send_places_used',
        'Of these, those that are in progress.',
        channels,
      ),
    },
    ordersAge: gauge(
      'notify_stream_orders_age_seconds',
      'How long ago the store last said which tokens and streams were to end.',
    ),
    ...orderMetrics(store),
    sendInflight: gauge('notify_send_inflight', 'Attempts to deliver that have not ended.'),
    queueDepth: gauge(
      'notify_queue_depth',
      'Deliveries that wait for their first or next attempt.',
    ),
    oldestDue: gauge('notify_queue_oldest_due_seconds', 'How long the oldest due delivery waits.'),
    writeQueueDepth: gauge('notify_write_queue_requests', 'Notify calls waiting for the store.'),
    ready: gauge('notify_ready', '1 while /healthz answers 200, else 0.'),
    pool: {
      open: gauge('notify_pg_pool_connections', 'Connections open to PostgreSQL.'),
      idle: gauge('notify_pg_pool_idle_connections', 'Connections that nobody uses.'),
      waiting: gauge('notify_pg_pool_waiting_requests', 'Callers waiting for a connection.'),
    },
    messageRefused: messageMetric(store),
    bodies: (figures) => registerBodyMetrics(store, 'notify', figures),
    showLoops: (loops) => loops.showIn(store, 'notify'),
    onCollect: (collector) => store.onCollect(collector),
    render: async () => {
      try {
        return await store.render();
      } catch {
        // Scrapers must always find something they can parse; the next scrape tries again.
        return METRICS_PLACEHOLDER;
      }
    },
  };
}

function requestMetrics(store: MetricStore): Pick<NotifyMetrics, 'request'> {
  const requests = store.counters({
    name: 'notify_notify_requests_total',
    help: 'Calls of Notify by Connect code.',
  });
  const byCode = new Map(REQUEST_CODES.map((code) => [code, requests.cell({ code })]));
  return { request: (code) => (byCode.get(code) ?? byCode.get('unknown'))?.add() };
}

function messageMetric(store: MetricStore): (reason: string) => void {
  const refused = createMessageRefusals(store, 'notify');
  return (reason) => refused.inc({ reason });
}

function placesGauge(
  store: MetricStore,
  name: string,
  help: string,
  channels: ChannelRegistry,
): Gauge<'channel'> {
  const gauge = store.gauge<'channel'>({ name, help, labelNames: ['channel'] });
  for (const { name: channel } of channels.outbound) gauge.set({ channel }, 0);
  return gauge;
}

function orderMetrics(store: MetricStore): Pick<NotifyMetrics, 'streamOrder' | 'ended'> {
  const orders = store.counters({
    name: 'notify_stream_orders_total',
    help: 'Orders about streams that were given by calls to this process, by kind.',
  });
  const ended = store.counters({
    name: 'notify_streams_ended_total',
    help: 'Streams that were ended for their token or by a call, by reason.',
  });
  const byKind = recordOf(ORDER_KINDS, (kind) => orders.cell({ kind }));
  return {
    streamOrder: (kind) => byKind[kind].add(),
    ended: recordOf(END_REASONS, (reason) => ended.cell({ reason })),
  };
}

function sendMetrics(
  store: MetricStore,
  channels: ChannelRegistry,
): Pick<NotifyMetrics, 'send' | 'liveDropped' | 'retries' | 'endpointsDisabled'> {
  const disabled = store.counters({
    name: 'notify_endpoints_disabled_total',
    help: 'Endpoints that were disabled since nothing had arrived there for long.',
  });
  const total = store.counters({
    name: 'notify_send_total',
    help: 'Attempts to deliver by channel, provider and outcome.',
  });
  const duration = store.histograms(
    { name: 'notify_send_duration_seconds', help: 'How long an attempt to deliver took.' },
    DURATION_BOUNDS,
  );
  const cells = channels.all.map(({ number, name, provider }) => {
    const labels = { channel: name, provider };
    const totals = recordOf(SEND_STATUSES, (status) => total.cell({ ...labels, status }));
    return [number, { total: totals, duration: duration.cell(labels) }] as const;
  });
  const byChannel = new Map(cells);
  const live = byChannel.get(LIVE_CHANNEL);
  assert(live !== undefined, 'the live channel is registered');
  const retries = store.counters({
    name: 'notify_retry_total',
    help: 'Attempts after the first one, by result.',
  });
  return {
    send: (channel, status, seconds) => {
      const cell = byChannel.get(channel);
      cell?.total[status].add();
      cell?.duration.observe(seconds);
    },
    endpointsDisabled: disabled.cell({}),
    liveDropped: live.total.dropped,
    retries: recordOf(ATTEMPT_OUTCOMES, (result) => retries.cell({ result })),
  };
}

function storeMetrics(store: MetricStore): Pick<NotifyMetrics, 'storeOp'> {
  const total = store.counters({
    name: 'notify_store_op_total',
    help: 'Operations of the store by outcome.',
  });
  const duration = store.histograms(
    { name: 'notify_store_op_duration_seconds', help: 'How long operations of the store took.' },
    DURATION_BOUNDS,
  );
  const cells: Record<StoreOp, { total: Record<StoreCode, HotCounter>; duration: HotHistogram }> =
    recordOf(STORE_OPS, (op) => ({
      total: recordOf(STORE_CODES, (code) => total.cell({ op, code })),
      duration: duration.cell({ op }),
    }));
  return {
    storeOp: (op, code, seconds) => {
      cells[op].total[code].add();
      cells[op].duration.observe(seconds);
    },
  };
}

/** Until the store notifies otherwise the gauge is 1. */
function listenMetrics(store: MetricStore): ListenMetrics {
  const losses = store.counter({
    name: 'notify_listen_losses_total',
    help: "Times that the connection was lost which hears of other processes' notifications.",
  });
  const connected = store.gauge({
    name: 'notify_listen_connected',
    help: "1 while other processes' notifications are heard of, else 0.",
  });
  connected.set(1);
  return {
    listening: (isConnected) => {
      connected.set(isConnected ? 1 : 0);
      if (!isConnected) losses.inc();
    },
  };
}

function streamMetrics(
  store: MetricStore,
): Pick<NotifyMetrics, 'streamEvents' | 'dropped' | 'refused' | 'liveConnections'> {
  const events = store.counters({
    name: 'notify_stream_events_total',
    help: 'What happened on live streams, by kind.',
  });
  const dropped = store.counters({
    name: 'notify_events_dropped_total',
    help: 'Events that a stream did not get: its buffer was full, or they were no longer kept.',
  });
  const refused = store.counters({
    name: 'notify_connections_refused_total',
    help: 'Streams that were not opened and connections that were closed unheard, by reason.',
  });
  const liveConnections = store.gauge<'device_type'>({
    name: 'notify_live_connections',
    help: 'Live streams open now.',
    labelNames: ['device_type'],
  });
  for (const deviceType of DEVICE_TYPES) liveConnections.set({ device_type: deviceType }, 0);
  return {
    streamEvents: recordOf(STREAM_KINDS, (kind) => events.cell({ kind })),
    dropped: recordOf(DROP_REASONS, (reason) => dropped.cell({ reason })),
    refused: recordOf(REFUSAL_REASONS, (reason) => refused.cell({ reason })),
    liveConnections,
  };
}
