import { openDatabase } from '../../src/authz/database/database.ts';
import { PostgresWatch } from '../../src/authz/postgres-watch.ts';
import { startService as startParts } from '../../src/authz/service.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { Readiness } from '../../src/gateway/readiness.ts';
import { createLogger, eventLogOf } from '../../src/observability/logger.ts';
import { DatabaseTime } from '../../src/shared/time/database-clock.ts';
import type { LogLine } from './child-service.ts';
import { type Service, TEST_ADMIN_SECRET, TEST_SETTINGS, TEST_TOKEN } from './service.ts';

/** The whole service inside the test's process, as `main.ts` wires it. */
export type ServedService = Omit<Service, 'pid' | 'dataDir' | 'exited' | 'kill'>;

/**
 * The same as `startService` on `env.DATABASE_URL`, for tests that are not about the process: it takes a third of the
 * time of a child. '' unsets a setting.
 */
export async function serveService(
  env: Readonly<Record<string, string>> & { readonly DATABASE_URL: string },
): Promise<ServedService> {
  const given = Object.entries({ ...TEST_SETTINGS, ...env });
  const set = Object.fromEntries(given.filter(([, value]) => value !== ''));
  const config = loadConfig(set);
  const log: LogLine[] = [];
  const write = (line: string): void => void log.push(JSON.parse(line) as LogLine);
  const logger = createLogger(config.logLevel, { write });
  const readiness = new Readiness();
  const time = new DatabaseTime();
  const opening = openDatabase(config, eventLogOf(logger), time);
  opening.catch(() => undefined); // awaited by the service
  const running = await startParts({
    config,
    env: set,
    logger,
    version: '0.0.0',
    onFatal: (event, cause) => logger.error({ error: String(cause) }, event),
    readiness,
    postgres: new PostgresWatch(readiness),
    opening,
    time,
    stopping: new AbortController().signal,
  });
  return {
    baseUrl: `http://127.0.0.1:${running.port}`,
    metricsUrl: `http://127.0.0.1:${running.metricsPort}`,
    address: `127.0.0.1:${running.port}`,
    token: TEST_TOKEN,
    adminSecret: TEST_ADMIN_SECRET,
    log,
    async stop() {
      await running.stop();
      return 0;
    },
  };
}
