/** Why a route of tuples refuses a request that no method has seen. */
export type TuplesReason =
  | 'BODY_MALFORMED'
  | 'BODY_TOO_LARGE'
  | 'EXPORT_CUT' // the last line of an export is missing
  | 'EXPORT_ALTERED' // what came is not what its last line says
  | 'CREDENTIAL_INVALID'
  | 'ACTION_FORBIDDEN'
  | 'STORE_UNAVAILABLE'
  | 'CANCELLED'
  | 'DEADLINE_EXCEEDED'
  | 'INTERNAL';
