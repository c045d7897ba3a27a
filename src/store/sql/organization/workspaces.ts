import type { ClientBase, Pool } from 'pg';
import type { ShardKey } from '../../../model/relation-tuple.ts';
import { textArray } from '../../postgres/array-literals.ts';
import type { ListQuery } from './memberships.ts';

export type WorkspaceRow = {
  readonly id: string;
  readonly slug: string;
  readonly display_name: string;
  readonly type: number;
  readonly owner_user_id: string;
  readonly created_at_us: string;
  readonly updated_at_us: string;
};

/** A workspace with the acting user's membership in it; null if there is none. */
export type ActingWorkspaceRow = WorkspaceRow & {
  readonly acting_role: number | null;
  readonly acting_status: number | null;
};

const COLUMNS = `w.id, w.slug, w.display_name, w.type, w.owner_user_id,
  (extract(epoch from w.created_at) * 1000000)::bigint::text as created_at_us,
  (extract(epoch from w.updated_at) * 1000000)::bigint::text as updated_at_us`;

/** One workspace and what part the acting user has in it, or undefined. */
export async function selectActingWorkspace(
  client: ClientBase | Pool,
  { projectId, tenantId }: ShardKey,
  workspaceId: string,
  actingUserId: string,
): Promise<ActingWorkspaceRow | undefined> {
  const { rows } = await client.query<ActingWorkspaceRow>({
    name: 'select_acting_workspace',
    text: `select ${COLUMNS}, m.role as acting_role, m.status as acting_status
      from workspace w
      left join membership m on m.project_id = w.project_id and m.tenant_id = w.tenant_id
        and m.workspace_id = w.id and m.user_id = $4
      where w.project_id = $1 and w.tenant_id = $2 and w.id = $3`,
    values: [projectId, tenantId, workspaceId, actingUserId],
  });
  return rows[0];
}

/** Whether the user has its PERSONAL workspace. */
export async function hasPersonalWorkspace(
  client: ClientBase | Pool,
  { projectId, tenantId }: ShardKey,
  userId: string,
): Promise<boolean> {
  const { rowCount } = await client.query({
    name: 'has_personal_workspace',
    text: `select 1 from workspace w where w.project_id = $1 and w.tenant_id = $2
      and w.owner_user_id = $3 and w.type = 1`,
    values: [projectId, tenantId, userId],
  });
  return (rowCount ?? 0) > 0;
}

/** The workspaces in which the user is ACTIVE, by id, which is the order of their making. */
export function workspacesOfUserQuery(
  { projectId, tenantId }: ShardKey,
  userId: string,
): ListQuery {
  return {
    text: `select ${COLUMNS} from membership m
      join workspace w on w.project_id = m.project_id and w.tenant_id = m.tenant_id
        and w.id = m.workspace_id
      where m.project_id = $1 and m.tenant_id = $2 and m.user_id = $3 and m.status = 1
      order by m.workspace_id`,
    values: [projectId, tenantId, userId],
  };
}

/** Which of these slugs workspaces of the shard have. */
export async function selectTakenWorkspaceSlugs(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  slugs: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ slug: string }>({
    name: 'select_taken_workspace_slugs',
    text: `select w.slug from workspace w
      where w.project_id = $1 and w.tenant_id = $2 and w.slug = any ($3::text[])`,
    values: [projectId, tenantId, textArray(slugs)],
  });
  return new Set(rows.map((row) => row.slug));
}

/** Makes a workspace; its owner's membership must follow in the same transaction. */
export async function insertWorkspace(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  workspace: {
    readonly id: string;
    readonly slug: string;
    readonly displayName: string;
    readonly type: number;
    readonly ownerUserId: string;
  },
): Promise<WorkspaceRow> {
  const { rows } = await client.query<WorkspaceRow>({
    name: 'insert_workspace',
    text: `insert into workspace as w
        (project_id, tenant_id, id, slug, display_name, type, owner_user_id)
      values ($1, $2, $3, $4, $5, $6::smallint, $7) returning ${COLUMNS}`,
    values: [
      projectId,
      tenantId,
      workspace.id,
      workspace.slug,
      workspace.displayName,
      workspace.type,
      workspace.ownerUserId,
    ],
  });
  return onlyRow(rows);
}

/** Sets the name, the owner or both (null leaves one) of a workspace that exists. */
export async function updateWorkspace(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  workspaceId: string,
  change: { readonly displayName: string | null; readonly ownerUserId: string | null },
): Promise<WorkspaceRow> {
  const { rows } = await client.query<WorkspaceRow>({
    name: 'update_workspace',
    text: `update workspace w set display_name = coalesce($4, w.display_name),
        owner_user_id = coalesce($5, w.owner_user_id), updated_at = clock_timestamp()
      where w.project_id = $1 and w.tenant_id = $2 and w.id = $3 returning ${COLUMNS}`,
    values: [projectId, tenantId, workspaceId, change.displayName, change.ownerUserId],
  });
  return onlyRow(rows);
}

/** Ids of the groups that a workspace owns. */
export async function selectGroupIdsOfWorkspace(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  workspaceId: string,
): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>({
    name: 'select_group_ids_of_workspace',
    text: `select g.id from user_group g
      where g.project_id = $1 and g.tenant_id = $2 and g.workspace_id = $3 order by g.id`,
    values: [projectId, tenantId, workspaceId],
  });
  return rows.map((row) => row.id);
}

/** Deletes a workspace with its memberships and invitations. Groups and tuples are the caller's. */
export async function deleteWorkspaceRows(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  workspaceId: string,
): Promise<void> {
  await client.query({
    name: 'delete_workspace',
    text: 'delete from workspace w where w.project_id = $1 and w.tenant_id = $2 and w.id = $3',
    values: [projectId, tenantId, workspaceId],
  });
}

function onlyRow<Row>(rows: readonly Row[]): Row {
  const [row] = rows;
  if (row === undefined) throw new Error('the statement returned no row');
  return row;
}
