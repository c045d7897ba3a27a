/**
 * Every reason for which a call of the authorization service can fail. The reason decides the Connect
 * code (one table in gateway/connect/connect-error.ts) and whether a retry can help; the text is for people.
 */
export type ServiceReason =
  // The caller's input.
  | 'BODY_MALFORMED' // not JSON or protobuf of the message, unknown field, wrong type
  | 'FIELD_INVALID' // metadata.field names the field
  | 'FIELD_REQUIRED'
  | 'BODY_TOO_LARGE'
  | 'MODEL_INVALID' // metadata.path: JSON path into model_json
  | 'TOKEN_INVALID' // malformed, foreign shard or epoch, or beyond the head
  | 'NAMESPACE_RESERVED' // `seat` through WriteRelationTuples
  // Who asks.
  | 'CREDENTIAL_INVALID'
  | 'ADMIN_SECRET_INVALID'
  | 'ADMIN_DISABLED'
  | 'METHOD_UNKNOWN'
  | 'METHOD_UNIMPLEMENTED'
  // State.
  | 'PROJECT_UNKNOWN'
  | 'PROJECT_EXISTS'
  | 'PROJECT_SUSPENDED'
  | 'REGION_REFUSED'
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
  // Limits.
  | 'BUDGET_EXHAUSTED'
  | 'SEATS_EXHAUSTED'
  | 'BATCH_TOO_LARGE'
  | 'RESULT_TOO_LARGE'
  | 'QUEUE_FULL'
  | 'SHARD_TOO_LARGE'
  // Passing trouble.
  | 'STORE_UNAVAILABLE'
  | 'WRITE_OUTCOME_UNKNOWN'
  | 'SHARD_UNAVAILABLE' // load or catch-up failed or did not end in time
  | 'WORKER_LOST'
  | 'REQUEST_REFUSED' // this very request ended a worker before
  | 'SHUTTING_DOWN'
  | 'DEADLINE_EXCEEDED'
  | 'CANCELLED'
  // The operator's settings; never on the wire.
  | 'CONFIG_INVALID'
  | 'INTERNAL';

/**
 * Reasons of the workflow runner alone. On its wire a reason is spelled in lower case
 * (`run_not_found`); runner/api/error-answer.ts holds the only mapping to statuses.
 */
export type RunnerReason =
  | 'INVALID_JSON'
  | 'INVALID_REQUEST' // metadata.field names the field
  | 'UNAUTHORIZED'
  | 'INVALID_SIGNATURE'
  | 'HOST_NOT_ALLOWED'
  | 'ORIGIN_NOT_ALLOWED'
  | 'NOT_FOUND'
  | 'RUN_NOT_FOUND'
  | 'WORKFLOW_NOT_FOUND'
  | 'ARTIFACT_NOT_FOUND'
  | 'SECRET_NOT_FOUND'
  | 'VARIABLE_NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'RUN_NOT_CANCELLABLE'
  | 'RUN_NOT_FINISHED' // rerun or removal of a run that is still going on
  | 'AMBIGUOUS_WORKFLOW'
  | 'DUPLICATE_ARTIFACT'
  | 'SYNC_IN_PROGRESS'
  | 'IDEMPOTENCY_CONFLICT' // the key was used with another body
  | 'BACKEND_READ_ONLY'
  | 'LEASE_FAILED' // the remote branch moved since it was last seen
  | 'SYNC_DISABLED'
  | 'WEBHOOK_SECRET_MISSING'
  | 'REMOTE_MISSING' // no remote or no credentials for the code host
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'RANGE_NOT_SATISFIABLE' // metadata.size: bytes of the whole
  | 'INVALID_INPUTS' // metadata: one entry an input
  | 'INVALID_WORKFLOW'
  | 'INVALID_NAME'
  | 'INVALID_VALUE'
  | 'INVALID_REF'
  | 'NOTHING_TO_PUSH'
  | 'GIT_FAILED' // metadata.command, metadata.exitCode; git's words are in the cause
  | 'TOO_MANY_SUBSCRIBERS'
  | 'UPSTREAM_ERROR'
  | 'BACKEND_UNAVAILABLE'
  | 'DISK_FULL'; // less than the floor is free

/** Reasons of the notification service alone. */
export type NotifyReason =
  | 'NOTIFICATION_UNKNOWN'
  | 'ENDPOINT_UNKNOWN'
  | 'CHANNEL_UNAVAILABLE'
  | 'STREAM_TOKEN_INVALID'
  | 'STREAM_LIMIT'
  | 'STREAMS_DISABLED';

export type ErrorReason = ServiceReason | RunnerReason | NotifyReason;

/** What an AppError looks like on another thread: plain data, rebuilt with `errorFromData`. */
export type ErrorData = {
  readonly reason: ErrorReason;
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
};

/** The only error class of the project. `cause` is for the log and never leaves the process. */
export class AppError extends Error {
  readonly reason: ErrorReason;
  readonly metadata: Readonly<Record<string, string>>;

  constructor(
    reason: ErrorReason,
    message: string,
    metadata: Readonly<Record<string, string>> = {},
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'AppError';
    this.reason = reason;
    this.metadata = metadata;
  }
}

/** The plain form of any thrown value; anything that is not an AppError becomes INTERNAL without its text. */
export function errorToData(error: unknown): ErrorData {
  if (error instanceof AppError) {
    return { reason: error.reason, message: error.message, metadata: error.metadata };
  }
  return { reason: 'INTERNAL', message: 'internal error', metadata: {} };
}

/** The AppError of `data`, rebuilt by reason on the thread that received it. */
export function errorFromData(data: ErrorData): AppError {
  return new AppError(data.reason, data.message, data.metadata);
}

/** FIELD_INVALID that names the field first, as every message about input does. */
export function fieldError(field: string, problem: string): AppError {
  return new AppError('FIELD_INVALID', `${field}: ${problem}`, { field });
}
