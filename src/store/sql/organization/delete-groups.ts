import type { ClientBase } from 'pg';
import type { ShardKey } from '../../../model/relation-tuple.ts';
import { textArray } from '../../postgres/array-literals.ts';

/**
 * Deletes groups with their enrollments, also those of the groups as members elsewhere. Their tuples
 * are the caller's (WriteTransaction.deleteObjects). Returns how many groups there were.
 */
export async function deleteGroups(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  groupIds: readonly string[],
): Promise<number> {
  const { rows } = await client.query<{ deleted: number }>({
    name: 'delete_groups',
    text: `with left_elsewhere as (
        delete from enrollment e where e.project_id = $1 and e.tenant_id = $2
          and e.member_kind = 2 and e.member_id = any ($3::text[])
          and not e.group_id = any ($3::text[])
      ), gone as (
        delete from user_group g
        where g.project_id = $1 and g.tenant_id = $2 and g.id = any ($3::text[]) returning 1
      )
      select count(*)::int as deleted from gone`,
    values: [projectId, tenantId, textArray(groupIds)],
  });
  return rows[0]?.deleted ?? 0;
}
