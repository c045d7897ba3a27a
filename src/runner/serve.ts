import { type Environment, validOrExit } from '../config/load-options.ts';
import { isUwsInstalled } from '../http/http1/uws-binary.ts';
import { packageVersion } from '../observability/build-info.ts';
import { createLogger, localUrl, reportToTerminal } from '../observability/logger.ts';
import { exitOnFailure, stopOnSignals } from '../observability/stop-on-signals.ts';
import { systemClock } from '../shared/time/clock.ts';
import { createRunner } from './runner.ts';
import { secretVariables } from './secrets/own-secrets.ts';
import { loadRunnerSettings, redactedRunnerSettings, RUNNER_OPTIONS } from './settings/settings.ts';

/**
 * Serves the workspace until a signal, by the settings in `environment`; resolves when it is ready. The process ends with 0 after a
 * graceful stop, 1 for a failure, 2 for settings that are wrong. The caller has hidden the process and withdrawn its secrets.
 */
export async function serveRunner(environment: Environment): Promise<void> {
  // A package without uWebSockets.js leaves HTTP to node:http, which is nothing to warn of.
  const parser = isUwsInstalled() ? {} : { [RUNNER_OPTIONS.http1Parser.env]: 'node' };
  const settings = validOrExit(() => loadRunnerSettings({ ...parser, ...environment }));
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
}
