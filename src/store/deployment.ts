import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { assert } from '../shared/assert.ts';
import { type StoreLog, silentLog } from './store-log.ts';

const TOKEN_KEY_BYTES = 32;

/** Which history of which database this is. */
export type Deployment = {
  readonly systemIdentifier: string;
  readonly timeline: number;
  /** Keys the HMAC of consistency tokens. Secret. */
  readonly tokenKey: Buffer;
  /** Seconds since 1970 at which this history began, or 1 more than the one before. */
  readonly epoch: number;
};

type Row = {
  readonly stored_identifier: string | null;
  readonly stored_timeline: number | null;
  readonly identifier: string;
  readonly timeline: number;
};

/**
 * Reads the deployment row, made at the first call. When the server is not the one, or not on the
 * timeline, that the row names (failover, restore), every shard gets a new epoch first, so that no
 * token and no index of the other history stays valid. Call it at start and after a reconnect.
 * Cost: two short queries when nothing changed.
 */
export async function readDeployment(
  client: pg.ClientBase,
  log: StoreLog = silentLog,
): Promise<Deployment> {
  const { rows } = await client.query<Row>(
    `select d.system_identifier as stored_identifier, d.timeline as stored_timeline,
       c.system_identifier::text as identifier,
       -- The control file names the new timeline only after the first checkpoint on it.
       ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int as timeline
     from pg_control_system() c left join public.deployment d on true`,
  );
  const row = rows[0];
  assert(row !== undefined, 'pg_control_system() has one row');
  if (row.stored_identifier === null) {
    await client.query(
      `insert into public.deployment (system_identifier, timeline, token_key, epoch)
       values ($1, $2, $3, extract(epoch from clock_timestamp())::bigint)
       on conflict (singleton) do nothing`,
      [row.identifier, row.timeline, randomBytes(TOKEN_KEY_BYTES)],
    );
  } else if (row.stored_identifier !== row.identifier || row.stored_timeline !== row.timeline) {
    const epoch = await startNewEpoch(client);
    log('warn', 'deployment_epoch_started', { epoch, before: row.stored_identifier, ...row });
  }
  return await selectDeployment(client);
}

/**
 * Starts a new epoch for every shard. By itself only after a failover or restore; to be called by
 * hand after a cold copy, which nothing in the database tells from its original.
 * Returns the new epoch. Cost: one update of every shard row; waits for writes in progress.
 */
export async function startNewEpoch(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ epoch: string }>(
    `with moved as (
       update public.deployment d
       set system_identifier = c.system_identifier::text,
         timeline =
           ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int,
         -- By the clock, so that two restores of one backup do not meet in the same epoch.
         epoch = greatest(d.epoch + 1, extract(epoch from clock_timestamp())::bigint)
       from pg_control_system() c
       returning d.epoch
     ), shards as (
       update public.shard s set epoch = greatest(s.epoch + 1, m.epoch) from moved m
       returning s.epoch
     )
     select m.epoch::text as epoch, count(s.*) as shards
     from moved m left join shards s on true group by m.epoch`,
  );
  return Number(rows[0]?.epoch);
}

async function selectDeployment(client: pg.ClientBase): Promise<Deployment> {
  const { rows } = await client.query<{
    system_identifier: string;
    timeline: number;
    token_key: Buffer;
    epoch: string;
  }>('select system_identifier, timeline, token_key, epoch::text from public.deployment');
  const row = rows[0];
  assert(row !== undefined, 'the deployment row exists after migration');
  return {
    systemIdentifier: row.system_identifier,
    timeline: row.timeline,
    tokenKey: row.token_key,
    epoch: Number(row.epoch),
  };
}
