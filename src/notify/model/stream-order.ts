import type { DeviceType, UserKey } from './notification.ts';

/** What a stream token allows: reading the stream of one user from one kind of device. */
export type StreamGrant = UserKey & {
  readonly deviceType: DeviceType;
  readonly expiresAtMs: number;
  /** By the store's clock, which orders it against revocations. */
  readonly issuedAtMs: number;
  /** '' for tokens of releases that gave none. */
  readonly tokenId: string;
};

/** Seconds for which a token may be valid. */
export const TOKEN_SECONDS_MAX = 3_600;

/** What every instance must do about streams. */
export type StreamOrder =
  /** Void are the tokens of the user that were issued until `atMs`. */
  | (UserKey & { readonly kind: 'revoke_user'; readonly atMs: number })
  | { readonly kind: 'revoke_token'; readonly tenantId: string; readonly tokenId: string }
  /** The streams of the user end; their tokens stay good. */
  | (UserKey & { readonly kind: 'disconnect' })
  /** The policy of the tenant has changed. */
  | { readonly kind: 'policy'; readonly tenantId: string; readonly endsWithToken: boolean };

/** An order that is to be given; the store says when it was. */
export type NewStreamOrder =
  | Omit<Extract<StreamOrder, { kind: 'revoke_user' }>, 'atMs'>
  | Exclude<StreamOrder, { kind: 'revoke_user' }>;

/** What the store knows of a token. */
export type StreamStanding = { readonly isRevoked: boolean; readonly endsWithToken: boolean };

export type StreamOrders = {
  /** The newest there is. */
  readonly head: number;
  readonly orders: readonly { readonly revision: number; readonly order: StreamOrder }[];
  /** Some between are no longer kept. */
  readonly hasGap: boolean;
};

/** Whether `order` makes the token void. */
export function revokes(order: StreamOrder, grant: StreamGrant): boolean {
  if (order.tenantId !== grant.tenantId) return false;
  if (order.kind === 'revoke_user') {
    return order.userId === grant.userId && grant.issuedAtMs <= order.atMs;
  }
  return order.kind === 'revoke_token' && order.tokenId === grant.tokenId;
}
