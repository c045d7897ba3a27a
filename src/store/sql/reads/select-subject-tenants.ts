import type { ClientBase, Pool } from 'pg';

/** Tenants of the project in which this concrete user is a subject, sorted. */
export async function selectSubjectTenants(
  client: ClientBase | Pool,
  projectId: string,
  userId: string,
): Promise<string[]> {
  const { rows } = await client.query<{ tenant_id: string }>(
    `select distinct t.tenant_id from relation_tuple t
     where t.project_id = $1 and t.subject_namespace = '' and t.subject_id = $2
       and t.subject_relation = ''
     order by t.tenant_id`,
    [projectId, userId],
  );
  return rows.map((row) => row.tenant_id);
}

/** Shards that hold tuples which expired at or before the given time: at most `shardsMax`. */
export async function selectExpiredShards(
  client: ClientBase | Pool,
  expiredByUs: bigint,
  shardsMax: number,
): Promise<{ projectId: string; tenantId: string }[]> {
  const { rows } = await client.query<{ project_id: string; tenant_id: string }>(
    // The innermost limit bounds the work: the rest is found by the next run.
    `select distinct t.project_id, t.tenant_id
     from (
       select project_id, tenant_id from relation_tuple
       where expires_at_us <= $1::bigint order by expires_at_us limit 10000
     ) t order by t.project_id, t.tenant_id limit $2::int`,
    [expiredByUs.toString(), shardsMax],
  );
  return rows.map((row) => ({ projectId: row.project_id, tenantId: row.tenant_id }));
}
