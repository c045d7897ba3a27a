import type { Environment } from '../../config/load-options.ts';
import { BodyBudget } from '../../http/bodies/body-budget.ts';
import { plainTextWarning } from '../../http/host-allow-list.ts';
import { createHttpServer, type HttpServer } from '../../http/listener/http-server.ts';
import { BackgroundLoops } from '../../observability/background-loops.ts';
import { eventLogOf, type Logger } from '../../observability/logger.ts';
import { IdSource } from '../../shared/ids.ts';
import { reportedRun } from '../../shared/loop-report.ts';
import { systemClock } from '../../shared/time/clock.ts';
import { errorFields } from '../../store/postgres/pg-errors.ts';
import { addOperationalRoutes } from '../api/operational-routes.ts';
import { Dispatcher } from '../channels/dispatcher.ts';
import { type ChannelRegistry, CHANNELS } from '../channels/registry.ts';
import { SettlementWriter } from '../channels/settlement-writer.ts';
import { createNotifyLog, type ListenerName, type NotifyLog } from '../core/event-log.ts';
import { NotificationWriter } from '../core/notification-writer.ts';
import { createRefusals, type Refusals } from '../core/refusals.ts';
import { FairGate } from '../core/round-robin-queue.ts';
import { DelayedHints } from '../live/delayed-hints.ts';
import { LiveHub } from '../live/live-hub.ts';
import { StreamGate } from '../live/stream-gate.ts';
import { StreamTokens } from '../live/stream-token.ts';
import type { NotificationStore, PutResult } from '../model/notification-store.ts';
import { type Channel, DEVICE_TYPES, LIVE_CHANNEL } from '../model/notification.ts';
import { measuredStore } from '../store/measured-store.ts';
import {
  createClientServer,
  createInternalServer,
  type ListenerParts,
  hostGuardOf,
} from './listeners.ts';
import { followTokens, type LiveTokens } from './live-tokens.ts';
import { createNotifyMetrics, type NotifyMetrics } from './metrics.ts';
import { openStore, type OpenStore } from './open-store.ts';
import { NOTIFY_OPTIONS, type NotifySettings } from './settings.ts';

export type NotificationServiceOptions = {
  readonly settings: NotifySettings;
  /** What `settings` came from: names the file of service tokens, which is followed. */
  readonly env: Environment;
  readonly logger: Logger;
  readonly version: string;
  /** Those of the registry where nothing else is said. `settings` holds their options. */
  readonly channels?: ChannelRegistry | undefined;
};

/** The running notification service. */
export interface NotificationService {
  readonly internalPort: number;
  readonly clientPort: number;
  readonly metricsPort: number;
  /**
   * /healthz fails at once; everything goes on being served for NOTIFY_DRAIN_MS; then calls and
   * deliveries in progress end, streams are closed, and last of all the metrics port. Idempotent.
   */
  stop(): Promise<void>;
}

const HINT_DELAY_MS = 25;
/** Whoever asks as the metrics port closes gets an answer. */
const METRICS_STOP_MS = 250;
/** Orders about streams are in force everywhere within a second, also when no hint arrives. */
const ORDERS_POLL_MS = 300;
const PURGE_INTERVAL_MS = 60_000;
const PURGE_BATCH = 10_000;
const BACKLOG_INTERVAL_MS = 2_000;
/** Everything that waits is counted, so that takes no more than one part in so many of the time. */
const BACKLOG_REST = 20;
const HOUR_MS = 3_600_000;
/** Deliveries that are given up or forgotten together. */
const UPKEEP_BATCH = 1_000;
/** Of the places of a channel: what one tenant and one endpoint may have at most, whatever the settings say. */
const TENANT_PART = 2;
const ENDPOINT_PART = 4;

/** Draining: reported by /healthz alone. Closing: what is in progress ends, nothing new begins. */
type ServiceState = { phase: 'starting' | 'ready' | 'draining' | 'closing' };
type Emitting = {
  readonly log: NotifyLog;
  readonly metrics: NotifyMetrics;
  readonly loops: BackgroundLoops;
  readonly refusals: Refusals;
};
type Parts = {
  readonly settings: NotifySettings;
  readonly state: ServiceState;
  readonly log: NotifyLog;
  readonly metricsServer: HttpServer;
  readonly internalServer: HttpServer;
  readonly clientServer: HttpServer;
  readonly liveTokens: LiveTokens;
  readonly opened: OpenStore;
  readonly writer: NotificationWriter;
  readonly hub: LiveHub;
  readonly gate: StreamGate;
  readonly hints: DelayedHints;
  readonly dispatchers: readonly Dispatcher[];
  readonly timers: readonly NodeJS.Timeout[];
};

