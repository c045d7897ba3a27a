import type { StreamGrant, StreamOrder } from '../model/stream-order.ts';

/** Whether `order` makes the token void. */
export function revokes(order: StreamOrder, grant: StreamGrant): boolean {
  if (order.tenantId !== grant.tenantId) return false;
  if (order.kind === 'revoke_user') {
    return order.userId === grant.userId && grant.issuedAtMs <= order.atMs;
  }
  return order.kind === 'revoke_token' && order.tokenId === grant.tokenId;
}
