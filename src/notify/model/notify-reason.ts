/** Reasons of the notification service; api/notify-error.ts holds the only mapping to codes. */
export type NotifyReason =
  | 'NOTIFICATION_UNKNOWN'
  | 'ENDPOINT_UNKNOWN'
  | 'ENDPOINT_DISABLED'
  | 'DELIVERY_UNKNOWN'
  | 'DELIVERY_SENT'
  | 'DELIVERY_RUNNING'
  | 'CHANNEL_UNAVAILABLE'
  | 'STREAM_TOKEN_INVALID'
  | 'STREAM_LIMIT'
  | 'STREAMS_DISABLED';

/** Reasons that mean the same in all services, and that this one and what it is built of use, too. */
export type SharedReason =
  | 'BODY_MALFORMED'
  | 'FIELD_INVALID'
  | 'FIELD_REQUIRED'
  | 'BODY_TOO_LARGE'
  | 'BATCH_TOO_LARGE' // a list has more items than are read
  | 'FIELD_TOO_LARGE' // a field holds more than is read
  | 'BODY_MEMORY_EXHAUSTED' // request bodies already take all that they, or those of this caller, may
  | 'BODY_IN_CRUMBS'
  | 'CREDENTIAL_INVALID'
  | 'HOST_NOT_ALLOWED' // Host or :authority names another service
  | 'METHOD_UNKNOWN'
  | 'METHOD_UNIMPLEMENTED'
  | 'ORIGIN_NOT_ALLOWED'
  | 'RESULT_TOO_LARGE'
  | 'QUEUE_FULL'
  | 'STORE_UNAVAILABLE'
  | 'STORE_FULL'
  | 'STORE_READ_ONLY'
  | 'STORE_RIGHTS_MISSING'
  | 'STORE_LOGIN_REFUSED'
  | 'SHUTTING_DOWN'
  | 'DEADLINE_EXCEEDED'
  | 'CANCELLED' // the caller has gone
  | 'CONFIG_INVALID' // the operator's settings; never on the wire
  | 'INTERNAL';

export type ErrorReason = NotifyReason | SharedReason;
