import type { ClientBase, Pool } from 'pg';
import type { ShardKey } from '../../../model/relation-tuple.ts';

/** A statement that is read through a cursor. */
export type ListQuery = { readonly text: string; readonly values: readonly string[] };

export type MembershipRow = {
  readonly workspace_id: string;
  readonly user_id: string;
  readonly role: number;
  readonly status: number;
  readonly created_at_us: string;
  readonly updated_at_us: string;
};

const COLUMNS = `m.workspace_id, m.user_id, m.role, m.status,
  (extract(epoch from m.created_at) * 1000000)::bigint::text as created_at_us,
  (extract(epoch from m.updated_at) * 1000000)::bigint::text as updated_at_us`;

/** One membership, or undefined. */
export async function selectMembership(
  client: ClientBase | Pool,
  { projectId, tenantId }: ShardKey,
  workspaceId: string,
  userId: string,
): Promise<MembershipRow | undefined> {
  const { rows } = await client.query<MembershipRow>({
    name: 'select_membership',
    text: `select ${COLUMNS} from membership m
      where m.project_id = $1 and m.tenant_id = $2 and m.workspace_id = $3 and m.user_id = $4`,
    values: [projectId, tenantId, workspaceId, userId],
  });
  return rows[0];
}

/** The members of a workspace by user id, as MembershipRow. */
export function membersQuery({ projectId, tenantId }: ShardKey, workspaceId: string): ListQuery {
  return {
    text: `select ${COLUMNS} from membership m
      where m.project_id = $1 and m.tenant_id = $2 and m.workspace_id = $3 order by m.user_id`,
    values: [projectId, tenantId, workspaceId],
  };
}

/** Makes a membership, or sets role and status of the one that is there. */
export async function upsertMembership(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  membership: {
    readonly workspaceId: string;
    readonly userId: string;
    readonly role: number;
    readonly status: number;
  },
): Promise<MembershipRow> {
  const { rows } = await client.query<MembershipRow>({
    name: 'upsert_membership',
    text: `insert into membership as m
        (project_id, tenant_id, workspace_id, user_id, role, status)
      values ($1, $2, $3, $4, $5::smallint, $6::smallint)
      on conflict (project_id, tenant_id, workspace_id, user_id) do update
        set role = excluded.role, status = excluded.status, updated_at = clock_timestamp()
      returning ${COLUMNS}`,
    values: [
      projectId,
      tenantId,
      membership.workspaceId,
      membership.userId,
      membership.role,
      membership.status,
    ],
  });
  const [row] = rows;
  if (row === undefined) throw new Error('an upsert returns its row');
  return row;
}

/** Deletes a membership. */
export async function deleteMembership(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  workspaceId: string,
  userId: string,
): Promise<void> {
  await client.query({
    name: 'delete_membership',
    text: `delete from membership m
      where m.project_id = $1 and m.tenant_id = $2 and m.workspace_id = $3 and m.user_id = $4`,
    values: [projectId, tenantId, workspaceId, userId],
  });
}