/**
 * Starts everything in order: the metrics port (not ready yet), the store, the other ports.
 * Errors: those of the part that cannot start; what had started is stopped again.
 */
export async function startNotificationService(
  options: NotificationServiceOptions,
): Promise<NotificationService> {
  const { settings, logger, version } = options;
  const log = createNotifyLog(logger);
  log.starting({
    pid: process.pid,
    version,
    commit: settings.commit,
    store_driver: settings.storeDriver,
    live_connections: settings.liveConnections,
    client_port: settings.clientPort,
    internal_port: settings.internalPort,
    metrics_port: settings.metricsPort,
  });
  if (settings.serviceAuthTokens.length === 0) logger.warn('service_auth_disabled');
  const warning = plainTextWarning({
    ...settings,
    hostSetting: NOTIFY_OPTIONS.host.env,
    proxySetting: NOTIFY_OPTIONS.isBehindProxy.env,
  });
  if (warning !== undefined) logger.warn(warning, 'listens_without_tls');
  const metrics = createNotifyMetrics(version, settings.commit, options.channels);
  const loops = new BackgroundLoops({
    log: eventLogOf(logger),
    describe: errorFields,
    ...systemClock,
  });
  metrics.showLoops(loops);
  const refusals = createRefusals(logger, metrics, systemClock);
  const state: ServiceState = { phase: 'starting' };
  const isReady = (): boolean => state.phase === 'ready';
  const undo: (() => Promise<void>)[] = [];
  try {
    const onIncident = refusals.incidentOf('metrics');
    const metricsServer = createHttpServer({
      host: settings.host,
      port: settings.metricsPort,
      http1: settings.http1Parser,
      limits: { http1IdleMs: settings.httpIdleMs },
      hostGuard: hostGuardOf(settings, onIncident),
      onIncident,
    });
    addOperationalRoutes({
      server: metricsServer,
      isReady,
      failingLoops: () => loops.failing,
      renderMetrics: metrics.render,
    });
    const metricsPort = await listen(metricsServer, 'metrics', settings, log, undo);
    const opened = await openStore(settings, logger, metrics, loops.loop('listen'));
    undo.push(opened.close);
    const liveTokens = followTokens(settings, options.env, metrics, eventLogOf(logger));
    undo.push(() => liveTokens.stop());
    const emitting = { log, metrics, loops, refusals };
    const { head } = await opened.store.streamOrdersAfter(undefined);
    const parts = assemble(options, emitting, metricsServer, opened, liveTokens, state, head);
    const internalPort = await listen(parts.internalServer, 'internal', settings, log, undo);
    const clientPort = await listen(parts.clientServer, 'client', settings, log, undo);
    metrics.onCollect(() => metrics.ready.set(isReady() ? 1 : 0));
    state.phase = 'ready';
    for (const dispatcher of parts.dispatchers) dispatcher.wake();
    let stopping: Promise<void> | undefined;
    return { internalPort, clientPort, metricsPort, stop: () => (stopping ??= stop(parts)) };
  } catch (error) {
    for (const step of undo.toReversed()) await step().catch(ignoreWhileFailing);
    throw error;
  }
}

async function listen(
  server: HttpServer,
  name: ListenerName,
  settings: NotifySettings,
  log: NotifyLog,
  undo: (() => Promise<void>)[],
): Promise<number> {
  const { port } = await server.listen();
  undo.push(() => server.stop(0));
  log.listening(name, settings.host, port);
  return port;
}

