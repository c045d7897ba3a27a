/**
 * Every reason for which a call can fail. The reason decides the Connect code (one table in
 * gateway/connect-error.ts) and whether a retry can help; the text is for people.
 */
export type ErrorReason =
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
