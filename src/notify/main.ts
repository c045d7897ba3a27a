import { validOrExit } from '../config/load-options.ts';
import { packageVersion } from '../observability/build-info.ts';
import {
  createLogger,
  localUrl,
  type LogLevel,
  reportToTerminal,
} from '../observability/logger.ts';
import { EXIT_FAILURE, exitOnFailure } from '../observability/stop-on-signals.ts';
import { hideFromOtherProcesses } from '../shared/process/process-control.ts';
import { onStopSignals } from '../shared/process/stop-signals.ts';
import { createNotifyLog } from './core/event-log.ts';
import { startNotificationService } from './service/notification-service.ts';
import { loadNotifySettings, redactedNotifySettings } from './service/settings.ts';

// Exit codes: 0 after a graceful stop, 1 for a failure, 2 for settings that are wrong.
/** For what has no deadline of its own, such as a database that does not answer. */
const STOP_GRACE_MS = 5_000;
const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

// A runner on this machine may have the same user, and so have its steps.
hideFromOtherProcesses();
const settings = validOrExit(() => loadNotifySettings(process.env));
const level = LOG_LEVELS.find((known) => known === settings.logLevel);
const logger = createLogger(level ?? 'info');
const log = createNotifyLog(logger);
logger.debug({ settings: redactedNotifySettings(settings) }, 'settings');
if (level === undefined) {
  logger.warn(
    { setting: 'NOTIFY_LOG_LEVEL', accepts: LOG_LEVELS, used: 'info' },
    'setting_invalid',
  );
}

const fail = exitOnFailure(logger);

const starting = startNotificationService({
  settings,
  env: process.env,
  logger,
  version: packageVersion(),
});

onStopSignals({
  stop: (signal) => {
    log.shutdownSignal(signal);
    const deadlineMs = settings.drainMs + settings.shutdownTimeoutMs + STOP_GRACE_MS;
    setTimeout(() => {
      log.shutdownError(`not stopped within ${deadlineMs} ms`);
      process.exit(EXIT_FAILURE);
    }, deadlineMs).unref();
    // Also while starting: what has begun must be ended in order.
    starting
      .then((service) => service.stop())
      .then(
        () => process.exit(0),
        (error: unknown) => {
          log.shutdownError(error instanceof Error ? error.message : 'internal error');
          process.exit(EXIT_FAILURE);
        },
      );
  },
  force: (signal) => {
    log.shutdownSignal(signal);
    process.exit(EXIT_FAILURE);
  },
});

const service = await starting.catch((error: unknown) => fail('start_failed', error));
const streams = localUrl(settings.host, service.clientPort);
reportToTerminal(`ready at ${localUrl(settings.host, service.internalPort)} (streams: ${streams})`);
