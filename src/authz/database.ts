import type { Pool } from 'pg';
import type { Config } from '../config/options.ts';
import type { EventLog } from '../observability/logger.ts';
import { DeploymentWatch } from '../store/deployment-watch.ts';
import type { Deployment } from '../store/deployment.ts';
import { startEmbeddedPostgres } from '../store/embedded-postgres.ts';
import { Membership } from '../store/membership.ts';
import { migrate } from '../store/migrate.ts';
import { assertConnectionsFit, createPool, type PostgresTarget } from '../store/pool.ts';
import { INDEX_CONNECTIONS } from './index-links.ts';

/** Connections of one decision worker: three loads and a catch-up at once. */
export const WORKER_CONNECTIONS = 4;
/** Outside of pools: the membership, LISTEN, and the read index. */
const SINGLE_CONNECTIONS = 2 + INDEX_CONNECTIONS;
const EMBEDDED_CONNECTIONS_MIN = 100;
/** For psql, pg_dump and what else looks in. */
const EMBEDDED_CONNECTIONS_SPARE = 20;

/** The database of this instance, ready to use: migrated, and registered on. */
export interface Database {
  readonly target: PostgresTarget;
  readonly deployment: Deployment;
  readonly pool: Pool;
  readonly membership: Membership;
  readonly history: DeploymentWatch;
  /** Closes the pool, gives the registration back, and stops an embedded server. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Starts the embedded server or uses DATABASE_URL, migrates, and registers this instance.
 * Errors: STORE_UNAVAILABLE with what to do about it; whatever was started is stopped again.
 */
export async function openDatabase(config: Config, log: EventLog): Promise<Database> {
  const needed = config.pgPoolSize + config.workers * WORKER_CONNECTIONS + SINGLE_CONNECTIONS;
  const { databaseUrl } = config;
  const server =
    databaseUrl === undefined
      ? await startEmbeddedPostgres({
          dataDirectory: config.dataDir,
          maxConnections: Math.max(EMBEDDED_CONNECTIONS_MIN, needed + EMBEDDED_CONNECTIONS_SPARE),
          log,
        })
      : undefined;
  const target = server?.target ?? { connectionString: databaseUrl ?? '' };
  try {
    const deployment = await migrate(target, { log });
    const history = new DeploymentWatch(log, deployment);
    const membership = new Membership({
      target,
      region: config.region,
      isExclusive: server !== undefined,
      prepare: history.check,
      log,
    });
    await membership.start();
    const pool = createPool(target, {
      max: config.pgPoolSize,
      applicationName: 'gatehouse-gateway',
      log,
      prepare: history.check,
    });
    history.start(pool);
    let stopping: Promise<void> | undefined;
    const stop = async (): Promise<void> => {
      history.stop();
      await pool.end();
      await membership.leave();
      await server?.stop();
    };
    const database = {
      target,
      deployment,
      pool,
      membership,
      history,
      stop: () => (stopping ??= stop()),
    };
    await assertConnectionsFit(pool, needed).catch(async (error: unknown) => {
      await database.stop();
      throw error;
    });
    return database;
  } catch (error) {
    await server?.stop();
    throw error;
  }
}
