import type { GroupService } from '../../gen/workspace/v1/group_service_pb.ts';
import type { SeatService } from '../../gen/workspace/v1/seat_service_pb.ts';
import type { WorkspaceService } from '../../gen/workspace/v1/workspace_service_pb.ts';

/** Roles and statuses of members, as the proto enums and the tables number them. */
export const OWNER = 1;
export const ADMIN = 2;
export const MEMBER = 3;
export const GUEST = 4;
export type Role = typeof OWNER | typeof ADMIN | typeof MEMBER | typeof GUEST;

export const ACTIVE = 1;
export const INVITED = 2;
export const SUSPENDED = 3;
export type MembershipStatus = typeof ACTIVE | typeof INVITED | typeof SUSPENDED;

/** The relation of the `workspace` namespace that a role maps to. */
export const RELATION_OF_ROLE: Readonly<Record<Role, string>> = {
  [OWNER]: 'owner',
  [ADMIN]: 'admin',
  [MEMBER]: 'member',
  [GUEST]: 'guest',
};

/** Requirement of a method on the acting user. Roles count by membership row, and only while ACTIVE. */
export type Requirement =
  /** A pure data operation of the calling service: there is no acting user. */
  | 'service'
  /** Any acting user. */
  | 'anybody'
  /** This role or a higher one in the workspace. */
  | typeof GUEST
  | typeof ADMIN
  | typeof OWNER
  /** ADMIN; or the member whom the call is about, whatever its role and status, but the owner. */
  | 'admin-or-self'
  /** Whoever has the token of the invitation. */
  | 'invited'
  /** ADMIN of the workspace that is to own the group; anyone if there is none. */
  | 'admin-where-owned'
  /** The creator of a standalone group; an ADMIN of the owning workspace, or the creator while ACTIVE there. */
  | 'group-manage'
  /** Whoever may manage the group, its members, and every ACTIVE member of the owning workspace. */
  | 'group-read'
  /** Filtered: any part in the workspace. What is returned is what the acting user may read. */
  | 'groups-readable';

/**
 * The role matrix: every method of the three services. A method that is missing does not compile.
 * On top of it, a member with the role of OWNER is changed, suspended or removed by nobody: an admin
 * who tries is refused for want of permission, the owner itself because its state forbids it.
 */
export const REQUIREMENTS = {
  workspace: {
    createWorkspace: 'anybody',
    listWorkspaces: 'anybody',
    getWorkspace: GUEST,
    listMembers: GUEST,
    listInvitations: ADMIN,
    updateWorkspace: ADMIN,
    addMember: ADMIN,
    updateMemberRole: ADMIN,
    removeMember: 'admin-or-self',
    suspendMember: ADMIN,
    reinstateMember: ADMIN,
    createInvitation: ADMIN,
    acceptInvitation: 'invited',
    revokeInvitation: ADMIN,
    transferOwnership: OWNER,
    deleteWorkspace: OWNER,
  },
  group: {
    createGroup: 'admin-where-owned',
    getGroup: 'group-read',
    listGroups: 'groups-readable',
    listGroupMembers: 'group-read',
    listEnrollments: 'group-read',
    deleteGroup: 'group-manage',
    addGroupMember: 'group-manage',
    removeGroupMember: 'group-manage',
    setEnrollmentState: 'group-manage',
  },
  seat: {
    setSeatLimit: 'service',
    getSeatUsage: 'service',
    assignSeat: 'service',
    revokeSeat: 'service',
    listSeats: 'service',
  },
} as const satisfies {
  readonly workspace: Readonly<Record<keyof typeof WorkspaceService.method, Requirement>>;
  readonly group: Readonly<Record<keyof typeof GroupService.method, Requirement>>;
  readonly seat: Readonly<Record<keyof typeof SeatService.method, Requirement>>;
};

/** Whether `role` is `needed` or higher: owner over admin over member over guest. */
export function isAtLeast(role: Role, needed: Role): boolean {
  return role <= needed;
}
