import {
  checkDisplayName,
  checkObjectId,
  checkTenantId,
  checkUserId,
  requiredError,
} from '../../model/names.ts';
import { fieldError } from '../../model/reasons.ts';
import { checkSlug } from '../../model/slug.ts';
import {
  MEMBER_GROUP,
  MEMBER_USER,
  type MemberKey,
} from '../../store/sql/organization/group-members.ts';
import { type EnrollmentState, enrollmentStateOf } from '../rules/enrollment.ts';

/** Requests of GroupService, close to the wire, so that each error can name its field. */
export type ScopedRequest = {
  readonly actingUserId: string;
  /** '' is the default project. */
  readonly projectId: string;
  readonly tenantId: string;
};

export type GroupRequest = ScopedRequest & { readonly groupId: string };

export type CreateGroupRequest = ScopedRequest & {
  readonly displayName: string;
  /** '' derives one. */
  readonly slug: string;
  /** '' makes a standalone group. */
  readonly workspaceId: string;
};

export type ListGroupsRequest = ScopedRequest & {
  /** '' lists everything that the acting user may read. */
  readonly workspaceId: string;
};

/** The oneof `GroupMember.member`. */
export type RawMember =
  | { readonly case: 'userId' | 'groupId'; readonly value: string }
  | { readonly case: undefined; readonly value?: undefined };

export type GroupMemberRequest = GroupRequest & {
  readonly member?: { readonly member: RawMember } | undefined;
};

/** `state` as the proto enum numbers it. */
export type SetEnrollmentStateRequest = GroupMemberRequest & { readonly state: number };

/** The fields that every request has. Errors: FIELD_REQUIRED, FIELD_INVALID. */
export function checkScope(request: ScopedRequest): void {
  checkUserId('acting_user_id', request.actingUserId);
  checkTenantId('tenant_id', request.tenantId);
}

/** Checks the scope like `checkScope`, and the id of the group. */
export function checkGroupRequest(request: GroupRequest): void {
  checkScope(request);
  checkObjectId('group_id', request.groupId);
}

/** Validates a CreateGroup; returns the trimmed display name. */
export function checkCreateGroup(request: CreateGroupRequest): string {
  checkScope(request);
  const displayName = checkDisplayName('display_name', request.displayName);
  if (request.slug !== '') checkSlug('slug', request.slug);
  if (request.workspaceId !== '') checkObjectId('workspace_id', request.workspaceId);
  return displayName;
}

/** The member that a request names. Errors: FIELD_REQUIRED, FIELD_INVALID. */
export function checkMember(request: GroupMemberRequest): MemberKey {
  checkGroupRequest(request);
  const member = request.member?.member;
  switch (member?.case) {
    case 'userId':
      checkUserId('member.user_id', member.value);
      return { kind: MEMBER_USER, id: member.value };
    case 'groupId':
      checkObjectId('member.group_id', member.value);
      return { kind: MEMBER_GROUP, id: member.value };
    case undefined:
      throw requiredError('member');
  }
}

/** The state that a request names. Errors: FIELD_REQUIRED where it is unspecified, FIELD_INVALID. */
export function checkState(state: number): EnrollmentState {
  if (state === 0) throw requiredError('state');
  const known = enrollmentStateOf(state);
  if (known === undefined) throw fieldError('state', 'is not an EnrollmentState');
  return known;
}

/** FIELD_INVALID where a group would contain itself. */
export function checkNotItself(groupId: string, member: MemberKey): void {
  if (member.kind === MEMBER_GROUP && member.id === groupId) {
    throw fieldError('member.group_id', 'a group cannot contain itself');
  }
}
