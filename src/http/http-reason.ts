/** Why a request cannot be read, and what went wrong below it. */
export type HttpReason =
  | 'BODY_MALFORMED'
  | 'BODY_TOO_LARGE'
  | 'BODY_MEMORY_EXHAUSTED' // all of a share is held: metadata.share, .limit_bytes, .retry_after_ms
  | 'BODY_IN_CRUMBS'
  | 'HOST_NOT_ALLOWED' // Host or :authority names another service
  | 'INTERNAL';