function assemble(
  { settings, logger, channels: registry = CHANNELS }: NotificationServiceOptions,
  { log, metrics, loops, refusals }: Emitting,
  metricsServer: HttpServer,
  opened: OpenStore,
  liveTokens: LiveTokens,
  state: ServiceState,
  ordersHead: number,
): Parts {
  const store = measuredStore(opened.store, metrics);
  const clock = systemClock;
  // The other half of the connections is for calls and deliveries, however many streams come back together.
  const reads = new FairGate(Math.max(1, Math.floor(settings.pgPoolSize / 2)));
  const hub = new LiveHub({ store, metrics, log, clock, gate: reads, ...settings });
  const gate = new StreamGate({
    store,
    hub,
    gate: reads,
    pollMs: ORDERS_POLL_MS,
    report: loops.loop('stream_orders'),
    revision: ordersHead,
  });
  store.onOrdered(() => gate.hint());
  const hints = new DelayedHints(HINT_DELAY_MS, (...hint) => hub.hint(...hint));
  store.onStored((...hint) => hints.add(...hint));
  const dispatchers = createDispatchers(settings, registry, store, { metrics, log, loops });
  const writer = new NotificationWriter({
    store,
    queueMax: settings.writeQueueMax,
    onStored: (result) => emit(result, hub, dispatchers, metrics, clock.nowMs()),
  });
  const shared: ListenerParts = {
    settings,
    bodyBudget: createBodyBudget(settings, metrics),
    logger,
    log,
    metrics,
    refusals,
    store,
    writer,
    hub,
    gate,
    dispatchers,
    authenticator: liveTokens.authenticator,
    tokens: new StreamTokens(settings.streamSecret),
    clock,
    ids: new IdSource(clock),
    registry,
    channels: channelsOf(settings, dispatchers),
    isClosing: () => state.phase === 'closing',
  };
  collectFigures(metrics, hub, gate, writer, dispatchers, registry);
  const timers = startUpkeep(settings, store, metrics, loops);
  return {
    settings,
    state,
    log,
    metricsServer,
    internalServer: createInternalServer(shared),
    clientServer: createClientServer(shared),
    liveTokens,
    opened,
    writer,
    hub,
    gate,
    hints,
    dispatchers,
    timers,
  };
}

/** The channels that are set up. */
function channelsOf(
  settings: NotifySettings,
  dispatchers: readonly Dispatcher[],
): ReadonlySet<Channel> {
  const channels = new Set(dispatchers.map(({ channel }) => channel));
  if (settings.liveConnections) channels.add(LIVE_CHANNEL);
  return channels;
}

/** One for each channel that is set up, so that each has places of its own. */
function createDispatchers(
  settings: NotifySettings,
  registry: ChannelRegistry,
  store: NotificationStore,
  { metrics, log, loops }: Omit<Emitting, 'refusals'>,
): readonly Dispatcher[] {
  const { endpointFailingSeconds, sendsPerTenantMax, sendsPerEndpointMax } = settings;
  const settlements = new SettlementWriter({
    store,
    clock: systemClock,
    failingMsMax: endpointFailingSeconds === 0 ? null : endpointFailingSeconds * 1000,
    onDisabled: (endpoint) => {
      metrics.endpointsDisabled.add();
      log.endpointDisabled(endpoint);
    },
  });
  return registry.outbound.flatMap(({ number, outbound }) => {
    const opened = outbound.open(settings, systemClock);
    if (opened === undefined) return [];
    const { sender, sendsMax } = opened;
    const part = (divisor: number): number => Math.max(1, Math.floor(sendsMax / divisor));
    return [
      new Dispatcher({
        ...settings,
        store,
        settlements,
        channel: number,
        sender,
        sendsMax,
        perTenantMax: Math.min(sendsPerTenantMax, part(TENANT_PART)),
        perEndpointMax: Math.min(sendsPerEndpointMax, part(ENDPOINT_PART)),
        clock: systemClock,
        random: Math.random,
        metrics,
        report: loops.loop(`claims_${registry.nameOf(number)}`),
        log,
      }),
    ];
  });
}

/** A notification has been committed: to the open streams at once, and outbound soon. */
function emit(
  { notification }: PutResult,
  hub: LiveHub,
  dispatchers: readonly Dispatcher[],
  metrics: NotifyMetrics,
  nowMs: number,
): void {
  const count = hub.deliver(notification);
  if (notification.channels.includes(LIVE_CHANNEL)) {
    const seconds = Math.max(0, nowMs - notification.createdAtMs) / 1000;
    metrics.send(LIVE_CHANNEL, count > 0 ? 'sent' : 'offline', seconds);
  }
  for (const dispatcher of dispatchers) {
    if (notification.deliveries.some((one) => one.channel === dispatcher.channel)) {
      dispatcher.wake();
    }
  }
}

function createBodyBudget({ bodyMemoryBytes }: NotifySettings, metrics: NotifyMetrics): BodyBudget {
  const bodyBudget = new BodyBudget({ bytesMax: bodyMemoryBytes });
  metrics.bodies(bodyBudget);
  return bodyBudget;
}

