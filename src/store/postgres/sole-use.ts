import { Client } from 'pg';
import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';
import { applyTimeouts, clientConfig, type PostgresTarget } from './pool.ts';

/** Key of the advisory lock ('gate', 'inst') that instances hold shared, and whoever must be alone holds. */
export const SOLE_USE_LOCK = [0x67617465, 0x696e7374] as const;

/**
 * Runs `work` while no instance is registered or can register, on a connection that it is given. Waits
 * for the leases of instances that vanished, unless `isExclusive` (nobody else can reach the database).
 * Errors: STORE_UNAVAILABLE, with who is there, when an instance runs; those of `work`.
 */
export async function withSoleUse<T>(
  target: PostgresTarget,
  isExclusive: boolean,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const settings = {
    applicationName: 'gatehouse-sole-use',
    statementTimeoutMs: 0,
    idleInTransactionTimeoutMs: 0,
  };
  const client = new Client(clientConfig(target, settings));
  await client.connect();
  try {
    await applyTimeouts(client, target, settings);
    const { rows } = await client.query<{ held: boolean }>(
      'select pg_try_advisory_lock($1, $2) as held',
      [...SOLE_USE_LOCK],
    );
    if (rows[0]?.held !== true) throw await selectSoleUser(client);
    while (!isExclusive) {
      const left = await client.query<{ left_ms: number | null }>(
        `select extract(epoch from max(lease_until) - clock_timestamp())::float8 * 1000 as left_ms
         from instance`,
      );
      const leftMs = left.rows[0]?.left_ms ?? 0;
      if (leftMs <= 0) break;
      await new Promise((done) => setTimeout(done, leftMs + 1));
    }
    await client.query('delete from instance');
    return await work(client);
  } finally {
    await client.end();
  }
}

/** STORE_UNAVAILABLE that names the session which holds the lock. */
export async function selectSoleUser(client: Client): Promise<AppError> {
  const { rows } = await client.query<{
    pid: number;
    name: string;
    address: string | null;
    since: string;
  }>(
    `select a.pid, a.application_name as name, host(a.client_addr) as address,
       a.backend_start::text as since
     from pg_locks l join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.granted
       and l.database = (select oid from pg_database where datname = current_database())
       and l.classid = $1::bigint::oid and l.objid = $2::bigint::oid and l.objsubid = 2
     order by a.backend_start limit 1`,
    [...SOLE_USE_LOCK],
  );
  const holder = rows[0];
  const who =
    holder === undefined
      ? ''
      : ` (${holder.name}, from ${holder.address ?? 'this machine'}, server process ${holder.pid}, since ${holder.since})`;
  return new AppError<SharedReason>(
    'STORE_UNAVAILABLE',
    `another process uses this database and cannot share it${who}: an instance of a release that runs alone, or a maintenance command beside instances. Stop it, or use another DATABASE_URL`,
  );
}
