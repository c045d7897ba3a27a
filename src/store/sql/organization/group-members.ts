import type { ClientBase } from 'pg';
import type { ShardKey } from '../../../model/relation-tuple.ts';

/** Numbers of the columns of `enrollment`. */
export const MEMBER_USER = 1;
export const MEMBER_GROUP = 2;

/** A member of a group: a user or a group. */
export type MemberKey = {
  readonly kind: typeof MEMBER_USER | typeof MEMBER_GROUP;
  readonly id: string;
};

export type EnrollmentRow = {
  readonly member_kind: number;
  readonly member_id: string;
  readonly state: number;
  readonly created_at_us: string;
  readonly updated_at_us: string;
};

/** Stored facts about a member before an event. */
export type MemberFacts = {
  /** Whether the member exists: always for a user, which nothing records. */
  readonly is_known: boolean;
  readonly has_tuple: boolean;
  /** The tuple neither expires nor has a condition: writing it again would change nothing. */
  readonly has_plain_tuple: boolean;
  /** null: no row. */
  readonly state: number | null;
};

const ENROLLMENT_COLUMNS = `e.member_kind, e.member_id, e.state,
  (extract(epoch from e.created_at) * 1000000)::bigint::text as created_at_us,
  (extract(epoch from e.updated_at) * 1000000)::bigint::text as updated_at_us`;

/** The facts about one member of a group. One row by three keys. */
export async function selectMemberFacts(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  groupId: string,
  member: MemberKey,
): Promise<MemberFacts> {
  const { rows } = await client.query<MemberFacts>({
    name: 'select_member_facts',
    text: `select
        $4::smallint = ${MEMBER_USER} or exists (
          select from user_group g where g.project_id = $1 and g.tenant_id = $2 and g.id = $5
        ) as is_known,
        t.seq is not null as has_tuple,
        t.seq is not null and t.expires_at_us is null and t.condition_name is null
          as has_plain_tuple,
        e.state
      from (select 1) one
      left join relation_tuple t on t.project_id = $1 and t.tenant_id = $2
        and t.namespace = 'group' and t.object_id = $3 and t.relation = 'member'
        and t.subject_namespace = case $4::smallint when ${MEMBER_USER} then '' else 'group' end
        and t.subject_id = $5
        and t.subject_relation = case $4::smallint when ${MEMBER_USER} then '' else 'member' end
      left join enrollment e on e.project_id = $1 and e.tenant_id = $2 and e.group_id = $3
        and e.member_kind = $4::smallint and e.member_id = $5`,
    values: [projectId, tenantId, groupId, member.kind, member.id],
  });
  const row = rows[0];
  if (row === undefined) throw new Error('a left join of one row has a row');
  return row;
}

/** Records a member's state. `updated_at` is the time of the last change of state. */
export async function upsertEnrollment(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  groupId: string,
  member: MemberKey,
  state: number,
): Promise<EnrollmentRow> {
  const { rows } = await client.query<EnrollmentRow>({
    name: 'upsert_enrollment',
    text: `insert into enrollment as e
        (project_id, tenant_id, group_id, member_kind, member_id, state)
      values ($1, $2, $3, $4, $5, $6)
      on conflict (project_id, tenant_id, group_id, member_kind, member_id) do update
        set state = excluded.state,
          updated_at = case when e.state = excluded.state then e.updated_at else clock_timestamp() end
      returning ${ENROLLMENT_COLUMNS}`,
    values: [projectId, tenantId, groupId, member.kind, member.id, state],
  });
  const row = rows[0];
  if (row === undefined) throw new Error('an upsert returns its row');
  return row;
}

/** Enrollments of a group: users by id, then groups by id. */
export function enrollmentsOfGroup(
  { projectId, tenantId }: ShardKey,
  groupId: string,
): { readonly text: string; readonly values: readonly string[] } {
  return {
    text: `select ${ENROLLMENT_COLUMNS} from enrollment e
      where e.project_id = $1 and e.tenant_id = $2 and e.group_id = $3
      order by e.project_id, e.tenant_id, e.group_id, e.member_kind, e.member_id`,
    values: [projectId, tenantId, groupId],
  };
}

export type MemberRow = { readonly subject_namespace: string; readonly subject_id: string };

/**
 * Holders of the group's member tuple, expired ones left out: users by id, then groups by id.
 * Subjects that are no members in the sense of GroupMember (wildcards, other usersets) are left
 * out.
 */
export function membersOfGroup(
  { projectId, tenantId }: ShardKey,
  groupId: string,
  nowUs: bigint,
): { readonly text: string; readonly values: readonly string[] } {
  return {
    text: `select t.subject_namespace, t.subject_id from relation_tuple t
      where t.project_id = $1 and t.tenant_id = $2
        and t.namespace = 'group' and t.object_id = $3 and t.relation = 'member'
        and (t.subject_namespace = ''
          or (t.subject_namespace = 'group' and t.subject_relation = 'member'))
        and (t.expires_at_us is null or t.expires_at_us > $4::bigint)
      order by t.project_id, t.tenant_id, t.namespace, t.object_id, t.relation,
        t.subject_namespace, t.subject_id, t.subject_relation`,
    values: [projectId, tenantId, groupId, nowUs.toString()],
  };
}
