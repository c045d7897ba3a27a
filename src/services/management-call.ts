import { checkTenantId, checkUserId } from '../model/names.ts';
import type { ShardKey } from '../model/relation-tuple.ts';
import type { WriteMeta } from './ports.ts';
import type { ProjectService } from './project-service.ts';

/** What every request of WorkspaceService and GroupService carries, and who called. */
export type ManagementCall = {
  /** '' is the default project. */
  readonly projectId: string;
  readonly tenantId: string;
  readonly actingUserId: string;
  readonly meta: WriteMeta;
};

/** The common fields of a request. Errors: FIELD_REQUIRED, FIELD_INVALID. */
export function checkManagementCall(call: ManagementCall): void {
  checkUserId('acting_user_id', call.actingUserId);
  checkTenantId('tenant_id', call.tenantId);
}

/**
 * The shard of a call whose arguments were all checked. Errors: FIELD_INVALID, PROJECT_UNKNOWN,
 * PROJECT_SUSPENDED, REGION_REFUSED, STORE_UNAVAILABLE.
 */
export async function openShard(
  projects: ProjectService,
  call: Pick<ManagementCall, 'projectId' | 'tenantId'>,
): Promise<ShardKey> {
  const projectId = projects.resolveId(call.projectId);
  projects.guard(await projects.settings(projectId), 'data');
  return { projectId, tenantId: call.tenantId };
}
