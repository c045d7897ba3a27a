import type { HandlerContext } from '@connectrpc/connect';
import type { ManagementCall } from '../../services/management-call.ts';
import {
  type CallDefaults,
  callerOfCall,
  deadlineOf,
  requestIdOfCall,
} from '../connect/call-context.ts';

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
    meta: {
      rpc: context.method.name,
      actingUserId,
      caller: callerOfCall(context),
      requestId: requestIdOfCall(context),
      deadlineMs: deadlineOf(context, defaults),
    },
  };
}
