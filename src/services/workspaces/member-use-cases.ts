import { checkUserId } from '../../model/names.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import { type MembershipRow, membersQuery } from '../../store/sql/organization/memberships.ts';
import { openShard } from '../projects/management-call.ts';
import { streamSnapshot } from '../reads/snapshot-read.ts';
import { ADMIN, OWNER, REQUIREMENTS, type Role } from '../rules/roles.ts';
import type { WriteTransaction } from '../writes/write-transaction.ts';
import { type MemberEvent, changeMember } from './member-changes.ts';
import {
  type ActingWorkspace,
  assertRole,
  assertTeam,
  findWorkspace,
  forbidden,
  openWorkspace,
  type WorkspaceOptions,
} from './workspace-access.ts';
import { type Membership, checkGivenRole, membershipFromRow } from './workspace-model.ts';
import { type WorkspaceCall, checkWorkspaceCall, mapPages } from './workspace-use-cases.ts';

export type MemberCall = WorkspaceCall & { readonly userId: string };
/** `role` as the proto enum numbers it. */
export type MemberRoleCall = MemberCall & { readonly role: number };

const REQUIRED = REQUIREMENTS.workspace;

/**
 * The use cases of members: states and tuples by the table of rules/membership.ts. All
 * methods fail with FIELD_*, the errors of the project, WORKSPACE_UNKNOWN, ACTION_FORBIDDEN,
 * STORE_UNAVAILABLE and, where they write, those of TupleWrites.exclusive.
 */
export class MemberUseCases {
  readonly #options: WorkspaceOptions;

  constructor(options: WorkspaceOptions) {
    this.#options = options;
  }

  /** Adds an ACTIVE member. Errors: PERSONAL_WORKSPACE, ALREADY_MEMBER. */
  async add(call: MemberRoleCall): Promise<Membership> {
    checkMemberCall(call);
    const role = checkGivenRole('role', call.role);
    return await this.#change(call, 'add', role, (found) => {
      assertRole(found, REQUIRED.addMember);
      assertTeam(found.workspace, 'have other members');
    });
  }

  /** Changes a role; of a member that is not ACTIVE without a tuple. Errors: MEMBER_UNKNOWN, OWNER_FIXED. */
  async updateRole(call: MemberRoleCall): Promise<Membership> {
    checkMemberCall(call);
    const role = checkGivenRole('role', call.role);
    return await this.#change(call, 'changeRole', role, (found) => {
      assertRole(found, REQUIRED.updateMemberRole);
      assertNotOwner(found, call);
    });
  }

  /** Ends a membership in any state; a member may leave by itself. Errors: MEMBER_UNKNOWN, OWNER_FIXED. */
  async remove(call: MemberCall): Promise<void> {
    checkMemberCall(call);
    await this.#apply(call, 'remove', undefined, (found) => {
      const isLeaving = call.userId === call.actingUserId && found.role !== undefined;
      if (!isLeaving) assertRole(found, ADMIN);
      assertNotOwner(found, call);
    });
  }

  /** Takes the access of a member away until it is reinstated. Errors: MEMBER_UNKNOWN, OWNER_FIXED, MEMBERSHIP_STATE. */
  async suspend(call: MemberCall): Promise<Membership> {
    checkMemberCall(call);
    return await this.#change(call, 'suspend', undefined, (found) => {
      assertRole(found, REQUIRED.suspendMember);
      assertNotOwner(found, call);
      if (call.userId === call.actingUserId) {
        throw new AppError<AuthzReason>(
          'MEMBERSHIP_STATE',
          'user_id: nobody can suspend themselves',
          {
            field: 'user_id',
            workspace_id: call.workspaceId,
          },
        );
      }
    });
  }

  /** Makes a suspended member ACTIVE with its role. Errors: MEMBER_UNKNOWN, MEMBERSHIP_STATE. */
  async reinstate(call: MemberCall): Promise<Membership> {
    checkMemberCall(call);
    return await this.#change(call, 'reinstate', undefined, (found) => {
      assertRole(found, REQUIRED.reinstateMember);
    });
  }

  /** Pages of all members by user id, from one snapshot. */
  async list(call: WorkspaceCall): Promise<AsyncIterable<readonly Membership[]>> {
    checkWorkspaceCall(call);
    const { workspaceId, actingUserId } = call;
    const shard = await openShard(this.#options, call);
    const rows = streamSnapshot<MembershipRow>(this.#options, shard, async (client) => {
      await openWorkspace(client, shard, workspaceId, actingUserId, REQUIRED.listMembers);
      return membersQuery(shard, workspaceId);
    });
    return mapPages(rows, (row) => membershipFromRow(shard, row));
  }

  async #change(
    call: MemberCall,
    event: MemberEvent['event'],
    role: Role | undefined,
    permit: (found: ActingWorkspace) => void,
  ): Promise<Membership> {
    const membership = await this.#apply(call, event, role, permit);
    assert(membership !== undefined, 'the event leaves a membership');
    return membership;
  }

  async #apply(
    call: MemberCall,
    event: MemberEvent['event'],
    role: Role | undefined,
    permit: (found: ActingWorkspace) => void,
  ): Promise<Membership | undefined> {
    const { writer } = this.#options;
    const { workspaceId, actingUserId, userId, meta } = call;
    const shard: ShardKey = await openShard(this.#options, call);
    const work = async (transaction: WriteTransaction): Promise<Membership | undefined> => {
      const { client } = transaction;
      permit(await findWorkspace(client, shard, workspaceId, actingUserId));
      const change = { workspaceId, userId, event, role };
      const { membership, updates } = await changeMember(transaction, shard, change);
      if (updates.length > 0) await transaction.write(shard, updates, meta);
      return membership;
    };
    return await writer.exclusive([shard], meta, work);
  }
}

/** Errors: FIELD_REQUIRED, FIELD_INVALID. */
function checkMemberCall(call: MemberCall): void {
  checkWorkspaceCall(call);
  checkUserId('user_id', call.userId);
}

/** Errors: OWNER_FIXED for the owner itself, ACTION_FORBIDDEN for anybody else. */
function assertNotOwner({ workspace, role }: ActingWorkspace, call: MemberCall): void {
  if (call.userId !== workspace.ownerUserId) return;
  if (role !== OWNER) throw forbidden(workspace.id, 'the owner is changed by nobody else');
  throw new AppError<AuthzReason>(
    'OWNER_FIXED',
    'user_id: the owner stays until ownership is transferred',
    {
      field: 'user_id',
      workspace_id: workspace.id,
    },
  );
}
