import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type WatchResponse,
  WatchResponseSchema,
} from '../../gen/gatehouse/v1/tuple_service_pb.ts';
import { TupleUpdate_Op } from '../../gen/workspace/v1/authz_service_pb.ts';
import { timestampFromMicroseconds, tupleToProto } from '../../requests/tuple-to-proto.ts';
import type { WatchEvent } from '../../services/watch/tuple-watch.ts';

/** The method of the service that deletes what has expired. */
const PURGE = 'PurgeExpired';

/** The message of an event that a follower gets. */
export function watchEventToProto(event: WatchEvent): WatchResponse {
  return create(WatchResponseSchema, { cursor: event.cursor, kind: kindOf(event) });
}

type EventKind = NonNullable<MessageInitShape<typeof WatchResponseSchema>['kind']>;

function kindOf(event: WatchEvent): EventKind {
  switch (event.kind) {
    case 'heartbeat':
      return {
        case: 'heartbeat',
        value: { at: timestampFromMicroseconds(BigInt(Math.round(event.atMs * 1_000))) },
      };
    case 'modelChanged':
      return { case: 'modelChanged', value: { version: BigInt(event.version) } };
    case 'resync':
      return {
        case: 'resync',
        value: { tenantId: event.tenantId, consistencyToken: event.token },
      };
    case 'changes': {
      const { projectId, tenantId, updates, token, rpc, actingUserId, requestId } = event;
      return {
        case: 'changes',
        value: {
          tenantId,
          updates: updates.map(({ op, tuple }) => ({
            op: op === 'insert' ? TupleUpdate_Op.INSERT : TupleUpdate_Op.DELETE,
            tuple: tupleToProto({ projectId, tenantId }, tuple),
          })),
          consistencyToken: token,
          committedAt: timestampFromMicroseconds(event.committedAtUs),
          rpc,
          actingUserId,
          requestId,
          expired: rpc === PURGE,
        },
      };
    }
  }
}
