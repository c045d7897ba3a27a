import type { ClientBase } from 'pg';

export type GrantRow = {
  readonly tenant_id: string;
  readonly namespace: string;
  readonly object_id: string;
  readonly relation: string;
  readonly via_group: string;
};

/**
 * Every unexpired tuple in all tenants of the project whose subject is the user (via_group ''), or the
 * members of a group that holds the user, directly or through groups. Sorted; at most `rowsMax`.
 * Conditional tuples count, also as membership. `union` ends cycles of groups.
 */
export async function selectSubjectGrants(
  client: ClientBase,
  projectId: string,
  userId: string,
  nowUs: bigint,
  rowsMax: number,
): Promise<GrantRow[]> {
  const { rows } = await client.query<GrantRow>(
    `with recursive grants (tenant_id, namespace, object_id, relation, via_group) as (
       select t.tenant_id, t.namespace, t.object_id, t.relation, '' collate "C"
       from relation_tuple t
       where t.project_id = $1 and t.subject_namespace = '' and t.subject_id = $2
         and t.subject_relation = '' and (t.expires_at_us is null or t.expires_at_us > $3::bigint)
       union
       select t.tenant_id, t.namespace, t.object_id, t.relation, g.object_id
       from grants g
       join relation_tuple t on t.project_id = $1 and t.tenant_id = g.tenant_id
         and t.subject_namespace = 'group' and t.subject_id = g.object_id
         and t.subject_relation = 'member'
         and (t.expires_at_us is null or t.expires_at_us > $3::bigint)
       where g.namespace = 'group' and g.relation = 'member'
     )
     select tenant_id, namespace, object_id, relation, via_group from grants
     order by tenant_id, namespace, object_id, relation, via_group
     limit $4::int`,
    [projectId, userId, nowUs.toString(), rowsMax],
  );
  return rows;
}
