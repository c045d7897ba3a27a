import type { HandlerContext } from '@connectrpc/connect';
import type { WriteMeta } from '../../services/ports.ts';
import { callerOfCall, requestIdOfCall } from '../connect/call-context.ts';

/** Who changes something by this call, and until when; `actingUserId` is null where the method has no acting user. */
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
