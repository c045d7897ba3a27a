import type { HandlerContext } from '@connectrpc/connect';
import type { ManagementCall } from '../../services/management-call.ts';
import { type CallDefaults, deadlineOf } from '../connect/call-context.ts';
import { writeMetaOf } from './write-meta.ts';

/** The common part of a request of WorkspaceService or GroupService, with what its call knows. */
export function managementCallOf(
  request: {
    readonly actingUserId: string;
    readonly projectId: string;
    readonly tenantId: string;
  },
  context: HandlerContext,
  defaults: CallDefaults,
): ManagementCall {
  const { actingUserId, projectId, tenantId } = request;
  return {
    actingUserId,
    projectId,
    tenantId,
    meta: writeMetaOf(context, deadlineOf(context, defaults), actingUserId),
  };
}
