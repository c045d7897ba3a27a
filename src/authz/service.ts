import type { Environment } from '../config/load-options.ts';
import type { Config } from '../config/options.ts';
import type { CallOptions } from '../gateway/call-handlers.ts';
import { createGateway, type Gateway, type GatewayOptions } from '../gateway/gateway.ts';
import type { Readiness } from '../gateway/readiness.ts';
import { BodyBudget } from '../http/bodies/body-budget.ts';
import { HostAllowList } from '../http/host-allow-list.ts';
import { BackgroundLoops } from '../observability/background-loops.ts';
import { registerBodyMetrics } from '../observability/body-metrics.ts';
import { createIncidentLog } from '../observability/incident-log.ts';
import { type EventLog, eventLogOf, type Logger } from '../observability/logger.ts';
import { showHttp1Connections } from '../observability/process-metrics.ts';
import { HeldBySlots } from '../protocol/held-shards.ts';
import { systemClock } from '../shared/time/clock.ts';
import type { DatabaseTime } from '../shared/time/database-clock.ts';
import { explainDamage } from '../store/embedded/embedded-postgres-cluster.ts';
import type { ChangeFeed } from '../store/feed/change-feed.ts';
import type { ChangeRetention } from '../store/feed/retention.ts';
import { errorFields } from '../store/postgres/pg-errors.ts';
import type { WorkerPool } from '../workers/pool/worker-pool.ts';
import { createCalls } from './calls.ts';
import type { Database } from './database/database.ts';
import { LiveCredentials } from './live-credentials.ts';
import { createAuditLog } from './logs/audit-log.ts';
import { createAuditSink } from './logs/audit-sink.ts';
import { measureStages, type MeasuredStages } from './metrics/decision-metrics.ts';
import { createMetrics, type Metrics } from './metrics/metrics.ts';
import type { PostgresWatch } from './postgres-watch.ts';
import { createReadAccounting } from './read-accounting.ts';
import { showFigures } from './scrape-figures.ts';
import { createServices, type Services } from './services.ts';
import { startFeed } from './start-feed.ts';
import { startUpkeep } from './upkeep.ts';
import { indexShare } from './workers/index-share.ts';
import { RecentShards } from './workers/recent-shards.ts';
import { warmUp } from './workers/warm-up.ts';
import { createWorkers } from './workers/workers.ts';

/** How often the state of PostgreSQL and the workers is polled. */
const WATCH_MS = 250;
/** Shards that a start loads at once for each worker; it can load one more for whoever asks. */
const WARM_UP_CONCURRENCY = 2;

export type ServiceOptions = {
  readonly config: Config;
  /** The environment that `config` came from: names the files of secrets that are followed. */
  readonly env: Environment;
  readonly logger: Logger;
  readonly version: string;
  /** Something that cannot be mended happened; the process must end with an error. */
  readonly onFatal: (event: string, cause: unknown) => void;
  readonly readiness: Readiness;
  /** Follows what becomes of the registration. */
  readonly postgres: PostgresWatch;
  /** The database, being opened; stopped with the service, also if that cannot start. */
  readonly opening: Promise<Database>;
  /** The database's time, which opening it estimates. */
  readonly time: DatabaseTime;
  /** Aborted when the service is to stop as soon as it can be: it does not become ready any more. */
  readonly stopping: AbortSignal;
};

/** The running authorization service. */
export interface Service {
  readonly port: number;
  readonly metricsPort: number;
  /**
   * Readiness fails at once; the ports continue accepting for GATEWAY_DRAIN_MS; then calls in flight
   * end, and everything is closed. Idempotent.
   */
  stop(): Promise<void>;
}

type ServiceParts = {
  readonly config: Config;
  readonly database: Database;
  readonly workers: WorkerPool;
  readonly services: Services;
  readonly gateway: Gateway;
  readonly feed: ChangeFeed;
  readonly retention: ChangeRetention;
  readonly recent: RecentShards;
  readonly live: LiveCredentials;
  readonly readiness: Readiness;
  readonly watch: NodeJS.Timeout;
  readonly recorder: CallOptions['recorder'];
};

