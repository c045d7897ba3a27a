import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { assert } from '../../shared/assert.ts';
import { type StoreLog, silentLog } from '../postgres/store-log.ts';

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

type DeploymentRow = {
  readonly stored_identifier: string | null;
  readonly stored_timeline: number | null;
  readonly identifier: string;
  readonly timeline: number;
  readonly epoch: string | null;
  readonly log_bytes: string;
};

/** State of the history that a process works on, as it has seen it. */
export type SeenHistory = {
  readonly epoch: number;
  /** How much of its log the server had on disk, in bytes since its beginning. */
  readonly logBytes: bigint;
  /** Commits since then; none twice of a shard. */
  readonly commits: readonly SeenCommit[];
};

/** A commit that was acknowledged. */
export type SeenCommit = ShardKey & { readonly revision: number; readonly forkId: string };

/**
 * Reads the deployment row, made at the first call. When the server is not the one, or not on the
 * timeline, that the row names (failover, restore), every shard gets a new epoch first, so that no
 * token and no index of the other history stays valid. So it does where the server lacks a commit of `seen`,
 * or its log ends before what `seen` has seen on its disk: an older copy of its files. Of several that find the same at once, one opens the epoch.
 * Call it on every new connection, before anything else. Errors: those of `query`, also on a standby, which
 * cannot answer. Cost: two short queries when nothing changed.
 */
export async function readDeployment(
  client: pg.ClientBase,
  log: StoreLog = silentLog,
  seen?: SeenHistory,
): Promise<Deployment> {
  const { rows } = await client.query<DeploymentRow>(
    `select d.system_identifier as stored_identifier, d.timeline as stored_timeline,
       c.system_identifier::text as identifier, d.epoch::text as epoch,
       pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text as log_bytes,
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
  } else if (isOther(row) || (await isOlder(client, row, seen))) {
    const epoch = await openEpoch(client, Number(row.epoch));
    // Undefined: another connection was faster.
    if (epoch !== undefined) {
      log('warn', 'deployment_epoch_started', { ...row, epoch, before: row.epoch });
    }
  }
  return await selectDeployment(client);
}

/**
 * Starts a new epoch for every shard. By itself only after a failover or restore; to be called by
 * hand after a cold copy, which nothing in the database distinguishes from its original.
 * Returns the new epoch. Cost: one update of every shard row; waits for writes in progress.
 */
export async function startNewEpoch(client: pg.ClientBase): Promise<number> {
  const epoch = await openEpoch(client, undefined);
  assert(epoch !== undefined, 'the deployment row exists after migration');
  return epoch;
}

/** Whether the server is not the one, or not on the timeline, of the row. */
function isOther(row: DeploymentRow): boolean {
  return row.stored_identifier !== row.identifier || row.stored_timeline !== row.timeline;
}

async function isOlder(
  client: pg.ClientBase,
  row: DeploymentRow,
  seen: SeenHistory | undefined,
): Promise<boolean> {
  if (seen === undefined || Number(row.epoch) !== seen.epoch) return false;
  if (BigInt(row.log_bytes) < seen.logBytes) return true;
  if (seen.commits.length === 0) return false;
  const { rows } = await client.query<{ is_lost: boolean }>(
    `select exists (
       select from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[])
         k (project_id, tenant_id, seq, stamp)
       left join public.shard s on s.project_id = k.project_id and s.tenant_id = k.tenant_id
       -- A commit whose row was pruned has no stamp to compare.
       left join public.tuple_change c on c.project_id = k.project_id
         and c.tenant_id = k.tenant_id and c.seq = k.seq
       where s.seq is null or s.seq < k.seq or c.stamp <> k.stamp
     ) as is_lost`,
    [
      seen.commits.map((commit) => commit.projectId),
      seen.commits.map((commit) => commit.tenantId),
      seen.commits.map((commit) => commit.revision),
      seen.commits.map((commit) => commit.forkId),
    ],
  );
  return rows[0]?.is_lost === true;
}

/** Opens a new epoch unless `before` is no longer the present one. As `startNewEpoch` else. */
export async function endEpoch(
  client: pg.ClientBase,
  before: number,
  log: StoreLog = silentLog,
): Promise<void> {
  const epoch = await openEpoch(client, before);
  if (epoch !== undefined) log('warn', 'deployment_epoch_started', { epoch, before });
}

/**
 * Starts an epoch like `startNewEpoch`. With `before` only if that is still the epoch, else returns
 * undefined: callers that wait for the row read it again once they hold it.
 */
async function openEpoch(
  client: pg.ClientBase,
  before: number | undefined,
): Promise<number | undefined> {
  // One message, which the server carries out to its end whatever becomes of the caller: with many shards
  // it takes longer than a statement may. Who comes meanwhile does not wait for it with a connection.
  const results: unknown = await client.query(
    `begin;
     set local statement_timeout = 0;
     set local lock_timeout = '500ms';
     with moved as (
       update public.deployment d
       set system_identifier = c.system_identifier::text,
         timeline =
           ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int,
         -- By the clock, so that two restores of one backup do not meet in the same epoch.
         epoch = greatest(d.epoch + 1, extract(epoch from clock_timestamp())::bigint)
       from pg_control_system() c
       where ${before === undefined ? 'true' : `d.epoch = ${before}`}
       returning d.epoch
     ), shards as (
       update public.shard s set epoch = greatest(s.epoch + 1, m.epoch) from moved m
       returning s.epoch
     )
     select m.epoch::text as epoch, count(s.*) as shards
     from moved m left join shards s on true group by m.epoch;
     commit`,
  );
  const [opened] = (results as readonly pg.QueryResult<{ epoch: string }>[]).filter(
    (result) => result.command === 'SELECT',
  );
  const epoch = opened?.rows[0]?.epoch;
  return epoch === undefined ? undefined : Number(epoch);
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
