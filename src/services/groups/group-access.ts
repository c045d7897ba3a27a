import { AppError } from '../../shared/app-error.ts';
import type { GroupStandingRow } from '../../store/sql/groups.ts';

/** What a user may do with a group; each includes the ones after it. */
export type GroupStanding = 'manager' | 'reader' | 'outsider';

/**
 * What each method asks of the acting user. CreateGroup and ListGroups have no group yet: creating in
 * a workspace asks for its admin, listing shows what the acting user may read.
 *
 * Manager: the creator of a standalone group; an admin of the owning workspace, or the group's creator
 * while an ACTIVE member there. Reader: managers, members of the group (through groups, too), and
 * every ACTIVE member of the owning workspace.
 */
export const GROUP_METHODS = {
  GetGroup: 'reader',
  ListGroupMembers: 'reader',
  ListEnrollments: 'reader',
  DeleteGroup: 'manager',
  AddGroupMember: 'manager',
  RemoveGroupMember: 'manager',
  SetEnrollmentState: 'manager',
} as const satisfies Record<string, GroupStanding>;

export type GroupMethod = keyof typeof GROUP_METHODS;

/** Role and status as the protocol numbers them. */
const ROLE_ADMIN = 2;
const STATUS_ACTIVE = 1;

/** A user's membership of a workspace; null where there is none. */
export type WorkspacePart = Pick<GroupStandingRow, 'role' | 'status'>;

/** Whether the membership counts. */
export function isActiveMember({ role, status }: WorkspacePart): boolean {
  return role !== null && status === STATUS_ACTIVE;
}

/** Whether the membership makes an admin; owners are admins. */
export function isActiveAdmin(part: WorkspacePart): boolean {
  return isActiveMember(part) && (part.role ?? 0) <= ROLE_ADMIN && (part.role ?? 0) > 0;
}

/** What the acting user is by rows alone; membership of the group may make a reader of an outsider. */
export function standingByRows(group: GroupStandingRow, actingUserId: string): GroupStanding {
  const isCreator = group.created_by_user_id === actingUserId;
  if (group.workspace_id === '') return isCreator ? 'manager' : 'outsider';
  if (!isActiveMember(group)) return 'outsider';
  return isCreator || isActiveAdmin(group) ? 'manager' : 'reader';
}

/** ACTION_FORBIDDEN. */
export function forbidden(action: string): AppError {
  return new AppError('ACTION_FORBIDDEN', `acting_user_id: may not ${action}`, {
    field: 'acting_user_id',
  });
}

/** GROUP_UNKNOWN that names the field. */
export function groupUnknown(field: string, groupId: string): AppError {
  return new AppError('GROUP_UNKNOWN', `${field}: group ${groupId} does not exist`, {
    field,
    group_id: groupId,
  });
}

/** WORKSPACE_UNKNOWN that names the id. */
export function workspaceUnknown(workspaceId: string): AppError {
  const message = `workspace_id: workspace ${workspaceId} does not exist`;
  return new AppError('WORKSPACE_UNKNOWN', message, {
    field: 'workspace_id',
    workspace_id: workspaceId,
  });
}
