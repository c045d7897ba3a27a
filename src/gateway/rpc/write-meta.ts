import type { HandlerContext } from '@connectrpc/connect';
import type { WriteMeta } from '../../services/ports.ts';
import type { ManagementCall } from '../../services/projects/management-call.ts';
import {
  type CallDefaults,
  callerOfCall,
  deadlineOf,
  requestIdOfCall,
} from '../connect/call-context.ts';

/** Author and deadline of a change by this call; `actingUserId` is null where the method has no acting user. */
export function writeMetaOf(
  context: HandlerContext,
  deadlineMs: number,
  actingUserId: string | null = null,
): WriteMeta {
  return {
    rpc: context.method.name,
    actingUserId,
    caller: callerOfCall(context),
    requestId: requestIdOfCall(context),
    deadlineMs,
  };
}

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
