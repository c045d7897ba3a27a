/** Why a method refuses a call that could be decoded, or who made it. */
export type RpcReason =
  | 'BODY_MALFORMED'
  | 'FIELD_REQUIRED'
  | 'CREDENTIAL_INVALID'
  | 'ADMIN_SECRET_INVALID'
  | 'ADMIN_DISABLED'
  | 'BATCH_TOO_LARGE'
  | 'RESULT_TOO_LARGE'
  | 'QUEUE_FULL'
  | 'DEADLINE_EXCEEDED'
  | 'CANCELLED';