/**
 * Starts everything in order, around the database: ports (not ready yet), workers, services, calls.
 * Errors: those of the part that cannot start; what had started is stopped again.
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, logger, version, readiness, opening, stopping } = options;
  const log = eventLogOf(logger);
  const metrics = createMetrics({ version, commit: config.commit }, config.metricsProjects);
  metrics.readBudget.set(config.maxCheckReads);
  metrics.indexLimit.set(config.indexBytes);
  const loops = new BackgroundLoops({ log, describe: errorFields, ...systemClock });
  loops.showIn(metrics.store, 'gatehouse');
  readiness.watchLoops(() => loops.failing);
  const stages = config.stageTimes ? measureStages(metrics.store, config.workers) : undefined;
  const bodyBudget = new BodyBudget({ bytesMax: config.bodyMemoryBytes });
  registerBodyMetrics(metrics.store, 'gatehouse', bodyBudget);
  const gateway = createGateway({
    bodyBudget,
    host: config.host,
    port: config.connectPort,
    metricsPort: config.metricsPort,
    http1Parser: config.http1Parser,
    httpIdleMs: config.httpIdleMs,
    held: heldSockets(config),
    hosts: hasCallers(config) ? undefined : new HostAllowList(config),
    readiness,
    renderMetrics: metrics.render,
    onIncident: createIncidentLog(log, systemClock),
    answerStallMs: config.streamStallSeconds * 1_000,
    onUnread: (bytes) => {
      metrics.unreadAnswers.inc();
      metrics.unreadBytes.inc(bytes);
    },
    onStalled: () => metrics.stalledAnswers.inc(),
    stages: stages?.times,
  });
  showHttp1Connections(metrics.store, 'gatehouse', () => gateway.http1Counts);
  const undo = [() => opening.then((database) => database.stop(), ignoreWhileFailing)];
  try {
    await gateway.listen();
    undo.push(async () => {
      await gateway.stop(0);
      await gateway.stopMetrics();
    });
    const parts = await startParts(options, { log, metrics, loops, stages }, gateway, undo);
    await warmParts(parts, log, metrics, loops, stopping);
    const isOffered = !stopping.aborted;
    if (isOffered) readiness.markReady(() => parts.workers.isReady);
    gateway.updateHealth();
    const ports = await gateway.accept();
    let stopped: Promise<void> | undefined;
    // Nobody has to notice that one which never was ready goes.
    const drainMs = isOffered ? config.drainMs : 0;
    return { ...ports, stop: () => (stopped ??= stopParts(parts, drainMs)) };
  } catch (error) {
    for (const step of undo.toReversed()) await step().catch(ignoreWhileFailing);
    throw explainDamage(error, config.databaseUrl === undefined ? config.dataDir : undefined);
  }
}

type Observed = {
  readonly log: EventLog;
  readonly metrics: Metrics;
  readonly loops: BackgroundLoops;
  readonly stages: MeasuredStages | undefined;
};

async function startParts(
  options: ServiceOptions,
  { log, metrics, loops, stages }: Observed,
  gateway: Gateway,
  undo: (() => Promise<void>)[],
): Promise<ServiceParts> {
  const { config, logger, readiness, postgres, opening, time } = options;
  const onFatal = (cause: unknown): void => options.onFatal('workers_cannot_start', cause);
  const recent = new RecentShards();
  let known: Pick<Services, 'modelOf'> | undefined;
  const held = new HeldBySlots(config.workers);
  const { ledger, ...accounting } = createReadAccounting(log, systemClock);
  const workers = createWorkers({
    ...accounting,
    config,
    held,
    stages,
    target: targetOf(opening),
    pool: opening.then(({ pool }) => pool),
    metrics,
    log,
    time,
    onFatal,
    onRecentShards: (slot, shards) => recent.report(slot, shards),
    findModel: (...asked) => known?.modelOf(...asked),
  });
  // The threads load their modules while the database starts.
  const workersReady = workers.start();
  workersReady.catch(() => undefined); // awaited below, or of no interest any more
  undo.push(() => workers.stop());
  const database = await opening;
  await workersReady;
  const audit = config.auditLog ? createAuditSink(createAuditLog(logger)) : undefined;
  const services = createServices({
    config,
    database,
    clock: time.clock,
    shards: workers,
    metrics,
    audit,
    log,
    loops,
  });
  undo.push(() => services.stopIndex());
  known = services;
  await services.projects.provisionDefault();
  database.history.start(database.pool, loops.loop('deployment'));
  const feed = startFeed({ database, workers, services, held, metrics, loops, log });
  undo.push(() => feed.stop());
  await feed.started;
  const retention = startUpkeep(config, database, services, loops, log);
  postgres.watch(database, services, workers);
  const fingerprintKey = database.deployment.tokenKey;
  const live = new LiveCredentials({ config, env: options.env, fingerprintKey, metrics, log });
  live.start();
  undo.push(() => live.stop());
  const { credentials } = live;
  const calls = createCalls(config, log, metrics, { workers, services, credentials, ledger });
  undo.push(async () => calls.recorder?.close());
  gateway.serve(calls);
  const watch = startWatch(options, gateway);
  const started = { config, database, workers, services, gateway, feed, retention, recent };
  const parts = { ...started, live, readiness, watch, recorder: calls.recorder };
  showFigures(parts, metrics, time);
  return parts;
}

/** Brings readiness up to date, now and from now on. */
function startWatch(
  { config, readiness, postgres, time }: ServiceOptions,
  gateway: Gateway,
): NodeJS.Timeout {
  const update = (): void => {
    readiness.setTimeCertain(time.uncertaintyMs <= config.clockUncertaintyMaxMs);
    postgres.update();
    gateway.updateHealth();
  };
  update();
  return setInterval(update, WATCH_MS).unref();
}

