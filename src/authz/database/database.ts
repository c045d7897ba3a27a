import type { Pool } from 'pg';
import type { Config } from '../../config/options.ts';
import type { EventLog } from '../../observability/logger.ts';
import type { DatabaseTime } from '../../shared/time/database-clock.ts';
import { startEmbeddedPostgres } from '../../store/embedded/embedded-postgres.ts';
import { InstanceMembership } from '../../store/membership/membership.ts';
import { DeploymentWatch } from '../../store/migrations/deployment-watch.ts';
import type { Deployment } from '../../store/migrations/deployment.ts';
import { migrate } from '../../store/migrations/migrate.ts';
import { assertConnectionsFit } from '../../store/postgres/connection-budget.ts';
import { isSilence } from '../../store/postgres/pg-errors.ts';
import { createPool, type PostgresTarget } from '../../store/postgres/pool.ts';
import { examineTarget } from '../../store/postgres/pooler.ts';
import { StoreRefusals } from '../../store/postgres/store-refusals.ts';
import { INDEX_CONNECTIONS } from './index-links.ts';

/** Connections of one decision worker: three loads and a catch-up at once. */
export const WORKER_CONNECTIONS = 4;
/** Outside of pools: the membership, LISTEN, the work for all instances, and the read index. */
const SINGLE_CONNECTIONS = 3 + INDEX_CONNECTIONS;
const EMBEDDED_CONNECTIONS_MIN = 100;
/** Spare connections for psql, pg_dump and other visitors. */
const EMBEDDED_CONNECTIONS_SPARE = 20;
const START_PATIENCE_MS = 30_000;

/** The database of this instance, ready to use: migrated, and registered on. */
export interface Database {
  readonly target: PostgresTarget;
  readonly deployment: Deployment;
  readonly pool: Pool;
  readonly membership: InstanceMembership;
  readonly history: DeploymentWatch;
  /** The recent refusals of the server; statements that fail are added to it. */
  readonly refusals: StoreRefusals;
  /** Closes the pool, releases the registration, and stops an embedded server. Idempotent. */
  stop(): Promise<void>;
}

/** Connections that one instance may open. */
export function connectionsOf({
  pgPoolSize,
  workers,
}: Pick<Config, 'pgPoolSize' | 'workers'>): number {
  return pgPoolSize + workers * WORKER_CONNECTIONS + SINGLE_CONNECTIONS;
}

/** Connections that the embedded server must grant for so many of instances. */
export function embeddedConnectionsFor(needed: number): number {
  return Math.max(EMBEDDED_CONNECTIONS_MIN, needed + EMBEDDED_CONNECTIONS_SPARE);
}

/** A server that answers late, as on a busy machine, fails no start; one that refuses does at once. */
async function startPatiently(membership: InstanceMembership, log: EventLog): Promise<void> {
  const deadlineMs = performance.now() + START_PATIENCE_MS;
  for (;;) {
    try {
      await membership.start();
      return;
    } catch (error) {
      if (!isSilence(error) || performance.now() >= deadlineMs) throw error;
      log('warn', 'instance_registration_late', { error: String(error) });
    }
  }
}

function loggedRefusals(log: EventLog): StoreRefusals {
  return new StoreRefusals(
    () => performance.now(),
    (reason, error) => log('error', 'postgres_refuses', { reason, error: String(error) }),
  );
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
  const needed = connectionsOf(config);
  const { databaseUrl } = config;
  const server =
    databaseUrl === undefined
      ? await startEmbeddedPostgres({
          dataDirectory: config.dataDir,
          maxConnections: embeddedConnectionsFor(needed),
          log,
        })
      : undefined;
  try {
    const target = server?.target ?? (await examineTarget({ connectionString: databaseUrl ?? '' }));
    const deployment = await migrate(target, { log });
    const history = new DeploymentWatch(log, deployment);
    const refusals = loggedRefusals(log);
    const membership = new InstanceMembership({
      target,
      region: config.region,
      isExclusive: server !== undefined,
      events: {
        onRenewed: ({ sentMs, answeredMs, databaseUs }) =>
          time.observe(sentMs, answeredMs, Number(databaseUs) / 1000),
        onFailed: refusals.note,
      },
      prepare: history.check,
      log,
    });
    await startPatiently(membership, log);
    const pool = createPool(target, {
      max: config.pgPoolSize,
      applicationName: 'gatehouse-gateway',
      log,
      prepare: history.check,
    });
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
      refusals,
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
