import { Client, type Pool } from 'pg';
import type { Config } from '../config/options.ts';
import type { EventLog } from '../observability/logger.ts';
import type { DatabaseTime } from '../shared/database-clock.ts';
import { assertConnectionsFit } from '../store/connection-budget.ts';
import { type Deployment, readDeployment } from '../store/deployment.ts';
import { startEmbeddedPostgres } from '../store/embedded-postgres.ts';
import { Membership } from '../store/membership.ts';
import { migrate } from '../store/migrate.ts';
import { clientConfig, createPool, type PostgresTarget } from '../store/pool.ts';
import { INDEX_CONNECTIONS } from './index-links.ts';

/** Connections of one decision worker: three loads and a catch-up at once. */
export const WORKER_CONNECTIONS = 4;
/** Outside of pools: the membership, LISTEN, the work for all instances, and the read index. */
const SINGLE_CONNECTIONS = 3 + INDEX_CONNECTIONS;
/** A new epoch updates every shard's row. */
const NEW_EPOCH_MS_MAX = 60_000;
const EMBEDDED_CONNECTIONS_MIN = 100;
/** For psql, pg_dump and what else looks in. */
const EMBEDDED_CONNECTIONS_SPARE = 20;

/**
 * After each connection of the membership: a failover may lie between. On a connection of its own, since a new
 * epoch of many shards takes longer than a renewal may.
 */
async function followDeployment(target: PostgresTarget, log: EventLog): Promise<void> {
  const client = new Client({
    ...clientConfig(target, {
      applicationName: 'gatehouse-deployment',
      statementTimeoutMs: NEW_EPOCH_MS_MAX,
      lockTimeoutMs: NEW_EPOCH_MS_MAX,
      idleInTransactionTimeoutMs: 0,
    }),
    query_timeout: NEW_EPOCH_MS_MAX,
  });
  client.on('error', (error) => log('warn', 'postgres_connection_lost', { error: error.message }));
  try {
    await client.connect();
    await readDeployment(client, log);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** The database of this instance, ready to use: migrated, and registered on. */
export interface Database {
  readonly target: PostgresTarget;
  readonly deployment: Deployment;
  readonly pool: Pool;
  readonly membership: Membership;
  /** Closes the pool, gives the registration back, and stops an embedded server. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Starts the embedded server or uses DATABASE_URL, migrates, and registers this instance.
 * Errors: STORE_UNAVAILABLE with what to do about it; whatever was started is stopped again.
 */
export async function openDatabase(
  config: Config,
  log: EventLog,
  time: DatabaseTime,
): Promise<Database> {
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
    const membership = new Membership({
      target,
      region: config.region,
      isExclusive: server !== undefined,
      events: {
        onRenewed: ({ sentMs, answeredMs, databaseUs }) =>
          time.observe(sentMs, answeredMs, Number(databaseUs) / 1000),
      },
      prepare: () => followDeployment(target, log),
      log,
    });
    await membership.start();
    const pool = createPool(target, {
      max: config.pgPoolSize,
      applicationName: 'gatehouse-gateway',
      log,
    });
    let stopping: Promise<void> | undefined;
    const stop = async (): Promise<void> => {
      await pool.end();
      await membership.leave();
      await server?.stop();
    };
    const database = {
      target,
      deployment,
      pool,
      membership,
      stop: () => (stopping ??= stop()),
    };
    const isExclusive = server !== undefined;
    const needs = { each: needed, instances: config.instances, isExclusive };
    await assertConnectionsFit(pool, needs, log).catch(async (error: unknown) => {
      await database.stop();
      throw error;
    });
    return database;
  } catch (error) {
    await server?.stop();
    throw error;
  }
}
