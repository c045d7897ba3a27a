import { Code } from '@connectrpc/connect';
import { malformedBinary, malformedJson } from '../../decoding/malformed-message.ts';
import type { MalformedMessage } from '../../http/connect/protocol/call-errors.ts';
import { createConnectErrors } from '../../http/connect/protocol/connect-errors.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { AppError } from '../../shared/app-error.ts';

/**
 * The only mapping from reasons to Connect codes; the HTTP status follows from the code.
 */
export const CODE_OF_REASON = {
  BODY_MALFORMED: Code.InvalidArgument,
  FIELD_INVALID: Code.InvalidArgument,
  FIELD_REQUIRED: Code.InvalidArgument,
  BODY_TOO_LARGE: Code.ResourceExhausted,
  FIELD_TOO_LARGE: Code.ResourceExhausted,
  BODY_MEMORY_EXHAUSTED: Code.ResourceExhausted,
  BODY_IN_CRUMBS: Code.ResourceExhausted,
  MODEL_INVALID: Code.InvalidArgument,
  ASSERTIONS_INVALID: Code.InvalidArgument,
  TOKEN_INVALID: Code.InvalidArgument,
  NAMESPACE_RESERVED: Code.InvalidArgument,
  CREDENTIAL_INVALID: Code.Unauthenticated,
  CREDENTIAL_REVOKED: Code.Unauthenticated,
  KEYS_UNAVAILABLE: Code.Unavailable,
  SCOPE_REFUSED: Code.PermissionDenied,
  RATE_LIMITED: Code.ResourceExhausted,
  HOST_NOT_ALLOWED: Code.PermissionDenied,
  ADMIN_SECRET_INVALID: Code.PermissionDenied,
  ADMIN_DISABLED: Code.Unimplemented,
  METHOD_UNKNOWN: Code.Unimplemented,
  METHOD_UNIMPLEMENTED: Code.Unimplemented,
  PROJECT_UNKNOWN: Code.NotFound,
  PROJECT_EXISTS: Code.AlreadyExists,
  PROJECT_SUSPENDED: Code.FailedPrecondition,
  REGION_REFUSED: Code.FailedPrecondition,
  MODEL_VERSION_UNKNOWN: Code.NotFound,
  MODEL_VERSION_CHANGED: Code.FailedPrecondition,
  TUPLE_NOT_ADMITTED: Code.InvalidArgument,
  RELATION_UNKNOWN: Code.InvalidArgument,
  MODEL_TUPLES_REFUSED: Code.FailedPrecondition,
  MODEL_NOT_IN_FORCE: Code.FailedPrecondition,
  MODEL_NOT_PENDING: Code.FailedPrecondition,
  MODEL_TESTS_FAILED: Code.FailedPrecondition,
  MODEL_GUARD_REFUSED: Code.FailedPrecondition,
  WATCH_OFF: Code.FailedPrecondition,
  WATCH_TOO_OLD: Code.FailedPrecondition,
  ACTION_FORBIDDEN: Code.PermissionDenied,
  WORKSPACE_UNKNOWN: Code.NotFound,
  GROUP_UNKNOWN: Code.NotFound,
  MEMBER_UNKNOWN: Code.NotFound,
  SLUG_TAKEN: Code.AlreadyExists,
  INVITATION_UNKNOWN: Code.NotFound,
  ALREADY_MEMBER: Code.AlreadyExists,
  PERSONAL_WORKSPACE: Code.FailedPrecondition,
  OWNER_FIXED: Code.FailedPrecondition,
  MEMBERSHIP_STATE: Code.FailedPrecondition,
  INVITATION_STATE: Code.FailedPrecondition,
  PRECONDITION_FAILED: Code.FailedPrecondition,
  TUPLE_EXISTS: Code.AlreadyExists,
  TUPLE_DIFFERS: Code.AlreadyExists,
  TUPLE_MISSING: Code.FailedPrecondition,
  IDEMPOTENCY_KEY_USED: Code.AlreadyExists,
  EXPORT_CUT: Code.InvalidArgument,
  EXPORT_ALTERED: Code.InvalidArgument,
  IMPORT_DIFFERS: Code.FailedPrecondition,
  IMPORT_TAKEN_OVER: Code.Aborted,
  BUDGET_EXHAUSTED: Code.ResourceExhausted,
  SEATS_EXHAUSTED: Code.ResourceExhausted,
  BATCH_TOO_LARGE: Code.ResourceExhausted,
  RESULT_TOO_LARGE: Code.ResourceExhausted,
  QUEUE_FULL: Code.ResourceExhausted,
  SHARD_TOO_LARGE: Code.ResourceExhausted,
  STORE_UNAVAILABLE: Code.Unavailable,
  STORE_FULL: Code.Unavailable,
  STORE_READ_ONLY: Code.Unavailable,
  STORE_RIGHTS_MISSING: Code.Unavailable,
  STORE_LOGIN_REFUSED: Code.Unavailable,
  WRITE_OUTCOME_UNKNOWN: Code.Unavailable,
  SHARD_UNAVAILABLE: Code.Unavailable,
  SHARD_BEHIND: Code.Unavailable,
  SETTINGS_OLD: Code.Unavailable,
  WORKER_LOST: Code.Unavailable,
  REQUEST_REFUSED: Code.Internal,
  SHUTTING_DOWN: Code.Unavailable,
  DEADLINE_EXCEEDED: Code.DeadlineExceeded,
  CANCELLED: Code.Canceled,
  CONFIG_INVALID: Code.Internal,
  INTERNAL: Code.Internal,
} as const satisfies Readonly<Record<AuthzReason, Code>>;

/** Errors of this service in their form on the wire. */
export const AUTHZ_ERRORS = createConnectErrors(CODE_OF_REASON);

export const {
  codeNameOfReason,
  connectErrorFromAppError,
  errorBody,
  httpStatusOfReason,
  sendConnectError,
} = AUTHZ_ERRORS;

/** BODY_MALFORMED for what protobuf's readers threw about a message. Names the field where it is JSON. */
export function malformedMessage(thrown: Error, { input, isBinary }: MalformedMessage): AppError {
  const text = thrown.message;
  return isBinary ? malformedBinary(text, thrown) : malformedJson(text, thrown, input);
}
