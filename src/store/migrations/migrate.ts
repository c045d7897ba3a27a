import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';
import { type PostgresTarget, clientConfig } from '../postgres/pool.ts';
import { silentLog, type StoreLog } from '../postgres/store-log.ts';
import { type Deployment, readDeployment } from './deployment.ts';
import { type MigrationFile, readMigrationFiles } from './migration-files.ts';
import { applyMigrations, type LockWait, withMigrationLock } from './migration-runner.ts';
import { appliedMigrations, assertKnownEnough } from './migration-table.ts';

/** Forward-only .sql files, run in the order of their names. */
export const MIGRATIONS_DIRECTORY = fileURLToPath(new URL('../../../migrations', import.meta.url));
const MIGRATIONS_TABLE = 'schema_migration';

export type MigrateOptions = {
  readonly log?: StoreLog | undefined;
  readonly migrationsDirectory?: string | undefined;
  /** How a migration waits for a table that others use. Default: see `LOCK_WAIT`. */
  readonly lockWait?: Partial<LockWait> | undefined;
};

export type SchemaOptions = {
  readonly log: StoreLog;
  /** Absolute; the .sql files in it, not those in folders below. */
  readonly directory: string;
  /** Which files were run; a table of schema `public`. One a directory. */
  readonly table: string;
  readonly lockWait?: Partial<LockWait> | undefined;
};

const CONNECT_TIMEOUT_MS = 30_000;
/**
 * Migrations block writes for at most `lockTimeoutMs` at a time, and let them continue for twice as
 * long in between.
 */
const LOCK_WAIT: LockWait = { lockTimeoutMs: 500, pauseMs: 1_000, giveUpMs: 600_000 };

/**
 * Brings the schema up to date and the deployment row with it, waiting for any other process that
 * does the same. Pending files run in one transaction, but for indexes that are built concurrently.
 * A schema with migrations that this release does not know is accepted if each of them allows it
 * (migration-files.ts). A schema from before 0.1.0 is adopted (takeOverReplaced). Errors:
 * STORE_UNAVAILABLE when one does not allow it, when a table could not be locked for ten minutes,
 * for a standby, or a schema in between. Cost: a few queries when there is nothing to do.
 */
export function migrate(target: PostgresTarget, options: MigrateOptions = {}): Promise<Deployment> {
  const log = options.log ?? silentLog;
  const directory = options.migrationsDirectory ?? MIGRATIONS_DIRECTORY;
  const { lockWait } = options;
  return migrated(target, { log, directory, table: MIGRATIONS_TABLE, lockWait }, (client) =>
    readDeployment(client, log),
  );
}

/** Migrates like `migrate`, for a service with files and a table of its own; reads no deployment. */
export function migrateSchema(target: PostgresTarget, options: SchemaOptions): Promise<void> {
  return migrated(target, options, () => Promise.resolve());
}

async function migrated<T>(
  target: PostgresTarget,
  options: SchemaOptions,
  andThen: (client: Client) => Promise<T>,
): Promise<T> {
  const { log, directory, table } = options;
  const client = new Client(
    clientConfig(target, {
      applicationName: 'gatehouse-migrate',
      // A migration may be long; how long it waits for others is decided below.
      statementTimeoutMs: 0,
      lockTimeoutMs: 0,
      idleInTransactionTimeoutMs: 0,
      // A start on a busy machine is late, and not in vain.
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
    }),
  );
  client.on('error', (error) => log('warn', 'postgres_connection_lost', { error: error.message }));
  await client.connect();
  try {
    await assertPrimary(client);
    const files = readMigrationFiles(directory);
    const known = files.map(({ name }) => name);
    const replaced = files.flatMap(({ replaces }) => replaces);
    await assertKnownEnough(client, { known, replaced }, table, silentLog);
    await withMigrationLock(client, async () => {
      await takeOverReplaced(client, files, { table, log });
      await runPending(client, files, options);
    });
    // Looked at again: while we waited for the lock, a newer release may have migrated.
    await assertKnownEnough(client, { known, replaced: [] }, table, log);
    return await andThen(client);
  } finally {
    await client.end();
  }
}

/** Tries until no table is kept from it: what waits for a lock stops everybody who comes after it. */
async function runPending(
  client: Client,
  files: readonly MigrationFile[],
  { log, directory, table, lockWait }: SchemaOptions,
): Promise<void> {
  const wait = { ...LOCK_WAIT, ...lockWait };
  const deadlineMs = performance.now() + wait.giveUpMs;
  for (;;) {
    const outcome = await applyMigrations(client, { files, directory, table, wait, log });
    if (outcome === 'done') return;
    const { blocker, busyWith } = outcome;
    if (performance.now() >= deadlineMs) {
      throw new AppError<SharedReason>(
        'STORE_UNAVAILABLE',
        `the schema could not be migrated: a table is in use (${busyWith})${blocker}; end what uses it, then start again`,
      );
    }
    log('warn', 'migration_lock_awaited', { error: busyWith, blocker });
    await delay(wait.pauseMs);
  }
}

async function assertPrimary(client: Client): Promise<void> {
  const { rows } = await client.query<{ standby: boolean }>(
    'select pg_is_in_recovery() as standby',
  );
  if (rows[0]?.standby === false) return;
  throw new AppError<SharedReason>(
    'STORE_UNAVAILABLE',
    'the database is a standby; connect to the primary',
  );
}

/** Names of files that one file replaces are in `table`; `name` is that of the one. */
type TakeOverOptions = { readonly table: string; readonly log: StoreLog };

/**
 * Adopts a database on which the files that a squashed one replaces were all run: its name replaces
 * theirs. The schema is that of the squashed file already, so no DDL is run. Call it under the
 * migration lock. Errors: STORE_UNAVAILABLE when only some of them were run, naming the newest that
 * was and the one to pass through. Cost: one query when there is nothing to adopt.
 */
export async function takeOverReplaced(
  client: Client,
  files: readonly MigrationFile[],
  { table, log }: TakeOverOptions,
): Promise<void> {
  for (const { name, replaces } of files) {
    if (replaces.length === 0) continue;
    const applied = await appliedMigrations(client, table);
    const known = replaces.filter((replaced) => applied.has(replaced));
    if (known.length === 0) continue;
    assertAllRun(known, replaces);
    await renameRun(client, table, replaces, name);
    log('info', 'schema_taken_over', { migration: name });
  }
}

function assertAllRun(known: readonly string[], replaces: readonly string[]): void {
  if (known.length === replaces.length) return;
  const [found, wanted] = [known.at(-1), replaces.at(-1)];
  throw new AppError<SharedReason>(
    'STORE_UNAVAILABLE',
    `the schema is of a version before 0.1.0 that is not its last (${found}): start the version whose newest migration is ${wanted} on this database once, then this one (docs/operations.md, "From a checkout before 0.1.0")`,
    { migrations: String(found), through: String(wanted) },
  );
}

/** One statement: other sessions see the old names or the new one. */
async function renameRun(
  client: Client,
  table: string,
  replaces: readonly string[],
  name: string,
): Promise<void> {
  await client.query(
    `with gone as (delete from public.${table} where name = any ($1::text[]) returning name),
     beside as (
       delete from public.schema_beside where migration_table = $3 and migration = any ($1::text[])
     )
     insert into public.${table} (name, run_on) select $2, now() from gone limit 1`,
    [replaces, name, table],
  );
}
