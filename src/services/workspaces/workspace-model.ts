import { fieldError } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type { InvitationRow } from '../../store/sql/organization/invitations.ts';
import type { MembershipRow } from '../../store/sql/organization/memberships.ts';
import type { WorkspaceRow } from '../../store/sql/organization/workspaces.ts';
import type { InvitationState } from '../rules/invitation.ts';
import { ADMIN, GUEST, MEMBER, type MembershipStatus, OWNER, type Role } from '../rules/roles.ts';

/** Types of workspaces, as the proto enum and the table number them. */
export const PERSONAL = 1;
export const TEAM = 2;
export type WorkspaceType = typeof PERSONAL | typeof TEAM;

export type Workspace = ShardKey & {
  readonly id: string;
  readonly slug: string;
  readonly displayName: string;
  readonly type: WorkspaceType;
  readonly ownerUserId: string;
  /** Microseconds since the epoch. */
  readonly createdAtUs: bigint;
  readonly updatedAtUs: bigint;
};

export type Membership = {
  readonly tenantId: string;
  readonly workspaceId: string;
  readonly userId: string;
  readonly role: Role;
  readonly status: MembershipStatus;
  readonly createdAtUs: bigint;
  readonly updatedAtUs: bigint;
};

export type Invitation = {
  readonly tenantId: string;
  readonly id: string;
  readonly workspaceId: string;
  readonly email: string;
  readonly role: Role;
  readonly status: InvitationState;
  readonly invitedByUserId: string;
  readonly createdAtUs: bigint;
  readonly expiresAtUs: bigint;
  /** Only in the answer of CreateInvitation. */
  readonly token?: string | undefined;
};

/** A row of `workspace` as a workspace of its shard. */
export function workspaceFromRow(shard: ShardKey, row: WorkspaceRow): Workspace {
  return {
    ...shard,
    id: row.id,
    slug: row.slug,
    displayName: row.display_name,
    type: row.type as WorkspaceType,
    ownerUserId: row.owner_user_id,
    createdAtUs: BigInt(row.created_at_us),
    updatedAtUs: BigInt(row.updated_at_us),
  };
}

/** A row of `membership`. */
export function membershipFromRow({ tenantId }: ShardKey, row: MembershipRow): Membership {
  return {
    tenantId,
    workspaceId: row.workspace_id,
    userId: row.user_id,
    role: row.role as Role,
    status: row.status as MembershipStatus,
    createdAtUs: BigInt(row.created_at_us),
    updatedAtUs: BigInt(row.updated_at_us),
  };
}

/** A row of `invitation`. */
export function invitationFromRow({ tenantId }: ShardKey, row: InvitationRow): Invitation {
  return {
    tenantId,
    id: row.id,
    workspaceId: row.workspace_id,
    email: row.email,
    role: row.role as Role,
    status: row.status as InvitationState,
    invitedByUserId: row.invited_by_user_id,
    createdAtUs: BigInt(row.created_at_us),
    expiresAtUs: BigInt(row.expires_at_us),
  };
}

/** A role that can be given: any but OWNER, which is had by transfer only. Errors: FIELD_INVALID. */
export function checkGivenRole(field: string, role: number): Role {
  if (role === OWNER) throw fieldError(field, 'ROLE_OWNER is had by TransferOwnership only');
  if (role !== ADMIN && role !== MEMBER && role !== GUEST) {
    throw fieldError(field, 'must be ROLE_ADMIN, ROLE_MEMBER or ROLE_GUEST');
  }
  return role;
}
