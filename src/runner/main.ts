import { validOrExit } from '../config/valid-or-exit.ts';
import { exitOnFailure } from '../observability/exit-on-failure.ts';
import { createLogger, localUrl, reportToTerminal } from '../observability/logger.ts';
import { packageVersion } from '../observability/package-version.ts';
import { stopOnSignals } from '../observability/stop-on-signals.ts';
import { systemClock } from '../shared/clock.ts';
import { hideFromOtherProcesses } from '../shared/process-control.ts';
import { createRunner } from './runner.ts';
import { secretVariables, withdrawSecrets } from './secrets/own-secrets.ts';
import { loadRunnerSettings, redactedRunnerSettings } from './settings/settings.ts';

// Exit codes: 0 after a graceful stop, 1 for a failure, 2 for settings that are wrong.
// Before anything is read: steps have the same user.
hideFromOtherProcesses();
const environment = withdrawSecrets(process.env);
const [workspaceArgument] = process.argv.slice(2);
const settings = validOrExit(() =>
  loadRunnerSettings(
    workspaceArgument === undefined
      ? environment
      : { ...environment, RUNNER_WORKSPACE: workspaceArgument },
  ),
);
const logger = createLogger(settings.logLevel);

const fail = exitOnFailure(logger);

logger.debug({ settings: redactedRunnerSettings(settings) }, 'settings');
logger.info({ pid: process.pid }, 'starting');
const exposed = secretVariables(environment);
if (exposed.length > 0) {
  const detail =
    'other processes of this user, steps too, may read them where this process was started from; give secret settings as NAME_FILE';
  logger.warn({ variables: exposed, detail }, 'secrets_in_environment');
}

const starting = createRunner(settings, {
  logger,
  version: packageVersion(),
  clock: systemClock,
  environment,
  isEager: true,
});

stopOnSignals(starting, logger, fail);

const runner = await starting.catch((error: unknown) => fail('start_failed', error));
logger.info(
  {
    port: runner.port,
    host: settings.host,
    pid: process.pid,
    workspace: runner.parts.workspace,
    inbox_port: runner.inboxPort,
    metrics_port: runner.metricsPort,
  },
  'ready',
);
reportToTerminal(`ready at ${localUrl(settings.host, runner.port)}`);
