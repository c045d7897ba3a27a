import type { Client } from 'pg';
import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';
import type { StoreLog } from '../postgres/store-log.ts';
import { type MigrationFile, mayRunBeside } from './migration-files.ts';

/*
 * What is known about the migrations of a database: those that were run (`table`, kept by
 * node-pg-migrate), and, for releases that lack their files, beside which release each may be.
 */

const BESIDE = `create table if not exists public.schema_beside (
  migration_table text not null,
  migration text not null,
  runs_beside text not null,
  primary key (migration_table, migration)
)`;

/** The names of the migrations that were run; none before the first. */
export async function appliedMigrations(
  client: Client,
  table: string,
): Promise<ReadonlySet<string>> {
  if (!(await exists(client, table))) return new Set();
  const { rows } = await client.query<{ name: string }>(`select name from public.${table}`);
  return new Set(rows.map(({ name }) => name));
}

/**
 * Notes beside which release each file may be, before the first of them is run. Idempotent. Nothing is
 * noted of a file that may be beside none: names from before 0.1.0 sort among those from after it.
 */
export async function recordBeside(
  client: Client,
  files: readonly MigrationFile[],
  table: string,
): Promise<void> {
  await client.query(BESIDE);
  const admitting = files.filter(({ name, runsBeside }) => runsBeside !== name);
  await client.query(
    `with alone as (
       delete from public.schema_beside b where b.migration_table = $1 and b.migration = any ($4::text[])
     )
     insert into public.schema_beside (migration_table, migration, runs_beside)
     select $1, m.name, m.beside from unnest($2::text[], $3::text[]) m (name, beside)
     on conflict (migration_table, migration) do update set runs_beside = excluded.runs_beside`,
    [
      table,
      admitting.map(({ name }) => name),
      admitting.map(({ runsBeside }) => runsBeside),
      files.filter((file) => !admitting.includes(file)).map(({ name }) => name),
    ],
  );
}

/** Names of the files that a release has, in order, and of those that it would adopt. */
export type KnownMigrations = {
  readonly known: readonly string[];
  readonly replaced: readonly string[];
};

/**
 * Passes when every migration that was run is known or replaced, or may be beside a release that knows
 * `known`. Errors: STORE_UNAVAILABLE, naming the others.
 */
export async function assertKnownEnough(
  client: Client,
  { known, replaced }: KnownMigrations,
  table: string,
  log: StoreLog,
): Promise<void> {
  const applied = await appliedMigrations(client, table);
  const unknown = [...applied]
    .filter((name) => !known.includes(name) && !replaced.includes(name))
    .toSorted();
  if (unknown.length === 0) return;
  const beside = await besideOf(client, table);
  const newest = known.at(-1) ?? '';
  const names = unknown
    .filter((name) => !mayRunBeside(newest, beside.get(name) ?? null))
    .join(', ');
  if (names === '') {
    log('info', 'schema_newer', { migrations: unknown.join(', ') });
    return;
  }
  throw new AppError<SharedReason>(
    'STORE_UNAVAILABLE',
    `the database has a newer schema than this release can run on (${names}); start that newer release`,
    { migrations: names },
  );
}

async function besideOf(client: Client, table: string): Promise<ReadonlyMap<string, string>> {
  if (!(await exists(client, 'schema_beside'))) return new Map();
  const { rows } = await client.query<{ migration: string; runs_beside: string }>(
    'select migration, runs_beside from public.schema_beside where migration_table = $1',
    [table],
  );
  return new Map(rows.map((row) => [row.migration, row.runs_beside]));
}

async function exists(client: Client, table: string): Promise<boolean> {
  const { rows } = await client.query<{ present: boolean }>(
    `select to_regclass($1) is not null as present`,
    [`public.${table}`],
  );
  return rows[0]?.present === true;
}
