import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import { Client } from 'pg';
import { AppError } from '../shared/app-error.ts';
import { type Deployment, readDeployment } from './deployment.ts';
import { type PostgresTarget, clientConfig } from './pool.ts';
import { type StoreLog, silentLog } from './store-log.ts';
import type { StoreReason } from './store-reason.ts';

/** Forward-only .sql files, run in the order of their names. */
export const MIGRATIONS_DIRECTORY = fileURLToPath(new URL('../../migrations', import.meta.url));
const MIGRATIONS_TABLE = 'schema_migration';

export type MigrateOptions = {
  readonly log?: StoreLog | undefined;
  readonly migrationsDirectory?: string | undefined;
};

export type SchemaOptions = {
  readonly log: StoreLog;
  /** Absolute; the .sql files in it, not those in folders below. */
  readonly directory: string;
  /** Which files were run; a table of schema `public`. One a directory. */
  readonly table: string;
};

/**
 * Brings the schema up to date and the deployment row with it, waiting for any other process that
 * does the same. All pending files run in one transaction.
 * Errors: STORE_UNAVAILABLE when the database has migrations that this release does not know, or is
 * a standby. Cost: a few queries when there is nothing to do.
 */
export function migrate(target: PostgresTarget, options: MigrateOptions = {}): Promise<Deployment> {
  const log = options.log ?? silentLog;
  const directory = options.migrationsDirectory ?? MIGRATIONS_DIRECTORY;
  return migrated(target, { log, directory, table: MIGRATIONS_TABLE }, (client) =>
    readDeployment(client, log),
  );
}

/** As `migrate`, for a service with files and a table of its own; reads no deployment. */
export function migrateSchema(target: PostgresTarget, options: SchemaOptions): Promise<void> {
  return migrated(target, options, () => Promise.resolve());
}

async function migrated<T>(
  target: PostgresTarget,
  { log, directory, table }: SchemaOptions,
  andThen: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client(
    clientConfig(target, {
      applicationName: 'gatehouse-migrate',
      // Another process may be at a long migration, and ours may be one.
      statementTimeoutMs: 0,
      lockTimeoutMs: 0,
      idleInTransactionTimeoutMs: 0,
    }),
  );
  client.on('error', (error) => log('warn', 'postgres_connection_lost', { error: error.message }));
  await client.connect();
  try {
    await assertPrimary(client);
    const known = migrationNames(directory);
    await assertNotNewer(client, known, table);
    const applied = await runner({
      dbClient: client,
      dir: directory,
      direction: 'up',
      migrationsTable: table,
      checkOrder: true,
      singleTransaction: true,
      advisoryLockMode: 'wait',
      log: () => undefined,
    });
    // Looked at again: while we waited for the lock, a newer release may have migrated.
    await assertNotNewer(client, known, table);
    for (const { name } of applied) log('info', 'schema_migrated', { migration: name });
    return await andThen(client);
  } finally {
    await client.end();
  }
}

function migrationNames(directory: string): readonly string[] {
  return readdirSync(directory)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .toSorted();
}

async function assertPrimary(client: Client): Promise<void> {
  const { rows } = await client.query<{ standby: boolean }>(
    'select pg_is_in_recovery() as standby',
  );
  if (rows[0]?.standby === false) return;
  throw new AppError<StoreReason>(
    'STORE_UNAVAILABLE',
    'the database is a standby; connect to the primary',
  );
}

async function assertNotNewer(
  client: Client,
  known: readonly string[],
  table: string,
): Promise<void> {
  const found = await client.query<{ present: boolean }>(
    `select to_regclass('public.${table}') is not null as present`,
  );
  if (found.rows[0]?.present !== true) return;
  const { rows } = await client.query<{ name: string }>(
    `select name from public.${table} where not (name = any($1::text[])) order by name`,
    [known],
  );
  if (rows.length === 0) return;
  const names = rows.map((row) => row.name).join(', ');
  throw new AppError<StoreReason>(
    'STORE_UNAVAILABLE',
    `the database has a newer schema than this release knows (${names}); start that newer release`,
    { migrations: names },
  );
}