function collectFigures(
  metrics: NotifyMetrics,
  hub: LiveHub,
  gate: StreamGate,
  writer: NotificationWriter,
  dispatchers: readonly Dispatcher[],
  registry: ChannelRegistry,
): void {
  metrics.onCollect(() => {
    const counts = hub.countByDeviceType();
    for (const type of DEVICE_TYPES) {
      metrics.liveConnections.set({ device_type: type }, counts[type] ?? 0);
    }
    metrics.writeQueueDepth.set(writer.depth);
    metrics.ordersAge.set(gate.ageMs / 1000);
    metrics.sendInflight.set(dispatchers.reduce((sum, one) => sum + one.inflightCount, 0));
    for (const { channel: number, placesMax, inflightCount } of dispatchers) {
      const channel = registry.nameOf(number);
      metrics.places.max.set({ channel }, placesMax);
      metrics.places.used.set({ channel }, inflightCount);
    }
  });
}

function startUpkeep(
  settings: NotifySettings,
  store: NotificationStore,
  metrics: NotifyMetrics,
  loops: BackgroundLoops,
): readonly NodeJS.Timeout[] {
  const purge = async (): Promise<void> => {
    const beforeMs = systemClock.nowMs() - settings.retentionHours * HOUR_MS;
    while ((await store.purge(beforeMs, PURGE_BATCH)) === PURGE_BATCH);
    while ((await store.purgeStreamOrders(UPKEEP_BATCH)) === UPKEEP_BATCH);
    while ((await store.purgeReads(UPKEEP_BATCH)) === UPKEEP_BATCH);
    if (settings.deadLetterHours === 0) return;
    const diedBeforeMs = systemClock.nowMs() - settings.deadLetterHours * HOUR_MS;
    while ((await store.purgeDead(diedBeforeMs, UPKEEP_BATCH)) === UPKEEP_BATCH);
  };
  const giveUp = async (): Promise<void> => {
    while ((await store.giveUpDisabled(UPKEEP_BATCH, systemClock.nowMs())) === UPKEEP_BATCH);
  };
  let backlogFromMs = 0;
  const backlog = async (): Promise<void> => {
    const startMs = performance.now();
    if (startMs < backlogFromMs) return;
    const { pending, oldestDueMs } = await store.backlog(systemClock.nowMs());
    backlogFromMs = startMs + BACKLOG_REST * (performance.now() - startMs);
    metrics.queueDepth.set(pending);
    metrics.oldestDue.set(oldestDueMs / 1000);
  };
  const every = (intervalMs: number, loop: string, work: () => Promise<void>): NodeJS.Timeout => {
    const report = loops.loop(loop);
    let isRunning = false;
    const turn = async (): Promise<void> => {
      // A database that hangs must not gather them, each with a connection of the pool.
      if (isRunning) return;
      isRunning = true;
      await reportedRun(report, work);
      isRunning = false;
    };
    return setInterval(() => void turn(), intervalMs).unref();
  };
  return [
    every(PURGE_INTERVAL_MS, 'purge', purge),
    every(BACKLOG_INTERVAL_MS, 'backlog', backlog),
    every(BACKLOG_INTERVAL_MS, 'give_up', giveUp),
  ];
}

/** In the order in which each part still needs the next one. */
async function stop(parts: Parts): Promise<void> {
  const { settings, state, hub, gate, writer, dispatchers } = parts;
  state.phase = 'draining';
  await new Promise((resolve) => setTimeout(resolve, settings.drainMs));
  state.phase = 'closing';
  for (const timer of parts.timers) clearInterval(timer);
  const deadlineMs = performance.now() + settings.shutdownTimeoutMs;
  const leftMs = (): number => Math.max(0, deadlineMs - performance.now());
  await parts.internalServer.stop(leftMs());
  await parts.liveTokens.stop();
  await writer.close();
  gate.close();
  hub.close();
  parts.hints.close();
  await parts.clientServer.stop(leftMs());
  const leftForSendsMs = leftMs();
  await Promise.all(dispatchers.map((one) => one.close(leftForSendsMs)));
  await parts.opened.close();
  await parts.metricsServer.stop(METRICS_STOP_MS);
}

function ignoreWhileFailing(): void {
  // The failure that matters is reported elsewhere.
}
