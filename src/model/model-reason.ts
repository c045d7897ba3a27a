/** Why input is no value of the domain. */
export type ModelReason =
  | 'FIELD_INVALID' // metadata.field names the field
  | 'FIELD_REQUIRED'
  | 'MODEL_INVALID' // metadata.path: JSON path into model_json
  | 'TOKEN_INVALID' // malformed, foreign shard or epoch, or beyond the head
  | 'NAMESPACE_RESERVED' // `seat`: its tuples are written by seats alone
  | 'BATCH_TOO_LARGE'
  | 'SLUG_TAKEN';
