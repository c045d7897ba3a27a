import type { Pool } from 'pg';
import type { ShardKey } from '../model/relation-tuple.ts';

/**
 * About how many tuples a shard holds, by what the planner knows from the last ANALYZE: may be far off for a shard that
 * was filled since, or a small one. Errors: the driver's. Cost: planning alone, below 1 ms.
 */
export async function estimateTuples(
  pool: Pool,
  { projectId, tenantId }: ShardKey,
): Promise<number> {
  type Plan = { readonly 'QUERY PLAN': readonly [{ readonly Plan: { 'Plan Rows': number } }] };
  const { rows } = await pool.query<Plan>({
    text: `explain (format json)
      select 1 from relation_tuple where project_id = $1::text and tenant_id = $2::text`,
    values: [projectId, tenantId],
  });
  return rows[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0;
}
