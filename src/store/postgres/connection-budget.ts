import type { ClientBase, Pool } from 'pg';
import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';
import { type StoreLog, silentLog } from './store-log.ts';

export type ConnectionNeeds = {
  /** Connections that one instance may open, all pools and single ones. */
  readonly each: number;
  /** Instances that are meant to run; undefined: not set, those that run are counted. */
  readonly instances: number | undefined;
  /** No other instance can reach the database: neither now nor during a rollout. */
  readonly isExclusive: boolean;
};

/**
 * Fails clearly when the connections of all instances together do not fit into what the server
 * grants this user. Instances are those that are registered, this one among them, or as many as are
 * meant to run and one more, which a rollout starts before it ends another; all are taken to be as
 * large as this one. Where that number is not set, one more that would not fit is a line in the
 * log. Errors: STORE_UNAVAILABLE. Cost: one query.
 */
export async function assertConnectionsFit(
  client: Pool | ClientBase,
  { each, instances, isExclusive }: ConnectionNeeds,
  log: StoreLog = silentLog,
): Promise<void> {
  const { rows } = await client.query<{ available: number; running: number }>(
    `select least(
       current_setting('max_connections')::int
         - case when r.rolsuper then 0
             else current_setting('superuser_reserved_connections')::int
               + coalesce(current_setting('reserved_connections', true), '0')::int end,
       case when r.rolconnlimit < 0 then 2147483647 else r.rolconnlimit end,
       case when d.datconnlimit < 0 then 2147483647 else d.datconnlimit end
     )::int as available,
     (select count(*)::int from instance n where n.lease_until > clock_timestamp()) as running
     from pg_roles r, pg_database d
     where r.rolname = current_user and d.datname = current_database()`,
  );
  const available = rows[0]?.available ?? 0;
  const running = isExclusive ? 1 : Math.max(1, rows[0]?.running ?? 0);
  const meant = isExclusive || instances === undefined ? 0 : instances + 1;
  const count = Math.max(running, meant);
  const needed = each * count;
  if (needed > available) {
    throw new AppError<SharedReason>(
      'STORE_UNAVAILABLE',
      `${textOf(count, meant > running)} may open ${needed} connections to Postgres (${each} each), which grants ${available}; lower the pool sizes or the number of workers, or raise max_connections`,
      { needed: String(needed), available: String(available), instances: String(count) },
    );
  }
  if (isExclusive || instances !== undefined || each * (running + 1) <= available) return;
  log('warn', 'postgres_connections_short', { available, each, instances: running });
}

function textOf(count: number, isRollout: boolean): string {
  if (count === 1) return 'this instance';
  return isRollout
    ? `${count - 1} instances and one more during a rollout`
    : `the ${count} instances on this database`;
}
