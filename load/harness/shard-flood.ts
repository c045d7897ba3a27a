import type { Pool } from 'pg';
import { ChangeNotifier } from '../../src/services/change-notifier.ts';
import { silentReport } from '../../src/shared/loop-report.ts';

const TICK_MS = 20;

// As the write path leaves it: the shard's row moves, and a change row says by what.
const WRITE = `
  with moved as (
    update shard s set seq = s.seq + 1, stamp = hashtextextended(gen_random_uuid()::text, 0)
    where s.project_id = $1 and s.tenant_id = any ($2::text[])
    returning s.project_id, s.tenant_id, s.seq, s.stamp
  ), recorded as (
    insert into tuple_change
      (project_id, tenant_id, seq, stamp, commit_id, rpc, acting_user, request_id, changes)
    select m.project_id, m.tenant_id, m.seq, m.stamp, gen_random_uuid(), 'Load', null, '',
      json_build_array(json_build_array(1, 'doc', 'flooded', 'viewer', '', 'u' || m.seq, '', null, null, null))::text
    from moved m
  )
  select m.tenant_id, m.seq::text as seq from moved m`;

/** What a flood came to. */
export type FloodResult = {
  readonly writesPerSecond: number;
  readonly notificationsPerSecond: number;
  readonly hintsLost: number;
};

/** Makes the shards that are flooded, empty. */
export async function createShards(
  pool: Pool,
  projectId: string,
  tenants: readonly string[],
): Promise<void> {
  await pool.query(
    `insert into shard (project_id, tenant_id) select $1, t from unnest($2::text[]) t
     on conflict do nothing`,
    [projectId, tenants],
  );
}

/**
 * Writes of one more instance, in bulk, since a thousand callers would take the machine from what is
 * measured: `perSecond` to the tenants in turn, told to the others as an instance does. Ends with the promise `until`.
 */
export async function flood(options: {
  readonly pool: Pool;
  readonly projectId: string;
  readonly tenants: readonly string[];
  readonly perSecond: number;
  readonly until: Promise<unknown>;
}): Promise<FloodResult> {
  const { pool, projectId, tenants, perSecond } = options;
  const notifier = new ChangeNotifier({
    pool,
    intervalMs: TICK_MS,
    shardsMax: 4_096,
    report: silentReport,
  });
  let isOver = false;
  void options.until.finally(() => (isOver = true));
  const startMs = performance.now();
  let due = 0;
  let written = 0;
  while (!isOver) {
    due = Math.floor(((performance.now() - startMs) / 1_000) * perSecond);
    // What a slow server could not take is left out, and shows in the rate.
    const count = Math.min(due - written, tenants.length / 2);
    if (count > 0) {
      const at = written % tenants.length;
      const some = [
        ...tenants.slice(at, at + count),
        ...tenants.slice(0, at + count - tenants.length),
      ];
      const { rows } = await pool.query<{ tenant_id: string; seq: string }>({
        name: 'load-flood',
        text: WRITE,
        values: [projectId, some.slice(0, count)],
      });
      for (const { tenant_id, seq: revision } of rows) {
        notifier.hint({ projectId, tenantId: tenant_id }, Number(revision));
      }
      written += rows.length;
    }
    await new Promise((resolve) => setTimeout(resolve, TICK_MS / 2));
  }
  await notifier.close();
  const seconds = (performance.now() - startMs) / 1_000;
  return {
    writesPerSecond: Math.round(written / seconds),
    notificationsPerSecond: Math.round(notifier.counts.notifications / seconds),
    hintsLost: notifier.counts.lost,
  };
}
