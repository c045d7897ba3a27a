import { openDatabase } from './authz/database.ts';
import { PostgresWatch } from './authz/postgres-watch.ts';
import { loadConfigOrExit } from './config/load-config-or-exit.ts';
import { Readiness } from './gateway/readiness.ts';
import { createLogger, eventLogOf } from './observability/logger.ts';
import { packageVersion } from './observability/package-version.ts';
import { stopOnSignals } from './observability/stop-on-signals.ts';
import { AppError } from './shared/app-error.ts';
import { hideFromOtherProcesses } from './shared/process-control.ts';

/** Exit codes: 0 after a graceful stop, 1 for a failure, 2 for settings that are wrong. */
const EXIT_FAILURE = 1;

// A runner on this machine may have the same user, and so have its steps.
hideFromOtherProcesses();
const config = loadConfigOrExit();
const logger = createLogger(config.logLevel);

function fail(event: string, cause: unknown): never {
  // What the operator can act on is in the message; a stack helps only with the unforeseen.
  if (cause instanceof AppError)
    logger.error({ reason: cause.reason, error: cause.message }, event);
  else if (isSystemError(cause)) logger.error({ error: cause.message }, event);
  else logger.error({ error: cause }, event);
  process.exit(EXIT_FAILURE);
}

/** Of the operating system, such as a port that is taken. */
function isSystemError(cause: unknown): cause is Error {
  return cause instanceof Error && 'syscall' in cause;
}

process.on('uncaughtException', (error) => fail('uncaught_exception', error));
process.on('unhandledRejection', (error) => fail('unhandled_rejection', error));

if (config.serviceAuthTokens.length === 0) logger.warn('service_auth_disabled');

const readiness = new Readiness();
const postgres = new PostgresWatch(readiness);
// An empty database takes about as long to make as the rest of the service takes to load.
const opening = openDatabase(config, eventLogOf(logger));
opening.catch(() => undefined); // awaited by the service
const starting = import('./authz/service.ts').then(({ startService }) => {
  const version = packageVersion();
  return startService({ config, logger, version, onFatal: fail, readiness, postgres, opening });
});

stopOnSignals(starting, logger, fail);

const service = await starting.catch((error: unknown) => fail('start_failed', error));
logger.info({ port: service.port, metrics_port: service.metricsPort, host: config.host }, 'ready');
