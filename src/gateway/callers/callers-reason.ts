/** Why a call is refused for who made it. */
export type CallersReason =
  | 'CREDENTIAL_INVALID'
  | 'CREDENTIAL_REVOKED'
  | 'KEYS_UNAVAILABLE'
  | 'RATE_LIMITED'
  | 'SCOPE_REFUSED'
  | 'CONFIG_INVALID';
