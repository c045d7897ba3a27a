import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../config/options.ts';
import type { EventLog } from '../../observability/logger.ts';
import { startEmbeddedPostgres } from '../../store/embedded/embedded-postgres.ts';
import type { ServerTarget } from '../../store/postgres/pool.ts';
import { embeddedConnectionsFor } from './database.ts';

/** The database of several instances, owned by none of them. */
export type SharedDatabase = {
  /** Settings by which an instance finds it. */
  readonly env: Readonly<Record<string, string>>;
  /** Stops an embedded server. Idempotent. */
  stop(): Promise<void>;
};

/**
 * DATABASE_URL as it is, else an embedded server, whose address is in a file that only this user
 * may read; it grants `needed` connections. Errors: STORE_UNAVAILABLE when the server cannot start.
 */
export async function shareDatabase(
  config: Config,
  needed: number,
  log: EventLog,
): Promise<SharedDatabase> {
  if (config.databaseUrl !== undefined) {
    return { env: {}, stop: () => Promise.resolve() };
  }
  const server = await startEmbeddedPostgres({
    dataDirectory: config.dataDir,
    maxConnections: embeddedConnectionsFor(needed),
    log,
  });
  const file = join(config.dataDir, 'database-url');
  mkdirSync(config.dataDir, { recursive: true });
  rmSync(file, { force: true });
  writeFileSync(file, urlOf(server.target), { mode: 0o600 });
  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    rmSync(file, { force: true });
    await server.stop();
  };
  return { env: { DATABASE_URL_FILE: file }, stop: () => (stopping ??= stop()) };
}

function urlOf({ user, password, database, host, port }: ServerTarget): string {
  const query = `host=${encodeURIComponent(host)}&port=${port}`;
  return `postgres://${user}:${encodeURIComponent(password)}@localhost/${database}?${query}\n`;
}
