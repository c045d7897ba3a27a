import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import type { AdminService, ProjectSchema } from '../../gen/workspace/v1/admin_service_pb.ts';
import { timestampFromMicroseconds } from '../../requests/tuple-to-proto.ts';
import type { ProjectService } from '../../services/projects/project-service.ts';
import type { Project } from '../../services/projects/project-settings.ts';
import { mustRule } from '../callers/method-rules.ts';
import { callerOfCall, credentialOfCall, requestIdOfCall } from '../connect/call-context.ts';

const LIST_PROJECTS = mustRule('/workspace.v1.AdminService/ListProjects');

/** The handlers of AdminService. The operator secret was checked before (authorization.ts). */
export function createAdminService(
  projects: ProjectService,
  operatorName: (secret: string) => string,
): ServiceImpl<typeof AdminService> {
  const operatorOf = (context: HandlerContext): string =>
    operatorName(context.requestHeader.get('x-admin-secret') ?? '');
  return {
    async createProject(request, context) {
      assertNoUnknownFields(request);
      const by = operatorOf(context);
      const caller = callerOfCall(context);
      const project = await projects.create(request, requestIdOfCall(context), by, caller);
      return { project: projectToProto(project) };
    },

    async getProject(request) {
      assertNoUnknownFields(request);
      return { project: projectToProto(await projects.get(request.id)) };
    },

    async updateProject(request, context) {
      assertNoUnknownFields(request);
      const by = operatorOf(context);
      const caller = callerOfCall(context);
      const project = await projects.update(request, requestIdOfCall(context), by, caller);
      return { project: projectToProto(project) };
    },

    async listProjects(request, context) {
      assertNoUnknownFields(request);
      const { scopes } = credentialOfCall(context).caller;
      const shown = scopes.projectsOf(LIST_PROJECTS);
      const found = shown === '*' ? await projects.list() : await projects.some(shown);
      return { projects: found.map(projectToProto) };
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
    // Absent where it is off: the answer is then as it was before there was such a setting.
    ...(project.refusesUnknown ? { refuseUnknownRelations: true } : {}),
  };
}
