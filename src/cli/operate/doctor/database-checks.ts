import type { Client } from 'pg';
import { connectionsOf } from '../../../authz/database/database.ts';
import type { Config } from '../../../config/options.ts';
import { MIGRATIONS_DIRECTORY } from '../../../store/migrations/migrate.ts';
import { readMigrationFiles } from '../../../store/migrations/migration-files.ts';
import { appliedMigrations, assertKnownEnough } from '../../../store/migrations/migration-table.ts';
import { assertConnectionsFit } from '../../../store/postgres/connection-budget.ts';
import { examineTarget } from '../../../store/postgres/pooler.ts';
import { messageOf } from '../../core/files.ts';
import type { DoctorDatabase } from './database-session.ts';
import { failure, fine, type Observation, warning } from './observation.ts';

/** PostgreSQL 15: the schema uses `unique nulls not distinct`. */
const SERVER_VERSION_MIN = 150_000;
const CLOCK_MS_MAX = 1_000;
const MIGRATIONS_TABLE = 'schema_migration';

/**
 * Checks that the server can be reached, is new enough and is the primary. Reports a pooler in
 * front of it.
 */
export async function checkServer(database: DoctorDatabase): Promise<readonly Observation[]> {
  const seen = await database.reach(async (client) => {
    const { rows } = await client.query<{ version: string; number: number; standby: boolean }>(
      `select current_setting('server_version') as version,
         current_setting('server_version_num')::int as number, pg_is_in_recovery() as standby`,
    );
    const [server] = rows;
    if (server === undefined) return [failure('it says nothing of its version')];
    const version = `PostgreSQL ${server.version}`;
    if (server.number < SERVER_VERSION_MIN) {
      return [failure(`${version} is too old`, 'use PostgreSQL 15 or newer')];
    }
    if (server.standby) {
      return [failure(`${version}, a standby`, 'let DATABASE_URL lead to the primary')];
    }
    return [fine(version)];
  });
  const isUsable = seen.every(({ state }) => state === 'ok');
  return isUsable ? [...seen, await poolerSeen(database.url)] : seen;
}

async function poolerSeen(url: string): Promise<Observation> {
  try {
    const target = await examineTarget({ connectionString: url });
    return fine('isPooled' in target ? 'behind a pooler in session mode' : 'no pooler before it');
  } catch (error) {
    return failure(messageOf(error), 'docs/operations.md, "PgBouncer"');
  }
}

/** Checks that the connections of all instances fit into the server's limit. */
export async function checkConnections(
  client: Client,
  config: Config,
): Promise<readonly Observation[]> {
  const each = connectionsOf(config);
  const { rows } = await client.query<{ isMigrated: boolean; max: string }>(
    `select to_regclass('public.instance') is not null as "isMigrated",
       current_setting('max_connections') as max`,
  );
  const { isMigrated = false, max = '0' } = rows[0] ?? {};
  const instances = config.instances ?? 1;
  const seen = `${each} for an instance, of ${max} that the server has`;
  const advice = 'lower GATEWAY_PG_POOL_SIZE or GATEWAY_WORKERS, or raise max_connections';
  if (!isMigrated) {
    const needed = each * (config.instances === undefined ? 1 : instances + 1);
    return [needed > Number(max) ? failure(`${seen}: ${needed} are needed`, advice) : fine(seen)];
  }
  let isShort = false;
  try {
    await assertConnectionsFit(
      client,
      { each, instances: config.instances, isExclusive: false },
      () => (isShort = true),
    );
  } catch (error) {
    return [failure(messageOf(error), advice)];
  }
  return [isShort ? warning(`${seen}: one more instance does not fit`, advice) : fine(seen)];
}

/** Checks the schema against this release: pending migrations, or a schema too new to run on. */
export async function checkMigrations(client: Client): Promise<readonly Observation[]> {
  const files = readMigrationFiles(MIGRATIONS_DIRECTORY);
  const known = files.map(({ name }) => name);
  const replaced = files.flatMap((file) => file.replaces);
  const applied = await appliedMigrations(client, MIGRATIONS_TABLE);
  if (applied.size === 0) {
    return [fine(`none was run: the first start makes the tables (${known.length} files)`)];
  }
  let isNewer = false;
  await assertKnownEnough(client, { known, replaced }, MIGRATIONS_TABLE, () => (isNewer = true));
  const pending = known.filter((name) => !applied.has(name));
  if (pending.length > 0) {
    return [
      warning(
        `${pending.length} of ${known.length} are pending: ${pending.join(', ')}`,
        'the next start runs them: docs/operations.md, "Upgrade"',
      ),
    ];
  }
  return [
    fine(
      isNewer ? 'newer than this release, which can run on them' : `all ${known.length} were run`,
    ),
  ];
}

/** Checks the difference between this machine's clock and that of the database. */
export async function checkClock(client: Client): Promise<readonly Observation[]> {
  const sentMs = Date.now();
  const { rows } = await client.query<{ ms: number }>(
    'select extract(epoch from clock_timestamp())::float8 * 1000 as ms',
  );
  const answeredMs = Date.now();
  const aheadMs = Math.round((rows[0]?.ms ?? 0) - (sentMs + answeredMs) / 2);
  const unknownMs = (answeredMs - sentMs) / 2;
  if (Math.abs(aheadMs) - unknownMs <= CLOCK_MS_MAX) {
    return [fine('agrees with that of the database to a second')];
  }
  const side = aheadMs > 0 ? 'behind' : 'ahead of';
  return [
    warning(
      `is ${(Math.abs(aheadMs) / 1000).toFixed(1)} s ${side} that of the database`,
      'set both by NTP: docs/operations.md, "Clocks"',
    ),
  ];
}
