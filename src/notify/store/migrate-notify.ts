import { fileURLToPath } from 'node:url';
import { migrateSchema } from '../../store/migrate.ts';
import type { PostgresTarget } from '../../store/pool.ts';
import type { StoreLog } from '../../store/store-log.ts';

const DIRECTORY = fileURLToPath(new URL('../../../migrations/notify', import.meta.url));

/**
 * Brings schema `notify` up to date, waiting for any other process that does the same.
 * Errors: STORE_UNAVAILABLE when the database is newer than this release, or a standby.
 */
export function migrateNotify(target: PostgresTarget, log: StoreLog): Promise<void> {
  return migrateSchema(target, { log, directory: DIRECTORY, table: 'notify_schema_migration' });
}
