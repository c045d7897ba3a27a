import type { Message, MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import {
  type InvitationSchema,
  ListInvitationsResponseSchema,
  ListMembersResponseSchema,
  ListWorkspacesResponseSchema,
  type MembershipSchema,
  type WorkspaceSchema,
  type WorkspaceService,
} from '../../gen/workspace/v1/workspace_service_pb.ts';
import { timestampFromMicroseconds } from '../../requests/tuple-to-proto.ts';
import type { ManagementCall } from '../../services/projects/management-call.ts';
import type { InvitationUseCases } from '../../services/workspaces/invitation-use-cases.ts';
import type { MemberUseCases } from '../../services/workspaces/member-use-cases.ts';
import type {
  Invitation,
  Membership,
  Workspace,
} from '../../services/workspaces/workspace-model.ts';
import type { WorkspaceUseCases } from '../../services/workspaces/workspace-use-cases.ts';
import type { CallDefaults } from '../connect/call-context.ts';
import { pagedAnswer } from './list-answer.ts';
import { managementCallOf } from './write-meta.ts';

export type WorkspaceServiceOptions = CallDefaults & {
  readonly workspaces: WorkspaceUseCases;
  readonly members: MemberUseCases;
  readonly invitations: InvitationUseCases;
};

type Handlers = ServiceImpl<typeof WorkspaceService>;
type Managed = Message & {
  readonly actingUserId: string;
  readonly projectId: string;
  readonly tenantId: string;
};

/** The handlers of WorkspaceService. */
export function createWorkspaceService(options: WorkspaceServiceOptions): Handlers {
  return {
    ...workspaceHandlers(options),
    ...memberHandlers(options),
    ...invitationHandlers(options),
  };
}

/** The request with what its call knows; refuses fields that this version does not know. */
function callOf<Request extends Managed>(
  request: Request,
  context: HandlerContext,
  options: CallDefaults,
): Request & ManagementCall {
  assertNoUnknownFields(request);
  return { ...request, ...managementCallOf(request, context, options) };
}

type WorkspaceMethod =
  | 'createWorkspace'
  | 'getWorkspace'
  | 'listWorkspaces'
  | 'updateWorkspace'
  | 'transferOwnership'
  | 'deleteWorkspace';

function workspaceHandlers(options: WorkspaceServiceOptions): Pick<Handlers, WorkspaceMethod> {
  const { workspaces } = options;
  return {
    async createWorkspace(request, context) {
      const workspace = await workspaces.create(callOf(request, context, options));
      return { workspace: workspaceToProto(workspace) };
    },

    async getWorkspace(request, context) {
      const workspace = await workspaces.get(callOf(request, context, options));
      return { workspace: workspaceToProto(workspace) };
    },

    async listWorkspaces(request, context) {
      const pages = await workspaces.list(callOf(request, context, options));
      return await pagedAnswer(context, ListWorkspacesResponseSchema, pages, (page) => ({
        workspaces: page.map(workspaceToProto),
      }));
    },

    async updateWorkspace(request, context) {
      const workspace = await workspaces.update(callOf(request, context, options));
      return { workspace: workspaceToProto(workspace) };
    },

    async transferOwnership(request, context) {
      const workspace = await workspaces.transferOwnership(callOf(request, context, options));
      return { workspace: workspaceToProto(workspace) };
    },

    async deleteWorkspace(request, context) {
      await workspaces.delete(callOf(request, context, options));
      return {};
    },
  };
}

type MemberMethod =
  | 'addMember'
  | 'updateMemberRole'
  | 'removeMember'
  | 'suspendMember'
  | 'reinstateMember'
  | 'listMembers';

function memberHandlers(options: WorkspaceServiceOptions): Pick<Handlers, MemberMethod> {
  const { members } = options;
  return {
    async addMember(request, context) {
      const membership = await members.add(callOf(request, context, options));
      return { membership: membershipToProto(membership) };
    },

    async updateMemberRole(request, context) {
      const membership = await members.updateRole(callOf(request, context, options));
      return { membership: membershipToProto(membership) };
    },

    async removeMember(request, context) {
      await members.remove(callOf(request, context, options));
      return {};
    },

    async suspendMember(request, context) {
      const membership = await members.suspend(callOf(request, context, options));
      return { membership: membershipToProto(membership) };
    },

    async reinstateMember(request, context) {
      const membership = await members.reinstate(callOf(request, context, options));
      return { membership: membershipToProto(membership) };
    },

    async listMembers(request, context) {
      const pages = await members.list(callOf(request, context, options));
      return await pagedAnswer(context, ListMembersResponseSchema, pages, (page) => ({
        members: page.map(membershipToProto),
      }));
    },
  };
}

type InvitationMethod =
  | 'createInvitation'
  | 'acceptInvitation'
  | 'listInvitations'
  | 'revokeInvitation';

function invitationHandlers(options: WorkspaceServiceOptions): Pick<Handlers, InvitationMethod> {
  const { invitations } = options;
  return {
    async createInvitation(request, context) {
      const invitation = await invitations.create(callOf(request, context, options));
      return { invitation: invitationToProto(invitation) };
    },

    async acceptInvitation(request, context) {
      const membership = await invitations.accept(callOf(request, context, options));
      return { membership: membershipToProto(membership) };
    },

    async listInvitations(request, context) {
      const pages = await invitations.list(callOf(request, context, options));
      return await pagedAnswer(context, ListInvitationsResponseSchema, pages, (page) => ({
        invitations: page.map(invitationToProto),
      }));
    },

    async revokeInvitation(request, context) {
      await invitations.revoke(callOf(request, context, options));
      return {};
    },
  };
}

// Types, roles, statuses and states are numbered as the proto enums are.

function workspaceToProto(workspace: Workspace): MessageInitShape<typeof WorkspaceSchema> {
  const { createdAtUs, updatedAtUs, ...fields } = workspace;
  return {
    ...fields,
    createdAt: timestampFromMicroseconds(createdAtUs),
    updatedAt: timestampFromMicroseconds(updatedAtUs),
  };
}

function membershipToProto(membership: Membership): MessageInitShape<typeof MembershipSchema> {
  const { createdAtUs, updatedAtUs, ...fields } = membership;
  return {
    ...fields,
    createdAt: timestampFromMicroseconds(createdAtUs),
    updatedAt: timestampFromMicroseconds(updatedAtUs),
  };
}

function invitationToProto(invitation: Invitation): MessageInitShape<typeof InvitationSchema> {
  const { createdAtUs, expiresAtUs, token, ...fields } = invitation;
  return {
    ...fields,
    ...(token === undefined ? {} : { token }),
    createdAt: timestampFromMicroseconds(createdAtUs),
    expiresAt: timestampFromMicroseconds(expiresAtUs),
  };
}
