import type { ClientBase, Pool } from 'pg';
import { textArray } from '../../postgres/array-literals.ts';
import { PROMPT_READ_TIMEOUT_MS } from '../../postgres/pool.ts';

export type HeadRevisionRow = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly epoch: number;
  readonly revision: number;
};

type HeadColumns = {
  readonly project_id: string;
  readonly tenant_id: string;
  readonly epoch: string;
  readonly seq: string;
};

/** The head revisions of the given shards. One that was never written has seq 0 and the deployment's epoch. */
export async function selectHeadRevisions(
  client: ClientBase | Pool,
  shards: readonly { readonly projectId: string; readonly tenantId: string }[],
): Promise<HeadRevisionRow[]> {
  const query = {
    name: 'select_heads',
    text: `select k.project_id, k.tenant_id,
        coalesce(s.epoch, gatehouse_epoch())::text as epoch, coalesce(s.seq, 0)::text as seq
      from unnest($1::text[], $2::text[]) k (project_id, tenant_id)
      left join shard s on s.project_id = k.project_id and s.tenant_id = k.tenant_id`,
    values: [
      textArray(shards.map((shard) => shard.projectId)),
      textArray(shards.map((shard) => shard.tenantId)),
    ],
    query_timeout: PROMPT_READ_TIMEOUT_MS,
  };
  const { rows } = await client.query<HeadColumns>(query);
  return rows.map((row) => ({
    projectId: row.project_id,
    tenantId: row.tenant_id,
    epoch: Number(row.epoch),
    revision: Number(row.seq),
  }));
}

/** Tenants of a project that have a shard, in order: behind `after`, or from it on; null: from the start. */
export async function selectTenants(
  client: ClientBase | Pool,
  projectId: string,
  after: string | null,
  isInclusive: boolean,
  limit: number,
): Promise<readonly string[]> {
  const { rows } = await client.query<{ tenant_id: string }>(
    `select tenant_id from shard where project_id = $1
       and ($2::text is null or tenant_id > $2 or ($3::boolean and tenant_id = $2))
     order by tenant_id limit $4`,
    [projectId, after, isInclusive, limit],
  );
  return rows.map((row) => row.tenant_id);
}
