import type { Logger } from '../../observability/logger.ts';
import type { LoopReport } from '../../shared/loop-report.ts';
import { explainDamage } from '../../store/embedded/embedded-postgres-cluster.ts';
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../store/embedded/embedded-postgres.ts';
import { examineTarget } from '../../store/postgres/pooler.ts';
import type { StoreLog } from '../../store/postgres/store-log.ts';
import type { NotificationStore } from '../model/notification-store.ts';
import { migrateNotify } from '../store/notify-database.ts';
import { PostgresStore } from '../store/postgres-store.ts';
import type { NotifyMetrics } from './metrics.ts';
import type { NotifySettings } from './settings.ts';

/** Connections that an embedded server grants beyond those of the pool. */
const SPARE_CONNECTIONS = 20;

export type OpenStore = {
  readonly store: NotificationStore;
  /** Closes the store, and stops an embedded server. */
  readonly close: () => Promise<void>;
};

/**
 * Opens the store, migrated and ready: on DATABASE_URL, else on an embedded server that it starts.
 * Errors: STORE_UNAVAILABLE with what to do about it; whatever was started is stopped again. `report` is for the connection that listens.
 */
export async function openStore(
  settings: NotifySettings,
  logger: Logger,
  metrics: NotifyMetrics,
  report: LoopReport,
): Promise<OpenStore> {
  // At info only the events of the contract are logged.
  const log: StoreLog = (level, event, fields) =>
    logger[level === 'info' ? 'debug' : level](fields, event);
  const server = await startServer(settings, log);
  try {
    const target =
      server?.target ?? (await examineTarget({ connectionString: settings.databaseUrl ?? '' }));
    await migrateNotify(target, log);
    const store = new PostgresStore({
      target,
      poolMax: settings.pgPoolSize,
      secretKeys: settings.secretKeys,
      log,
      onListening: metrics.listening,
      report,
    });
    await store.started;
    if (settings.secretKeys.length === 0) logger.warn('signing_secrets_plain');
    await store.sealSecrets();
    metrics.onCollect(() => {
      metrics.pool.open.set(store.pool.totalCount);
      metrics.pool.idle.set(store.pool.idleCount);
      metrics.pool.waiting.set(store.pool.waitingCount);
    });
    const close = async (): Promise<void> => {
      await store.close();
      await server?.stop();
    };
    return { store, close };
  } catch (error) {
    await server?.stop();
    throw explainDamage(error, server === undefined ? undefined : settings.dataDir);
  }
}

async function startServer(
  settings: NotifySettings,
  log: StoreLog,
): Promise<EmbeddedPostgres | undefined> {
  if (settings.databaseUrl !== undefined) return undefined;
  return startEmbeddedPostgres({
    dataDirectory: settings.dataDir,
    maxConnections: settings.pgPoolSize + SPARE_CONNECTIONS,
    log,
  });
}
