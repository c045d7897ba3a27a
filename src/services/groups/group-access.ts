import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import type { GroupStandingRow } from '../../store/sql/organization/groups.ts';
import { ACTIVE, ADMIN, type REQUIREMENTS, type Role, isAtLeast } from '../rules/roles.ts';

/** Rights of a user on a group; each includes the ones after it. */
export type GroupStanding = 'manager' | 'reader' | 'outsider';

/** Methods on one group; what each asks of the acting user is in the role matrix (roles.ts). */
export type GroupMethod = {
  [M in keyof typeof REQUIREMENTS.group]: (typeof REQUIREMENTS.group)[M] extends `group-${string}`
    ? M
    : never;
}[keyof typeof REQUIREMENTS.group];

/** A user's membership of a workspace; null if there is none. */
export type WorkspacePart = Pick<GroupStandingRow, 'role' | 'status'>;

/** Whether the membership counts. */
export function isActiveMember({ role, status }: WorkspacePart): boolean {
  return role !== null && status === ACTIVE;
}

/** Whether the membership makes an admin; owners are admins. */
export function isActiveAdmin(part: WorkspacePart): boolean {
  return isActiveMember(part) && isAtLeast(part.role as Role, ADMIN);
}

/**
 * Rights of the acting user by rows alone. Manager: the creator of a standalone group; an ADMIN of
 * the owning workspace, or the group's creator while ACTIVE there. Reader: every other ACTIVE
 * member of the owning workspace. A member of the group is a reader as well, which only the tuples
 * show.
 */
export function standingByRows(group: GroupStandingRow, actingUserId: string): GroupStanding {
  const isCreator = group.created_by_user_id === actingUserId;
  if (group.workspace_id === '') return isCreator ? 'manager' : 'outsider';
  if (!isActiveMember(group)) return 'outsider';
  return isCreator || isActiveAdmin(group) ? 'manager' : 'reader';
}

/** ACTION_FORBIDDEN. */
export function forbidden(action: string): AppError {
  return new AppError<AuthzReason>('ACTION_FORBIDDEN', `acting_user_id: may not ${action}`, {
    field: 'acting_user_id',
  });
}

/** GROUP_UNKNOWN that names the field. */
export function groupUnknown(field: string, groupId: string): AppError {
  return new AppError<AuthzReason>('GROUP_UNKNOWN', `${field}: group ${groupId} does not exist`, {
    field,
    group_id: groupId,
  });
}

/** WORKSPACE_UNKNOWN that names the id. */
export function workspaceUnknown(workspaceId: string): AppError {
  const message = `workspace_id: workspace ${workspaceId} does not exist`;
  return new AppError<AuthzReason>('WORKSPACE_UNKNOWN', message, {
    field: 'workspace_id',
    workspace_id: workspaceId,
  });
}
