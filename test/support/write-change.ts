import type { ClientBase, Pool } from 'pg';
import type { ShardKey } from '../../src/model/relation-tuple.ts';

/**
 * Commits one revision by hand, in the form that the write path uses: the shard row, a change row with
 * `changes`, and a notification. Returns the revision. For tests of the store, below that path.
 */
export async function writeChange(
  client: ClientBase | Pool,
  shard: ShardKey,
  changes = '[]',
): Promise<number> {
  const { rows } = await client.query<{ seq: string }>(
    `with head as (
       insert into shard as s (project_id, tenant_id, seq, stamp)
       values ($1, $2, 1, (random() * 1e15)::bigint)
       on conflict (project_id, tenant_id) do update
         set seq = s.seq + 1, stamp = (random() * 1e15)::bigint
       returning s.seq, s.stamp
     ), change as (
       insert into tuple_change
         (project_id, tenant_id, seq, stamp, commit_id, rpc, acting_user, request_id, changes)
       select $1, $2, seq, stamp, gen_random_uuid(), 'Test', null, '', $3 from head
       returning seq
     )
     select seq, pg_notify('gatehouse_change', json_build_array($1::text, $2::text, seq)::text)
     from change`,
    [shard.projectId, shard.tenantId, changes],
  );
  return Number(rows[0]?.seq);
}
