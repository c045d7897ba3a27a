import { createHash } from 'node:crypto';
import { checkEmail, checkObjectId, checkText, requiredError } from '../../model/names.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import {
  type InvitationRow,
  insertInvitation,
  invitationsQuery,
  selectInvitation,
  updateInvitation,
} from '../../store/sql/organization/invitations.ts';
import {
  type ManagementCall,
  checkManagementCall,
  openShard,
} from '../projects/management-call.ts';
import { streamSnapshot } from '../reads/snapshot-read.ts';
import { INVITATION, type InvitationEvent } from '../rules/invitation.ts';
import { REQUIREMENTS } from '../rules/roles.ts';
import { changeMember } from './member-changes.ts';
import { assertTeam, openWorkspace, type WorkspaceOptions } from './workspace-access.ts';
import {
  type Invitation,
  type Membership,
  checkGivenRole,
  invitationFromRow,
} from './workspace-model.ts';
import { type WorkspaceCall, checkWorkspaceCall, mapPages } from './workspace-use-cases.ts';

export type CreateInvitationCall = WorkspaceCall & {
  readonly email: string;
  /** Number of the proto enum. */
  readonly role: number;
};
export type AcceptInvitationCall = ManagementCall & { readonly token: string };
export type RevokeInvitationCall = ManagementCall & { readonly invitationId: string };

export type InvitationOptions = WorkspaceOptions & {
  /** Microseconds, a whole number: how long a new invitation can be accepted. */
  readonly ttlUs: number;
};

const REQUIRED = REQUIREMENTS.workspace;

/**
 * The use cases of invitations: states by the table of rules/invitation.ts. All methods fail
 * with FIELD_*, the errors of the project, STORE_UNAVAILABLE and, where they write, those of
 * TupleWrites.exclusive.
 */
export class InvitationUseCases {
  readonly #options: InvitationOptions;

  constructor(options: InvitationOptions) {
    assert(
      Number.isSafeInteger(options.ttlUs) && options.ttlUs > 0,
      'the TTL is whole and positive',
    );
    this.#options = options;
  }

  /** A new invitation with its token. Errors: WORKSPACE_UNKNOWN, ACTION_FORBIDDEN, PERSONAL_WORKSPACE. */
  async create(call: CreateInvitationCall): Promise<Invitation> {
    checkWorkspaceCall(call);
    checkEmail('email', call.email);
    const role = checkGivenRole('role', call.role);
    const { writer, ids, ttlUs } = this.#options;
    const shard = await openShard(this.#options, call);
    const { workspaceId, actingUserId, email, meta } = call;
    const id = ids.uuid();
    const token = ids.secret();
    return await writer.exclusive([shard], meta, async ({ client }) => {
      const needed = REQUIRED.createInvitation;
      const found = await openWorkspace(client, shard, workspaceId, actingUserId, needed);
      assertTeam(found.workspace, 'have other members');
      const row = await insertInvitation(client, shard, {
        id,
        workspaceId,
        email,
        role,
        invitedByUserId: actingUserId,
        tokenHash: hashOf(token),
        ttlUs,
      });
      return { ...invitationFromRow(shard, row), token };
    });
  }

  /**
   * Makes the acting user a member with the invitation's role. Errors: INVITATION_UNKNOWN,
   * INVITATION_STATE, ALREADY_MEMBER (the invitation stays PENDING).
   */
  async accept(call: AcceptInvitationCall): Promise<Membership> {
    checkManagementCall(call);
    if (call.token === '') throw requiredError('token');
    checkText('token', call.token);
    const { writer } = this.#options;
    const shard = await openShard(this.#options, call);
    const { actingUserId, meta } = call;
    const tokenHash = hashOf(call.token);
    return await writer.exclusive([shard], meta, async (transaction) => {
      const { client } = transaction;
      const row = await selectInvitation(client, shard, { tokenHash });
      if (row === undefined) {
        throw new AppError<AuthzReason>(
          'INVITATION_UNKNOWN',
          'token: there is no such invitation',
          {
            field: 'token',
          },
        );
      }
      const invitation = invitationFromRow(shard, row);
      const status = nextState(invitation, 'accept');
      const { membership, updates } = await changeMember(transaction, shard, {
        workspaceId: invitation.workspaceId,
        userId: actingUserId,
        event: 'accept',
        role: invitation.role,
      });
      const change = { status, acceptedByUserId: actingUserId };
      await updateInvitation(client, shard, invitation.id, change);
      await transaction.write(shard, updates, meta);
      assert(membership !== undefined, 'an acceptance leaves a membership');
      return membership;
    });
  }

  /** Pages of the workspace's invitations in the order of their making, without tokens. Errors: WORKSPACE_UNKNOWN, ACTION_FORBIDDEN. */
  async list(call: WorkspaceCall): Promise<AsyncIterable<readonly Invitation[]>> {
    checkWorkspaceCall(call);
    const { workspaceId, actingUserId } = call;
    const shard = await openShard(this.#options, call);
    const rows = streamSnapshot<InvitationRow>(this.#options, shard, async (client) => {
      await openWorkspace(client, shard, workspaceId, actingUserId, REQUIRED.listInvitations);
      return invitationsQuery(shard, workspaceId);
    });
    return mapPages(rows, (row) => invitationFromRow(shard, row));
  }

  /** Errors: INVITATION_UNKNOWN, ACTION_FORBIDDEN, INVITATION_STATE (accepted). */
  async revoke(call: RevokeInvitationCall): Promise<void> {
    checkManagementCall(call);
    checkObjectId('invitation_id', call.invitationId);
    const { writer } = this.#options;
    const shard = await openShard(this.#options, call);
    const { invitationId, actingUserId, meta } = call;
    await writer.exclusive([shard], meta, async ({ client }) => {
      const row = await selectInvitation(client, shard, { id: invitationId });
      if (row === undefined) {
        throw new AppError<AuthzReason>(
          'INVITATION_UNKNOWN',
          `invitation ${invitationId} does not exist`,
          {
            invitation_id: invitationId,
          },
        );
      }
      const invitation = invitationFromRow(shard, row);
      const needed = REQUIRED.revokeInvitation;
      await openWorkspace(client, shard, invitation.workspaceId, actingUserId, needed);
      const status = nextState(invitation, 'revoke');
      const change = { status, acceptedByUserId: null };
      await updateInvitation(client, shard, invitationId, change);
    });
  }
}

/** Errors: INVITATION_STATE. */
function nextState({ id, status }: Invitation, event: InvitationEvent): number {
  const outcome = INVITATION[status][event];
  if ('next' in outcome) return outcome.next;
  throw new AppError<AuthzReason>('INVITATION_STATE', `the invitation ${outcome.refusal}`, {
    invitation_id: id,
  });
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
