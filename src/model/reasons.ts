import { errorWithoutStack, type AppError } from '../shared/app-error.ts';
import type { SharedReason } from '../shared/reasons.ts';

/**
 * Reasons for which a call of the authorization service can fail. gateway/connect/connect-error.ts has the only mapping
 * to codes.
 */
export type AuthzReason =
  | SharedReason
  // Input.
  | 'MODEL_INVALID' // metadata.path: JSON path into model_json
  | 'TOKEN_INVALID' // malformed, foreign shard or epoch, or beyond the head
  | 'ASSERTIONS_INVALID' // metadata: field, line, column
  | 'NAMESPACE_RESERVED' // `seat`: only operations on seats write its tuples
  | 'TUPLE_NOT_ADMITTED' // by the project's model, which declares who may be a subject
  | 'RELATION_UNKNOWN' // to the typed model in force, in a project that refuses such queries or inserts
  | 'EXPORT_CUT' // the last line of an export is missing
  | 'EXPORT_ALTERED' // the content does not match its last line
  // Callers.
  | 'CREDENTIAL_REVOKED'
  | 'KEYS_UNAVAILABLE'
  | 'RATE_LIMITED'
  | 'SCOPE_REFUSED'
  | 'ADMIN_SECRET_INVALID'
  | 'ADMIN_DISABLED'
  // Evaluations, and the workers that make them.
  | 'BUDGET_EXHAUSTED'
  | 'WORKER_LOST'
  | 'REQUEST_REFUSED' // the same request ended a worker before
  | 'SHARD_UNAVAILABLE' // load or catch-up failed, was abandoned, or did not end in time
  | 'SHARD_TOO_LARGE' // for an index
  | 'SHARD_BEHIND' // the query accepts only data that is held, which is older
  | 'SETTINGS_OLD' // a change to be shown was committed under newer settings
  // Projects and models.
  | 'PROJECT_UNKNOWN'
  | 'PROJECT_EXISTS'
  | 'PROJECT_SUSPENDED'
  | 'REGION_REFUSED'
  | 'MODEL_VERSION_UNKNOWN'
  | 'MODEL_VERSION_CHANGED' // the newest version is not the expected one
  | 'MODEL_TUPLES_REFUSED' // stored tuples do not fit the model
  | 'MODEL_NOT_IN_FORCE' // stored, but still pending, or abandoned for a later one
  | 'MODEL_NOT_PENDING' // there is no pending version to abandon
  | 'MODEL_TESTS_FAILED'
  | 'MODEL_GUARD_REFUSED' // an answer would change that must not, or cannot be reported
  // Writes.
  | 'PRECONDITION_FAILED' // a precondition of the write does not hold: nothing was written
  | 'TUPLE_EXISTS' // an update requires that it does not exist: nothing was written
  | 'TUPLE_DIFFERS' // an update requires that it is the same, or does not exist: nothing was written
  | 'TUPLE_MISSING' // an update requires that it exists: nothing was written
  | 'IDEMPOTENCY_KEY_USED' // by another write
  | 'IMPORT_DIFFERS' // the content differs from that received before under its id
  | 'IMPORT_TAKEN_OVER' // a later attempt continues it
  | 'WATCH_OFF' // this service does not allow callers to follow changes
  | 'WATCH_TOO_OLD' // changes after the start are no longer kept
  // The organization.
  | 'ACTION_FORBIDDEN' // the acting user may not do this to the target
  | 'WORKSPACE_UNKNOWN'
  | 'GROUP_UNKNOWN'
  | 'MEMBER_UNKNOWN' // of a workspace or a group
  | 'SLUG_TAKEN'
  | 'INVITATION_UNKNOWN'
  | 'ALREADY_MEMBER'
  | 'PERSONAL_WORKSPACE' // always has exactly one member
  | 'OWNER_FIXED' // the owner changes by transfer only
  | 'MEMBERSHIP_STATE' // its state does not allow this
  | 'INVITATION_STATE' // accepted, revoked or expired
  | 'SEATS_EXHAUSTED';

/** The FIELD_INVALID error. Its message begins with the field, like every message about input. */
export function fieldError(field: string, problem: string): AppError<AuthzReason> {
  return errorWithoutStack<AuthzReason>('FIELD_INVALID', `${field}: ${problem}`, { field });
}
