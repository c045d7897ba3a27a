import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import {
  type EnrollmentSchema,
  type EnrollmentState,
  type GroupMemberSchema,
  type GroupSchema,
  type GroupService,
  ListEnrollmentsResponseSchema,
  ListGroupMembersResponseSchema,
  ListGroupsResponseSchema,
} from '../../gen/workspace/v1/group_service_pb.ts';
import { timestampFromMicroseconds } from '../../requests/tuple-to-proto.ts';
import type {
  Enrollment,
  GroupMember,
  GroupMemberService,
} from '../../services/groups/group-member-service.ts';
import type { Group, GroupService as Groups } from '../../services/groups/group-service.ts';
import type { WriteMeta } from '../../services/ports.ts';
import type { CallDefaults } from '../connect/call-context.ts';
import { pagedAnswer } from './list-answer.ts';
import { managementCallOf } from './write-meta.ts';

export type GroupHandlersOptions = CallDefaults & {
  readonly groups: Groups;
  readonly groupMembers: GroupMemberService;
};

/** The handlers of GroupService. */
export function createGroupService(
  options: GroupHandlersOptions,
): ServiceImpl<typeof GroupService> {
  const { groups, groupMembers } = options;
  const metaOf = (
    request: Parameters<typeof managementCallOf>[0],
    context: HandlerContext,
  ): WriteMeta => managementCallOf(request, context, options).meta;
  return {
    async createGroup(request, context) {
      assertNoUnknownFields(request);
      const group = await groups.create(request, metaOf(request, context));
      return { group: groupToProto(group) };
    },

    async getGroup(request) {
      assertNoUnknownFields(request);
      return { group: groupToProto(await groups.get(request)) };
    },

    async listGroups(request, context) {
      assertNoUnknownFields(request);
      return await pagedAnswer(context, ListGroupsResponseSchema, groups.list(request), (some) => ({
        groups: some.map(groupToProto),
      }));
    },

    async deleteGroup(request, context) {
      assertNoUnknownFields(request);
      await groups.delete(request, metaOf(request, context));
      return {};
    },

    async addGroupMember(request, context) {
      assertNoUnknownFields(request);
      await groupMembers.add(request, metaOf(request, context));
      return {};
    },

    async removeGroupMember(request, context) {
      assertNoUnknownFields(request);
      await groupMembers.remove(request, metaOf(request, context));
      return {};
    },

    async listGroupMembers(request, context) {
      assertNoUnknownFields(request);
      const pages = groupMembers.listMembers(request);
      return await pagedAnswer(context, ListGroupMembersResponseSchema, pages, (some) => ({
        members: some.map(memberToProto),
      }));
    },

    async setEnrollmentState(request, context) {
      assertNoUnknownFields(request);
      const meta = metaOf(request, context);
      return { enrollment: enrollmentToProto(await groupMembers.setState(request, meta)) };
    },

    async listEnrollments(request, context) {
      assertNoUnknownFields(request);
      const pages = groupMembers.listEnrollments(request);
      return await pagedAnswer(context, ListEnrollmentsResponseSchema, pages, (some) => ({
        enrollments: some.map(enrollmentToProto),
      }));
    },
  };
}

function groupToProto(group: Group): MessageInitShape<typeof GroupSchema> {
  return {
    id: group.id,
    projectId: group.projectId,
    workspaceId: group.workspaceId,
    slug: group.slug,
    displayName: group.displayName,
    createdByUserId: group.createdByUserId,
    createdAt: timestampFromMicroseconds(group.createdAtUs),
    updatedAt: timestampFromMicroseconds(group.updatedAtUs),
    tenantId: group.tenantId,
  };
}

function memberToProto({ kind, id }: GroupMember): MessageInitShape<typeof GroupMemberSchema> {
  return { member: { case: kind === 'user' ? 'userId' : 'groupId', value: id } };
}

function enrollmentToProto(enrollment: Enrollment): MessageInitShape<typeof EnrollmentSchema> {
  return {
    groupId: enrollment.groupId,
    member: memberToProto(enrollment.member),
    state: enrollment.state as EnrollmentState,
    createdAt: timestampFromMicroseconds(enrollment.createdAtUs),
    updatedAt: timestampFromMicroseconds(enrollment.updatedAtUs),
  };
}
