import type { ClientBase } from 'pg';
import type { ShardKey } from '../../../model/relation-tuple.ts';
import { textArray } from '../../postgres/array-literals.ts';

/** Columns of `user_group` as the statements here give them. */
export type GroupRow = {
  readonly id: string;
  /** '' is a standalone group. */
  readonly workspace_id: string;
  readonly slug: string;
  readonly display_name: string;
  readonly created_by_user_id: string;
  readonly created_at_us: string;
  readonly updated_at_us: string;
};

/** A group with what the acting user is in its workspace: null where nothing. */
export type GroupStandingRow = GroupRow & {
  readonly role: number | null;
  readonly status: number | null;
};

const COLUMNS = `g.id, coalesce(g.workspace_id, '') as workspace_id, g.slug, g.display_name,
  g.created_by_user_id,
  (extract(epoch from g.created_at) * 1000000)::bigint::text as created_at_us,
  (extract(epoch from g.updated_at) * 1000000)::bigint::text as updated_at_us`;

/** One group with the acting user's membership of its workspace, or undefined. */
export async function selectGroupStanding(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  groupId: string,
  actingUserId: string,
): Promise<GroupStandingRow | undefined> {
  const { rows } = await client.query<GroupStandingRow>({
    name: 'select_group_standing',
    text: `select ${COLUMNS}, m.role, m.status
      from user_group g
      left join membership m on m.project_id = g.project_id and m.tenant_id = g.tenant_id
        and m.workspace_id = g.workspace_id and m.user_id = $4
      where g.project_id = $1 and g.tenant_id = $2 and g.id = $3`,
    values: [projectId, tenantId, groupId, actingUserId],
  });
  return rows[0];
}

/**
 * Membership of the acting user in a workspace (null: no member), or undefined where there is no
 * such workspace.
 */
export async function selectWorkspaceStanding(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  workspaceId: string,
  actingUserId: string,
): Promise<Pick<GroupStandingRow, 'role' | 'status'> | undefined> {
  const { rows } = await client.query<Pick<GroupStandingRow, 'role' | 'status'>>({
    name: 'select_workspace_standing',
    text: `select m.role, m.status
      from workspace w
      left join membership m on m.project_id = w.project_id and m.tenant_id = w.tenant_id
        and m.workspace_id = w.id and m.user_id = $4
      where w.project_id = $1 and w.tenant_id = $2 and w.id = $3`,
    values: [projectId, tenantId, workspaceId, actingUserId],
  });
  return rows[0];
}

/** Which of these slugs groups of the workspace ('' is standalone) have. */
export async function selectTakenGroupSlugs(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  workspaceId: string,
  slugs: readonly string[],
): Promise<ReadonlySet<string>> {
  const isStandalone = workspaceId === '';
  const { rows } = await client.query<{ slug: string }>({
    // Two statements: only `=` and `is null` are found through the index of slugs.
    name: `select_taken_group_slugs${isStandalone ? '_standalone' : ''}`,
    text: `select g.slug from user_group g
      where g.project_id = $1 and g.tenant_id = $2 and g.slug = any ($3::text[])
        and g.workspace_id ${isStandalone ? 'is null' : '= $4'}`,
    values: [projectId, tenantId, textArray(slugs), ...(isStandalone ? [] : [workspaceId])],
  });
  return new Set(rows.map((row) => row.slug));
}

/** The new group. */
export async function insertGroup(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  group: Pick<GroupRow, 'id' | 'workspace_id' | 'slug' | 'display_name' | 'created_by_user_id'>,
): Promise<GroupRow> {
  const { rows } = await client.query<GroupRow>({
    name: 'insert_group',
    text: `insert into user_group as g
        (project_id, tenant_id, id, workspace_id, slug, display_name, created_by_user_id)
      values ($1, $2, $3, nullif($4, ''), $5, $6, $7) returning ${COLUMNS}`,
    values: [
      projectId,
      tenantId,
      group.id,
      group.workspace_id,
      group.slug,
      group.display_name,
      group.created_by_user_id,
    ],
  });
  const row = rows[0];
  if (row === undefined) throw new Error('an insert returns its row');
  return row;
}

/**
 * Groups whose membership the user holds through tuples, directly or through groups: unexpired and
 * unconditional ones. `union` ends cycles of groups. $1 project, $2 tenant, $3 user, $4 now in us.
 */
const HELD = `held (id) as (
    select t.object_id from relation_tuple t
    where t.project_id = $1 and t.tenant_id = $2 and t.subject_namespace = '' and t.subject_id = $3
      and t.subject_relation = '' and t.namespace = 'group' and t.relation = 'member'
      and t.condition_name is null and (t.expires_at_us is null or t.expires_at_us > $4::bigint)
    union
    select t.object_id from held h
    join relation_tuple t on t.project_id = $1 and t.tenant_id = $2
      and t.subject_namespace = 'group' and t.subject_id = h.id and t.subject_relation = 'member'
      and t.namespace = 'group' and t.relation = 'member'
      and t.condition_name is null and (t.expires_at_us is null or t.expires_at_us > $4::bigint)
  )`;

/** Whether the user is a member of the group, directly or through groups. O(groups of the user). */
export async function selectIsGroupMember(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  userId: string,
  groupId: string,
  nowUs: bigint,
): Promise<boolean> {
  const { rows } = await client.query<{ is_member: boolean }>({
    name: 'select_is_group_member',
    text: `with recursive ${HELD} select exists (select from held where id = $5) as is_member`,
    values: [projectId, tenantId, userId, nowUs.toString(), groupId],
  });
  return rows[0]?.is_member === true;
}

/** The groups of a workspace, in order of creation. */
export function groupsOfWorkspace(
  { projectId, tenantId }: ShardKey,
  workspaceId: string,
): { readonly text: string; readonly values: readonly string[] } {
  return {
    text: `select ${COLUMNS} from user_group g
      where g.project_id = $1 and g.tenant_id = $2 and g.workspace_id = $3
      order by g.project_id, g.tenant_id, g.workspace_id, g.id`,
    values: [projectId, tenantId, workspaceId],
  };
}

/**
 * Every group that the user may read (services/groups/group-access.ts has the rule), in order of
 * creation: standalone ones of its own, those of workspaces in which it is active (status 1), and
 * those that it is a member of.
 */
export function groupsReadableBy(
  { projectId, tenantId }: ShardKey,
  userId: string,
  nowUs: bigint,
): { readonly text: string; readonly values: readonly string[] } {
  return {
    text: `with recursive ${HELD}, readable (id) as (
        select g.id from user_group g
        where g.project_id = $1 and g.tenant_id = $2 and g.created_by_user_id = $3
          and g.workspace_id is null
        union
        select g.id from membership m
        join user_group g on g.project_id = m.project_id and g.tenant_id = m.tenant_id
          and g.workspace_id = m.workspace_id
        where m.project_id = $1 and m.tenant_id = $2 and m.user_id = $3 and m.status = 1
        union
        select h.id from held h
      )
      select ${COLUMNS} from readable r
      join user_group g on g.project_id = $1 and g.tenant_id = $2 and g.id = r.id
      order by g.id`,
    values: [projectId, tenantId, userId, nowUs.toString()],
  };
}
