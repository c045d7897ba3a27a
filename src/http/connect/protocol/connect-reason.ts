/** Why a call of the Connect protocol, gRPC or gRPC-Web is refused before it reaches its method, or ends. */
export type ConnectReason =
  | 'BODY_MALFORMED' // not JSON or protobuf of the message, unknown field, wrong type
  | 'BODY_TOO_LARGE'
  | 'RESULT_TOO_LARGE'
  | 'METHOD_UNKNOWN'
  | 'METHOD_UNIMPLEMENTED'
  | 'DEADLINE_EXCEEDED'
  | 'WRITE_OUTCOME_UNKNOWN' // the deadline passed while a change was under way
  | 'CANCELLED'
  | 'INTERNAL';