/** Whether callers are authenticated. */
function hasCallers({ serviceAuthTokens, callers }: Config): boolean {
  return serviceAuthTokens.length > 0 || callers !== undefined;
}

/** Sockets that a supervisor has passed on. */
function heldSockets({ listenFds, metricsListenFd }: Config): GatewayOptions['held'] {
  if (listenFds.length === 0 || metricsListenFd === undefined) return undefined;
  return { rpc: listenFds.map(Number), metrics: metricsListenFd };
}

/** Loads what is likely to be asked, then notes for the next start what was. */
async function warmParts(
  parts: ServiceParts,
  log: EventLog,
  metrics: Metrics,
  loops: BackgroundLoops,
  signal: AbortSignal,
): Promise<void> {
  const { config, database, workers, recent } = parts;
  const { shards, seconds } = await warmUp({
    pool: database.pool,
    workers,
    concurrency: config.workers * WARM_UP_CONCURRENCY,
    timeMaxMs: config.warmUpSeconds * 1_000,
    bytesMax: config.warmUpBytes ?? indexShare(config.indexBytes),
    log,
    signal,
  });
  metrics.warmUpShards.set(shards);
  metrics.warmUpSeconds.set(seconds);
  recent.start(database.pool, loops.loop('recent_shards'));
}

/** Never rejects: the caller that awaits the opening itself gets its error. */
function targetOf(opening: Promise<Database>): Promise<Database['target']> {
  return new Promise((resolve) => {
    opening.then(
      (database) => resolve(database.target),
      () => undefined,
    );
  });
}

/** In the order in which each part still needs the next one. */
async function stopParts(parts: ServiceParts, drainMs: number): Promise<void> {
  const { config, gateway, workers, services, feed, retention, readiness, database } = parts;
  const { recent } = parts;
  clearInterval(parts.watch);
  readiness.beginDrain();
  gateway.beginDrain();
  await recent.stop();
  await new Promise((resolve) => setTimeout(resolve, drainMs));
  const deadlineMs = performance.now() + config.shutdownTimeoutMs;
  const leftMs = (): number => Math.max(0, deadlineMs - performance.now());
  await gateway.stop(leftMs());
  await parts.recorder?.close();
  await parts.live.stop();
  await services.purge.stop();
  await services.bulkUpkeep.stop();
  await services.tupleImport.stop();
  await services.activations.stop();
  await retention.stop();
  await services.writer.close(leftMs());
  await services.notifier.close();
  await services.stopIndex();
  await workers.drain(leftMs());
  await workers.stop();
  await feed.stop();
  await database.stop();
  await gateway.stopMetrics();
}

function ignoreWhileFailing(): void {
  // Only the first failure is reported; the cleanup is best effort.
}
