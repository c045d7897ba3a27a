import { onTestFinished } from 'vitest';
import { startNotificationService } from '../../../src/notify/service/notification-service.ts';
import { loadNotifySettings } from '../../../src/notify/service/settings.ts';
import { createLogger, type LogLevel } from '../../../src/observability/logger.ts';
import type { LogLine } from '../../support/child-service.ts';
import {
  freshDatabase,
  type NotifyProcess,
  TEST_SETTINGS,
  type WhenDone,
} from './notify-process.ts';

/** A running notification service inside the test's process. */
export interface ServedNotify extends Pick<
  NotifyProcess,
  'internalUrl' | 'clientUrl' | 'metricsUrl' | 'rawLog' | 'log' | 'events'
> {
  /** Ends it in order, as a signal does. */
  stop(): Promise<void>;
}

/**
 * The same as `startNotify`, for tests that are not about the process: it takes a tenth of the time of a child. What is
 * still in progress when the test ends is not waited for.
 */
export async function serveNotify(
  env: Readonly<Record<string, string>> = {},
  whenDone: WhenDone = onTestFinished,
): Promise<ServedNotify> {
  const database = 'DATABASE_URL' in env ? {} : await freshDatabase(whenDone);
  const given = { ...TEST_SETTINGS, NOTIFY_SHUTDOWN_TIMEOUT_MS: '0', ...database, ...env };
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''));
  const settings = loadNotifySettings(set);
  const rawLog: string[] = [];
  const log: LogLine[] = [];
  const write = (line: string): void => {
    rawLog.push(line.trimEnd());
    log.push(JSON.parse(line) as LogLine);
  };
  const logger = createLogger(settings.logLevel as LogLevel, { write });
  const running = await startNotificationService({ settings, env: set, logger, version: '0.0.0' });
  whenDone(() => running.stop());
  const urlOf = (port: number): string => `http://127.0.0.1:${port}`;
  return {
    internalUrl: urlOf(running.internalPort),
    clientUrl: urlOf(running.clientPort),
    metricsUrl: urlOf(running.metricsPort),
    rawLog,
    log,
    events: (msg) => log.filter((line) => line.msg === msg),
    stop: () => running.stop(),
  };
}
