/** Why a use case refuses or fails, besides what the domain and the store say. */
export type ServicesReason =
  | 'NAMESPACE_RESERVED' // `seat` through WriteRelationTuples
  | 'TUPLE_NOT_ADMITTED' // by the project's model, which says who may be a subject
  | 'RELATION_UNKNOWN' // to the typed model in force, in a project that refuses such inserts
  | 'PROJECT_UNKNOWN'
  | 'PROJECT_EXISTS'
  | 'PROJECT_SUSPENDED'
  | 'MODEL_VERSION_UNKNOWN'
  | 'MODEL_VERSION_CHANGED' // the newest version is not the expected one
  | 'MODEL_TUPLES_REFUSED' // stored tuples do not fit it
  | 'MODEL_NOT_IN_FORCE' // stored, but still pending, or given up by a later one
  | 'MODEL_NOT_PENDING' // there is none to give up
  | 'MODEL_TESTS_FAILED'
  | 'MODEL_GUARD_REFUSED' // an answer would change that must not, or cannot be reported
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
  | 'SEATS_EXHAUSTED'
  | 'PRECONDITION_FAILED' // what a write was to depend on does not hold: nothing was written
  | 'TUPLE_EXISTS' // an update asks that it does not: nothing was written
  | 'TUPLE_DIFFERS' // an update asks that it does not, or is the same: nothing was written
  | 'TUPLE_MISSING' // an update asks that it exists: nothing was written
  | 'IDEMPOTENCY_KEY_USED' // by another write
  | 'IMPORT_DIFFERS' // what came is not what came before under its id
  | 'IMPORT_TAKEN_OVER' // a later attempt goes on with it
  | 'WATCH_OFF' // this service lets nobody follow changes
  | 'WATCH_TOO_OLD' // changes behind the start are no longer kept
  | 'BATCH_TOO_LARGE'
  | 'RESULT_TOO_LARGE'
  | 'QUEUE_FULL'
  | 'STORE_UNAVAILABLE'
  | 'WRITE_OUTCOME_UNKNOWN'
  | 'SHUTTING_DOWN'
  | 'DEADLINE_EXCEEDED'
  | 'CANCELLED'
  | 'INTERNAL';
