import { createCalls } from '../../src/authz/calls.ts';
import { openDatabase } from '../../src/authz/database/database.ts';
import { createMetrics } from '../../src/authz/metrics/metrics.ts';
import { PostgresWatch } from '../../src/authz/postgres-watch.ts';
import { createReadAccounting } from '../../src/authz/read-accounting.ts';
import { createServices, type Services } from '../../src/authz/services.ts';
import { createWorkers } from '../../src/authz/workers/workers.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import type { Callers } from '../../src/gateway/callers/callers.ts';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { Readiness } from '../../src/gateway/readiness.ts';
import { BackgroundLoops } from '../../src/observability/background-loops.ts';
import type { ShardClient } from '../../src/protocol/shard-client.ts';
import type { AuditSink } from '../../src/services/ports.ts';
import { silentReport } from '../../src/shared/loop-report.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { DatabaseTime } from '../../src/shared/time/database-clock.ts';
import { errorFields } from '../../src/store/postgres/pg-errors.ts';
import type { PostgresTarget } from '../../src/store/postgres/pool.ts';
import type { WorkerPool } from '../../src/workers/pool/worker-pool.ts';
import { callersOf } from './callers.ts';
import { isOfPlatform, LOADS_UWS } from './http1-parsers.ts';
import { urlOf } from './postgres-admin.ts';
import { TEST_ADMIN_SECRET, TEST_TOKEN } from './service.ts';

/** A line of the log. */
type LoggedEvent = {
  readonly level: string;
  readonly event: string;
  readonly fields: object;
};

/** The service inside the test's process, behind two gateways: with and without the hot path. */
export interface Instance {
  /** Of the gateway with the hot path. */
  readonly baseUrl: string;
  /** Of the gateway that sends everything the general path. */
  readonly generalUrl: string;
  /** The metrics port of the first. */
  readonly metricsUrl: string;
  readonly token: string;
  readonly adminSecret: string;
  readonly services: Services;
  readonly workers: WorkerPool;
  readonly callers: Callers;
  readonly renderMetrics: () => Promise<string>;
  /** Failures whose text callers do not get to see: should stay empty. */
  readonly failures: readonly string[];
  readonly logged: readonly LoggedEvent[];
  stop(): Promise<void>;
}

/** Starts real workers (or those of another module), services and gateways on a test database. */
export async function startInstance(
  database: { readonly target: PostgresTarget },
  env: Readonly<Record<string, string>> = {},
  workerFilename?: string,
  /** Whether the workers are not told of a commit, as when the message to them is lost. */
  isChangeLost?: () => boolean,
  /** False has every read ask the read index, as where other instances are. */
  isAlone?: () => boolean,
  audit?: AuditSink,
): Promise<Instance> {
  const config = loadConfig({
    DATABASE_URL: urlOf(database.target),
    GATEWAY_SERVICE_AUTH_TOKENS: TEST_TOKEN,
    GATEWAY_ADMIN_API_SECRET: TEST_ADMIN_SECRET,
    GATEWAY_WORKERS: '1',
    GATEWAY_INDEX_BYTES: String(256 * 1024 * 1024),
    ...env,
  });
  const logged: LoggedEvent[] = [];
  const log = (level: string, event: string, fields: object): void => {
    logged.push({ level, event, fields });
  };
  const failures: string[] = [];
  const metrics = createMetrics({ version: 'test', commit: 'test' }, config.metricsProjects);
  const time = new DatabaseTime();
  const opened = await openDatabase(config, log, time);
  opened.history.start(opened.pool, silentReport);
  const onFatal = (cause: unknown): void => void failures.push(String(cause));
  const { target } = opened;
  const filename = workerFilename;
  const { ledger, ...accounting } = createReadAccounting(log, systemClock);
  const workers = createWorkers({
    ...accounting,
    config,
    target,
    pool: Promise.resolve(opened.pool),
    metrics,
    log,
    time,
    onFatal,
    filename,
  });
  await workers.start();
  const services = createServices({
    config,
    database: opened,
    clock: time.clock,
    shards: isChangeLost === undefined ? workers : losingChanges(workers, isChangeLost),
    metrics,
    audit,
    log,
    loops: new BackgroundLoops({ log, describe: errorFields, ...systemClock }),
    isAlone,
  });
  await services.projects.provisionDefault();
  new PostgresWatch(new Readiness()).watch(opened, services, workers);
  const document: unknown = config.callers === undefined ? undefined : JSON.parse(config.callers);
  const callers = callersOf(config.serviceAuthTokens, document);
  const calls = {
    ...createCalls(config, log, metrics, {
      workers,
      services,
      ledger,
      credentials: {
        callers,
        adminSecrets: () => config.adminApiSecrets,
        openServices: ['health'],
      },
    }),
    report: ({ rpc, error }: { rpc: string; error: unknown }) => {
      failures.push(`${rpc}: ${error instanceof Error ? error.stack : String(error)}`);
    },
  };
  const gateways: Gateway[] = [];
  const urls: string[] = [];
  const metricsUrls: string[] = [];
  for (const isHotPathEnabled of [true, false]) {
    const gateway = createGateway({
      host: '127.0.0.1',
      port: 0,
      metricsPort: 0,
      hosts: undefined,
      readiness: new Readiness(),
      renderMetrics: metrics.render,
      onIncident: (event, detail) => {
        // Clients that leave in the midst of a call; met on Node.js 24 alone.
        const isOfClient = !LOADS_UWS && event === 'http2_session' && detail === 'read ECONNRESET';
        if (event === 'scope_refused' || isOfClient || isOfPlatform(event)) return;
        failures.push(`${event}: ${detail}`);
      },
    });
    await gateway.listen();
    const { port, metricsPort } = await gateway.accept();
    metricsUrls.push(`http://127.0.0.1:${metricsPort}`);
    gateway.serve({ ...calls, isHotPathEnabled });
    gateways.push(gateway);
    urls.push(`http://127.0.0.1:${port}`);
  }
  return {
    baseUrl: urls[0] ?? '',
    generalUrl: urls[1] ?? '',
    metricsUrl: metricsUrls[0] ?? '',
    token: TEST_TOKEN,
    adminSecret: TEST_ADMIN_SECRET,
    services,
    workers,
    callers,
    renderMetrics: metrics.render,
    failures,
    logged,
    async stop() {
      for (const gateway of gateways) {
        await gateway.stop(1_000);
        await gateway.stopMetrics();
      }
      await services.writer.close(1_000);
      await services.stopIndex();
      await workers.stop();
      await opened.stop();
    },
  };
}

function losingChanges(shards: ShardClient, isLost: () => boolean): ShardClient {
  return {
    refusalBefore: (...args) => shards.refusalBefore(...args),
    raw: (...call) => shards.raw(...call),
    query: (...call) => shards.query(...call),
    setModel: (...call) => shards.setModel(...call),
    hint: (...call) => shards.hint(...call),
    applyCarried: (...call) => shards.applyCarried(...call),
    applyCommitted: (changes) => shards.applyCommitted(changes.filter(() => !isLost())),
  };
}
