/**
 * Reasons with the same meaning in all services: requests, HTTP and its protocols, PostgreSQL,
 * settings, the end of a process. Services add more: src/model/reasons.ts,
 * src/notify/model/reasons.ts, src/runner/model/reasons.ts.
 */
export type SharedReason =
  | 'FIELD_INVALID' // metadata.field names the field, if a field is at fault
  | 'FIELD_REQUIRED'
  | 'BODY_MALFORMED' // no valid JSON, protobuf, gzip or envelope; unknown fields, wrong types, too deep; another protocol version
  | 'BODY_TOO_LARGE'
  | 'BODY_MEMORY_EXHAUSTED' // if a share of the bodies is full: metadata.share, .limit_bytes, .retry_after_ms
  | 'BODY_IN_CRUMBS'
  | 'BATCH_TOO_LARGE' // metadata.field, .limit
  | 'FIELD_TOO_LARGE' // a text, or the content of a field: metadata.field, .limit
  | 'CREDENTIAL_INVALID'
  | 'HOST_NOT_ALLOWED' // Host or :authority names another service
  | 'METHOD_UNKNOWN'
  | 'METHOD_UNIMPLEMENTED'
  | 'RESULT_TOO_LARGE'
  | 'QUEUE_FULL'
  | 'DEADLINE_EXCEEDED'
  | 'WRITE_OUTCOME_UNKNOWN' // the deadline passed, or the connection to the database was lost, while a change was under way
  | 'CANCELLED' // the caller has gone, or the call is complete
  | 'STORE_UNAVAILABLE'
  | 'STORE_FULL' // no space on its disk
  | 'STORE_READ_ONLY'
  | 'STORE_RIGHTS_MISSING' // the service's role lacks rights
  | 'STORE_LOGIN_REFUSED'
  | 'SHUTTING_DOWN'
  | 'CONFIG_INVALID' // the operator's settings; never on a wire
  | 'INTERNAL'; // an unexpected error
