/** Why a route of tuples refuses a request that no method has seen. */
export type TuplesReason =
  | 'BODY_MALFORMED'
  | 'BODY_TOO_LARGE'
  | 'CREDENTIAL_INVALID'
  | 'ACTION_FORBIDDEN'
  | 'STORE_UNAVAILABLE'
  | 'CANCELLED'
  | 'DEADLINE_EXCEEDED'
  | 'INTERNAL';
