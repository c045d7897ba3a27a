import { openDatabase } from './authz/database/database.ts';
import { PostgresWatch } from './authz/postgres-watch.ts';
import { instancesOf, supervise } from './authz/supervisor/supervise.ts';
import { boundHeapGrowth } from './authz/workers/index-share.ts';
import { loadConfigOrExit } from './config/load-config.ts';
import { OPTIONS } from './config/options.ts';
import { Readiness } from './gateway/readiness.ts';
import { plainTextWarning } from './http/host-allow-list.ts';
import { packageVersion } from './observability/build-info.ts';
import { createLogger, eventLogOf, localUrl, reportToTerminal } from './observability/logger.ts';
import { exitOnFailure, stopOnSignals } from './observability/stop-on-signals.ts';
import { hideFromOtherProcesses } from './shared/process/process-control.ts';
import { DatabaseTime } from './shared/time/database-clock.ts';

/** Exit codes: 0 after a graceful stop, 1 for a failure, 2 for settings that are wrong. */
const EXIT_USAGE = 2;

// A runner on this machine may have the same user, and so have its steps.
hideFromOtherProcesses();
const config = loadConfigOrExit();
const { instanceName } = config;
const root = createLogger(config.logLevel);
const logger = instanceName === undefined ? root : root.child({ process: instanceName });

const fail = exitOnFailure(logger);

if (config.serviceAuthTokens.length === 0 && config.callers === undefined) {
  logger.warn('service_auth_disabled');
}
// A supervisor has the sockets of its instances, and says it once.
if (config.listenFds.length === 0) {
  const warning = plainTextWarning({
    ...config,
    hostSetting: OPTIONS.host.env,
    proxySetting: OPTIONS.isBehindProxy.env,
  });
  if (warning !== undefined) logger.warn(warning, 'listens_without_tls');
}

const count = instancesOrExit();
if (count === undefined) await runInstance();
else await supervise(count, logger, fail);

function instancesOrExit(): number | undefined {
  try {
    return instancesOf(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\nusage: gatehouse serve [--instances N]\n`);
    process.exit(EXIT_USAGE);
  }
}

async function runInstance(): Promise<void> {
  logger.info({ pid: process.pid }, 'starting');
  boundHeapGrowth(config.indexBytes);
  const readiness = new Readiness();
  const postgres = new PostgresWatch(readiness);
  // An empty database takes about as long to make as the rest of the service takes to load.
  const time = new DatabaseTime();
  const opening = openDatabase(config, eventLogOf(logger), time);
  opening.catch(() => undefined); // awaited by the service
  const stopping = new AbortController();
  const starting = import('./authz/service.ts').then(({ startService }) => {
    const version = packageVersion();
    const { env } = process;
    return startService({
      config,
      env,
      logger,
      version,
      onFatal: fail,
      readiness,
      postgres,
      opening,
      time,
      stopping: stopping.signal,
    });
  });

  stopOnSignals(starting, logger, fail, stopping);

  const service = await starting.catch((error: unknown) => fail('start_failed', error));
  if (stopping.signal.aborted) return;
  logger.info(
    {
      port: service.port,
      metrics_port: service.metricsPort,
      host: config.host,
      pid: process.pid,
    },
    'ready',
  );
  if (instanceName === undefined) {
    const metrics = localUrl(config.host, service.metricsPort);
    reportToTerminal(
      `ready at ${localUrl(config.host, service.port)} (metrics: ${metrics}/metrics)`,
    );
  }
  if (process.send === undefined) return;
  process.send('ready');
}
