import { readFileSync } from 'node:fs';
import { validOrExit } from '../config/valid-or-exit.ts';
import { createLogger } from '../observability/logger.ts';
import { stopOnSignals } from '../observability/stop-on-signals.ts';
import { AppError } from '../shared/app-error.ts';
import { systemClock } from '../shared/clock.ts';
import { createRunner } from './runner.ts';
import { loadRunnerSettings, redactedRunnerSettings } from './settings/settings.ts';

/** Exit codes: 0 after a graceful stop, 1 for a failure, 2 for settings that are wrong. */
const EXIT_FAILURE = 1;

const [workspaceArgument] = process.argv.slice(2);
const settings = validOrExit(() =>
  loadRunnerSettings(
    workspaceArgument === undefined
      ? process.env
      : { ...process.env, RUNNER_WORKSPACE: workspaceArgument },
  ),
);
const logger = createLogger(settings.logLevel);

function fail(event: string, cause: unknown): never {
  // What the operator can act on is in the message; a stack helps only with the unforeseen.
  if (cause instanceof AppError) {
    logger.error({ reason: cause.reason, error: cause.message }, event);
  } else if (cause instanceof Error && 'syscall' in cause) {
    logger.error({ error: cause.message }, event);
  } else {
    logger.error({ error: cause }, event);
  }
  process.exit(EXIT_FAILURE);
}

process.on('uncaughtException', (error) => fail('uncaught_exception', error));
process.on('unhandledRejection', (error) => fail('unhandled_rejection', error));

logger.debug({ settings: redactedRunnerSettings(settings) }, 'settings');
if (settings.apiToken === undefined) {
  const detail = 'whoever reaches the port can run commands; set RUNNER_API_TOKEN';
  logger.warn({ detail }, 'api_token_unset');
}
if (settings.allowedOrigins.includes('*')) {
  const detail = 'every web page may call; narrow RUNNER_ALLOWED_ORIGINS';
  logger.warn({ detail }, 'every_origin_allowed');
}

const starting = createRunner(settings, {
  logger,
  version: versionOfPackage(),
  clock: systemClock,
  environment: process.env,
});

stopOnSignals(starting, logger, fail);

const runner = await starting.catch((error: unknown) => fail('start_failed', error));
logger.info(
  {
    port: runner.port,
    host: settings.host,
    workspace: runner.parts.workspace,
    inbox_port: runner.inboxPort,
    metrics_port: runner.metricsPort,
  },
  'ready',
);

function versionOfPackage(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
