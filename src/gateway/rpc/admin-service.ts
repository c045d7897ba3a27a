import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type { AdminService, ProjectSchema } from '../../gen/workspace/v1/admin_service_pb.ts';
import type { ProjectService } from '../../services/project-service.ts';
import type { Project } from '../../services/project-settings.ts';
import { requestIdOfCall } from '../connect/call-context.ts';
import { timestampFromMicroseconds } from './tuple-to-proto.ts';
import { assertNoUnknownFields } from './unknown-fields.ts';

/** The handlers of AdminService. The operator secret was checked before (authorization.ts). */
export function createAdminService(
  projects: ProjectService,
  operatorName: (secret: string) => string,
): ServiceImpl<typeof AdminService> {
  const callerOf = (context: HandlerContext): string =>
    operatorName(context.requestHeader.get('x-admin-secret') ?? '');
  return {
    async createProject(request, context) {
      assertNoUnknownFields(request);
      const project = await projects.create(request, requestIdOfCall(context), callerOf(context));
      return { project: projectToProto(project) };
    },

    async getProject(request) {
      assertNoUnknownFields(request);
      return { project: projectToProto(await projects.get(request.id)) };
    },

    async updateProject(request, context) {
      assertNoUnknownFields(request);
      const project = await projects.update(request, requestIdOfCall(context), callerOf(context));
      return { project: projectToProto(project) };
    },

    async listProjects(request) {
      assertNoUnknownFields(request);
      return { projects: (await projects.list()).map(projectToProto) };
    },
  };
}

function projectToProto(project: Project): MessageInitShape<typeof ProjectSchema> {
  return {
    id: project.id,
    name: project.name,
    status: project.status,
    modelJson: project.modelJson,
    createdAt: timestampFromMicroseconds(project.createdAtUs),
    updatedAt: timestampFromMicroseconds(project.updatedAtUs),
    dataRegion: project.dataRegion,
    maxCheckReads: project.maxCheckReads,
  };
}
