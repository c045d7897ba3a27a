import { create } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import {
  DisconnectUserResponseSchema,
  GetStreamPolicyResponseSchema,
  type RevokeStreamTokensRequest,
  RevokeStreamTokensResponseSchema,
  SetStreamPolicyResponseSchema,
  type StreamService,
} from '../../gen/notify/v1/stream_service_pb.ts';
import type { NotificationStore } from '../model/notification-store.ts';
import { invalidField } from '../model/reasons.ts';
import type { NewStreamOrder } from '../model/stream-order.ts';
import { requiredId, userKey } from './request-fields.ts';

export type StreamServiceOptions = {
  readonly store: Pick<NotificationStore, 'orderStreams' | 'endsWithToken'>;
  /** Something was ordered here. */
  readonly onOrdered: (kind: NewStreamOrder['kind']) => void;
};

/** The methods of notify.v1.StreamService, by local name. */
export function createStreamService({
  store,
  onOrdered,
}: StreamServiceOptions): ServiceImpl<typeof StreamService> {
  const give = async (order: NewStreamOrder): Promise<void> => {
    await store.orderStreams(order);
    onOrdered(order.kind);
  };
  return {
    revokeStreamTokens: async (request) => {
      await give(revocationOf(request));
      return create(RevokeStreamTokensResponseSchema);
    },
    disconnectUser: async (request) => {
      await give({ kind: 'disconnect', ...userKey(request) });
      return create(DisconnectUserResponseSchema);
    },
    setStreamPolicy: async (request) => {
      const { tenantId, endsWithToken } = request;
      await give({ kind: 'policy', tenantId: requiredId('tenant_id', tenantId), endsWithToken });
      return create(SetStreamPolicyResponseSchema);
    },
    getStreamPolicy: async (request) => {
      const tenantId = requiredId('tenant_id', request.tenantId);
      const endsWithToken = await store.endsWithToken(tenantId);
      return create(GetStreamPolicyResponseSchema, { endsWithToken });
    },
  };
}

function revocationOf(request: RevokeStreamTokensRequest): NewStreamOrder {
  const tenantId = requiredId('tenant_id', request.tenantId);
  if ((request.userId === '') === (request.tokenId === '')) {
    throw invalidField('user_id', 'give either user_id or token_id');
  }
  if (request.userId !== '') {
    return { kind: 'revoke_user', tenantId, userId: requiredId('user_id', request.userId) };
  }
  return { kind: 'revoke_token', tenantId, tokenId: requiredId('token_id', request.tokenId) };
}
