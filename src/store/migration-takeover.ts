import type { Client } from 'pg';
import { AppError } from '../shared/app-error.ts';
import type { MigrationFile } from './migration-files.ts';
import { appliedMigrations } from './migration-table.ts';
import type { StoreLog } from './store-log.ts';
import type { StoreReason } from './store-reason.ts';

/** Where files that were made one were run, their names stand in `table`; `name` is that of the one. */
type TakeOverOptions = { readonly table: string; readonly log: StoreLog };

/**
 * Adopts a database on which the files that a squashed one replaces were all run: its name takes the
 * place of theirs. The schema is that of the squashed file already, so no DDL is run. Call it under the
 * migration lock. Errors: STORE_UNAVAILABLE when only some of them were run, naming the newest that was
 * and the one to pass through. Cost: one query when there is nothing to adopt.
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
  throw new AppError<StoreReason>(
    'STORE_UNAVAILABLE',
    `the schema is of a version before 0.1.0 that is not its last (${found}): start the version whose newest migration is ${wanted} on this database once, then this one (docs/operations.md, "From a checkout before 0.1.0")`,
    { migrations: String(found), through: String(wanted) },
  );
}

/** In one statement: whoever looks meanwhile sees the old names or the new one. */
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
