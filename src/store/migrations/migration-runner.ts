import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { PG_MIGRATE_LOCK_ID, runner, type RunnerOption } from 'node-pg-migrate';
import type { Client } from 'pg';
import { isRetryable } from '../postgres/pg-errors.ts';
import type { StoreLog } from '../postgres/store-log.ts';
import type { MigrationFile } from './migration-files.ts';
import { appliedMigrations, recordBeside } from './migration-table.ts';

/** How a migration waits for a table that others use. */
export type LockWait = {
  /** So long everybody else may have to wait behind it. */
  readonly lockTimeoutMs: number;
  /** Pause before it tries again, in which the others continue. */
  readonly pauseMs: number;
  /** After this it gives up. */
  readonly giveUpMs: number;
};

export type ApplyOptions = {
  readonly files: readonly MigrationFile[];
  readonly directory: string;
  readonly table: string;
  readonly wait: LockWait;
  readonly log: StoreLog;
};

/** `busyWith` is the server's message, `blocker` the session that may be in the way. */
export type ApplyOutcome = 'done' | { readonly busyWith: string; readonly blocker: string };

const LOCK_POLL_MS = 100;

/**
 * Runs `work` while no other process migrates this database, services of another kind included.
 * The lock is polled for: whoever waits inside a statement has a snapshot, for whose end an index that
 * is built concurrently would wait in turn.
 */
export async function withMigrationLock(client: Client, work: () => Promise<void>): Promise<void> {
  const lock = [String(PG_MIGRATE_LOCK_ID)];
  for (;;) {
    const { rows } = await client.query<{ held: boolean }>(
      'select pg_try_advisory_lock($1::bigint) as held',
      lock,
    );
    if (rows[0]?.held === true) break;
    await delay(LOCK_POLL_MS);
  }
  try {
    await work();
  } finally {
    // Also released by the end of the connection.
    await client.query('select pg_advisory_unlock($1::bigint)', lock).catch(() => undefined);
  }
}

/**
 * Runs the files that were not run, in order: neighbours in one transaction, an index that is built
 * concurrently by itself. Not 'done': a table was in use for longer than `wait.lockTimeoutMs`; nothing of the
 * transaction was applied. Errors: those of the server.
 */
export async function applyMigrations(
  client: Client,
  options: ApplyOptions,
): Promise<ApplyOutcome> {
  const { files, table, wait } = options;
  const applied = await appliedMigrations(client, table);
  const pending = files.filter(({ name }) => !applied.has(name));
  if (pending.length === 0) return 'done';
  await recordBeside(client, files, table);
  try {
    for (const step of stepsOf(pending)) {
      const isTransaction = step[0]?.concurrentIndex === undefined;
      await client.query(`set lock_timeout = ${isTransaction ? wait.lockTimeoutMs : 0}`);
      if (isTransaction) await runInTransaction(client, step, options);
      else for (const file of step) await buildIndex(client, file, options);
    }
    return 'done';
  } catch (error) {
    if (!isRetryable(error)) throw error;
    return { busyWith: (error as Error).message, blocker: await oldestTransaction(client) };
  } finally {
    await client.query('set lock_timeout = 0');
  }
}

/** Neighbours of one kind. */
function stepsOf(pending: readonly MigrationFile[]): readonly (readonly MigrationFile[])[] {
  const steps: MigrationFile[][] = [];
  for (const file of pending) {
    const last = steps.at(-1);
    const isSame =
      last !== undefined &&
      (last[0]?.concurrentIndex === undefined) === (file.concurrentIndex === undefined);
    if (isSame) last.push(file);
    else steps.push([file]);
  }
  return steps;
}

async function runInTransaction(
  client: Client,
  step: readonly MigrationFile[],
  { directory, table, log }: ApplyOptions,
): Promise<void> {
  await runner({
    ...runnerOptions(client, directory, table),
    count: step.length,
    singleTransaction: true,
  });
  for (const { name } of step) log('info', 'schema_migrated', { migration: name });
}

async function buildIndex(
  client: Client,
  { name, path, concurrentIndex = '' }: MigrationFile,
  { directory, table, log }: ApplyOptions,
): Promise<void> {
  const { rows } = await client.query<{ valid: boolean }>(
    'select i.indisvalid as valid from pg_index i where i.indexrelid = to_regclass($1)',
    // A name without a schema is one of `public`.
    [concurrentIndex.includes('.') ? concurrentIndex : `public.${concurrentIndex}`],
  );
  // An invalid index of an earlier attempt slows every write and serves no read.
  if (rows[0]?.valid === false) await client.query(`drop index concurrently ${concurrentIndex}`);
  if (rows[0]?.valid !== true) await client.query(readFileSync(path, 'utf8'));
  await runner({ ...runnerOptions(client, directory, table), file: name, fake: true });
  log('info', 'schema_migrated', { migration: name });
}

function runnerOptions(client: Client, directory: string, table: string): RunnerOption {
  return {
    dbClient: client,
    dir: directory,
    direction: 'up',
    migrationsTable: table,
    checkOrder: true,
    noLock: true,
    log: () => undefined,
  };
}

/** Text for the operator: the oldest open transaction. */
async function oldestTransaction(client: Client): Promise<string> {
  const { rows } = await client.query<{ pid: number; name: string; seconds: number }>(
    `select a.pid, a.application_name as name,
       extract(epoch from clock_timestamp() - a.xact_start)::int as seconds
     from pg_stat_activity a
     where a.datname = current_database() and a.pid <> pg_backend_pid() and a.xact_start is not null
     order by a.xact_start limit 1`,
  );
  const oldest = rows[0];
  if (oldest === undefined) return '';
  return `; the oldest transaction is that of server process ${oldest.pid} (${oldest.name}, ${oldest.seconds} s)`;
}
