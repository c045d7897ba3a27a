import { Code } from '@connectrpc/connect';
import { createConnectErrors } from '../../http/connect/protocol/connect-errors.ts';
import type { NotifyErrorReason } from '../model/reasons.ts';

/** The only mapping from the reasons that this service uses to Connect codes. */
const CODE_OF_REASON = {
  BODY_MALFORMED: Code.InvalidArgument,
  FIELD_INVALID: Code.InvalidArgument,
  FIELD_REQUIRED: Code.InvalidArgument,
  BODY_TOO_LARGE: Code.ResourceExhausted,
  BATCH_TOO_LARGE: Code.ResourceExhausted,
  FIELD_TOO_LARGE: Code.ResourceExhausted,
  BODY_MEMORY_EXHAUSTED: Code.ResourceExhausted,
  BODY_IN_CRUMBS: Code.ResourceExhausted,
  CREDENTIAL_INVALID: Code.Unauthenticated,
  HOST_NOT_ALLOWED: Code.PermissionDenied,
  STREAM_TOKEN_INVALID: Code.Unauthenticated,
  METHOD_UNKNOWN: Code.Unimplemented,
  METHOD_UNIMPLEMENTED: Code.Unimplemented,
  NOTIFICATION_UNKNOWN: Code.NotFound,
  ENDPOINT_UNKNOWN: Code.NotFound,
  ENDPOINT_DISABLED: Code.FailedPrecondition,
  DELIVERY_UNKNOWN: Code.NotFound,
  DELIVERY_SENT: Code.FailedPrecondition,
  DELIVERY_RUNNING: Code.FailedPrecondition,
  CHANNEL_UNAVAILABLE: Code.FailedPrecondition,
  ORIGIN_NOT_ALLOWED: Code.PermissionDenied,
  STREAM_LIMIT: Code.ResourceExhausted,
  STREAMS_DISABLED: Code.Unavailable,
  RESULT_TOO_LARGE: Code.ResourceExhausted,
  QUEUE_FULL: Code.ResourceExhausted,
  STORE_UNAVAILABLE: Code.Unavailable,
  STORE_FULL: Code.Unavailable,
  STORE_READ_ONLY: Code.Unavailable,
  STORE_RIGHTS_MISSING: Code.Unavailable,
  STORE_LOGIN_REFUSED: Code.Unavailable,
  SHUTTING_DOWN: Code.Unavailable,
  DEADLINE_EXCEEDED: Code.DeadlineExceeded,
  CANCELLED: Code.Canceled,
} satisfies Partial<Record<NotifyErrorReason, Code>>;

/** How errors of this service look on the wire. A reason that is not in the table is shown as INTERNAL, without its text. */
export const NOTIFY_ERRORS = createConnectErrors(CODE_OF_REASON);
