import type { Config } from '../config/options.ts';
import { GroupMemberService } from '../services/groups/group-member-service.ts';
import { GroupService, type GroupServiceOptions } from '../services/groups/group-service.ts';
import { SeatService } from '../services/seats/seat-service.ts';
import { InvitationUseCases } from '../services/workspaces/invitation-use-cases.ts';
import { MemberUseCases } from '../services/workspaces/member-use-cases.ts';
import { WorkspaceUseCases } from '../services/workspaces/workspace-use-cases.ts';

/** The use cases that write rows next to tuples. */
export type Management = {
  readonly workspaces: WorkspaceUseCases;
  readonly members: MemberUseCases;
  readonly invitations: InvitationUseCases;
  readonly groups: GroupService;
  readonly groupMembers: GroupMemberService;
  readonly seats: SeatService;
};

const US_PER_HOUR = 3_600_000_000;

/** Wires workspaces, members, invitations, groups, enrollments and seats. */
export function createManagement(
  config: Pick<Config, 'invitationTtlHours'>,
  parts: GroupServiceOptions,
): Management {
  const ttlUs = Math.max(1, Math.round(config.invitationTtlHours * US_PER_HOUR));
  return {
    workspaces: new WorkspaceUseCases(parts),
    members: new MemberUseCases(parts),
    invitations: new InvitationUseCases({ ...parts, ttlUs }),
    groups: new GroupService(parts),
    groupMembers: new GroupMemberService(parts),
    seats: new SeatService(parts),
  };
}
