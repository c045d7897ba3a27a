/** Why a use case refuses or fails, besides what the domain and the store say. */
export type ServicesReason =
  | 'NAMESPACE_RESERVED' // `seat` through WriteRelationTuples
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
  | 'SEATS_EXHAUSTED'
  | 'PRECONDITION_FAILED' // what a write was to depend on does not hold: nothing was written
  | 'IDEMPOTENCY_KEY_USED' // by another write
  | 'IMPORT_DIFFERS' // what came is not what came before under its id
  | 'IMPORT_TAKEN_OVER' // a later attempt goes on with it
  | 'BATCH_TOO_LARGE'
  | 'RESULT_TOO_LARGE'
  | 'QUEUE_FULL'
  | 'STORE_UNAVAILABLE'
  | 'WRITE_OUTCOME_UNKNOWN'
  | 'SHUTTING_DOWN'
  | 'DEADLINE_EXCEEDED'
  | 'CANCELLED'
  | 'INTERNAL';
