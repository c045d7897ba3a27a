import { errorWithoutStack, type AppError } from '../shared/app-error.ts';
import type { SharedReason } from '../shared/reasons.ts';

/**
 * Every reason for which a call of the authorization service can fail.
 * gateway/connect/connect-error.ts holds the only mapping to codes.
 */
export type AuthzReason =
  | SharedReason
  // Input.
  | 'MODEL_INVALID' // metadata.path: JSON path into model_json
  | 'TOKEN_INVALID' // malformed, foreign shard or epoch, or beyond the head
  | 'ASSERTIONS_INVALID' // metadata: field, line, column
  | 'NAMESPACE_RESERVED' // `seat`: its tuples are written by seats alone
  | 'TUPLE_NOT_ADMITTED' // by the project's model, which says who may be a subject
  | 'RELATION_UNKNOWN' // to the typed model in force, in a project that refuses such queries or inserts
  | 'EXPORT_CUT' // the last line of an export is missing
  | 'EXPORT_ALTERED' // what came is not what its last line says
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
  | 'REQUEST_REFUSED' // this very request ended a worker before
  | 'SHARD_UNAVAILABLE' // load or catch-up failed, was given up, or did not end in time
  | 'SHARD_TOO_LARGE' // for an index
  | 'SHARD_BEHIND' // to be answered only from what is held, which is older
  | 'SETTINGS_OLD' // a change to be shown was committed under newer settings
  // Projects and models.
  | 'PROJECT_UNKNOWN'
  | 'PROJECT_EXISTS'
  | 'PROJECT_SUSPENDED'
  | 'REGION_REFUSED'
  | 'MODEL_VERSION_UNKNOWN'
  | 'MODEL_VERSION_CHANGED' // the newest version is not the expected one
  | 'MODEL_TUPLES_REFUSED' // stored tuples do not fit it
  | 'MODEL_NOT_IN_FORCE' // stored, but still pending, or given up by a later one
  | 'MODEL_NOT_PENDING' // there is none to give up
  | 'MODEL_TESTS_FAILED'
  | 'MODEL_GUARD_REFUSED' // an answer would change that must not, or cannot be reported
  // Writes.
  | 'PRECONDITION_FAILED' // what a write was to depend on does not hold: nothing was written
  | 'TUPLE_EXISTS' // an update asks that it does not: nothing was written
  | 'TUPLE_DIFFERS' // an update asks that it does not, or is the same: nothing was written
  | 'TUPLE_MISSING' // an update asks that it exists: nothing was written
  | 'IDEMPOTENCY_KEY_USED' // by another write
  | 'IMPORT_DIFFERS' // what came is not what came before under its id
  | 'IMPORT_TAKEN_OVER' // a later attempt goes on with it
  | 'WATCH_OFF' // this service lets nobody follow changes
  | 'WATCH_TOO_OLD' // changes behind the start are no longer kept
  // The organization.
  | 'ACTION_FORBIDDEN' // the acting user may not do this to the target
  | 'WORKSPACE_UNKNOWN'
  | 'GROUP_UNKNOWN'
  | 'MEMBER_UNKNOWN' // of a workspace or a group
  | 'SLUG_TAKEN'
  | 'INVITATION_UNKNOWN'
  | 'ALREADY_MEMBER'
  | 'PERSONAL_WORKSPACE' // has one member for ever
  | 'OWNER_FIXED' // the owner changes by transfer only
  | 'MEMBERSHIP_STATE' // not a state from which this can be done
  | 'INVITATION_STATE' // accepted, revoked or expired
  | 'SEATS_EXHAUSTED';

/** FIELD_INVALID that names the field first, as every message about input does. */
export function fieldError(field: string, problem: string): AppError<AuthzReason> {
  return errorWithoutStack<AuthzReason>('FIELD_INVALID', `${field}: ${problem}`, { field });
}
