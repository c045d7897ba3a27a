/** Why a message is refused before it is built. */
export type DecodingReason =
  | 'BODY_MALFORMED' // not JSON or protobuf of the message, nested too deep, numbers of too many digits
  | 'BATCH_TOO_LARGE' // metadata.field, .limit
  | 'FIELD_TOO_LARGE'; // the same of a text or of what a field holds
