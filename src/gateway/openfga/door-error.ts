import { internalError } from '../../http/connect/protocol/call-errors.ts';
import { codeNameOfReason, httpStatusOfReason } from '../connect/connect-error.ts';

/** An answer of OpenFGA's API that is an error: a status, and the code that its clients know. */
export class DoorError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.status = status;
    this.code = code;
  }
}

/** The error of a request with a forbidden value: 400 `validation_error`. */
export function invalid(message: string): DoorError {
  return new DoorError(400, 'validation_error', message);
}

/** The error of a feature that this API lacks here: 501 `unimplemented`. */
export function unimplemented(message: string): DoorError {
  return new DoorError(501, 'unimplemented', message);
}

/** No store has the id, or none that the caller may know of. */
export function storeNotFound(): DoorError {
  return new DoorError(404, 'store_id_not_found', 'Store ID not found');
}

type Row = readonly [status: number, code: string];

const VALIDATION: Row = [400, 'validation_error'];
const LIMIT: Row = [400, 'exceeded_entity_limit'];
const BUSY: Row = [429, 'rate_limit_exceeded'];

/** Our reasons that OpenFGA's clients know; of the rest they get the status and the name of the Connect code. */
const ROWS: ReadonlyMap<string, Row> = new Map([
  ['FIELD_INVALID', VALIDATION],
  ['FIELD_REQUIRED', VALIDATION],
  ['BODY_MALFORMED', VALIDATION],
  ['NAMESPACE_RESERVED', VALIDATION],
  ['TUPLE_NOT_ADMITTED', VALIDATION],
  ['RELATION_UNKNOWN', VALIDATION],
  ['MODEL_INVALID', [400, 'invalid_authorization_model']],
  ['MODEL_TUPLES_REFUSED', [400, 'invalid_authorization_model']],
  ['BODY_TOO_LARGE', LIMIT],
  ['FIELD_TOO_LARGE', LIMIT],
  ['BATCH_TOO_LARGE', LIMIT],
  ['RESULT_TOO_LARGE', LIMIT],
  ['TUPLE_EXISTS', [400, 'write_failed_due_to_invalid_input']],
  ['TUPLE_MISSING', [400, 'write_failed_due_to_invalid_input']],
  ['TUPLE_DIFFERS', [409, 'write_failed_due_to_invalid_input']],
  ['PROJECT_UNKNOWN', [404, 'store_id_not_found']],
  ['PROJECT_SUSPENDED', [403, 'forbidden']],
  ['SCOPE_REFUSED', [403, 'forbidden']],
  ['ACTION_FORBIDDEN', [403, 'forbidden']],
  ['CREDENTIAL_INVALID', [401, 'unauthenticated']],
  ['CREDENTIAL_REVOKED', [401, 'unauthenticated']],
  ['RATE_LIMITED', BUSY],
  ['BUDGET_EXHAUSTED', BUSY],
  ['QUEUE_FULL', BUSY],
  ['BODY_MEMORY_EXHAUSTED', BUSY],
]);

/** Seconds after which a caller that was refused for too much at once may come again. */
const RETRY_AFTER_SECONDS = 1;

/** The error in the form of OpenFGA's API; an unforeseen one shows nothing of itself. */
export function doorErrorOf(error: unknown): DoorError {
  if (error instanceof DoorError) return error;
  const shown = internalError(error);
  const { reason, message } = shown;
  if (reason === 'INTERNAL') return internal(shown.cause ?? shown);
  const [status, code] = ROWS.get(reason) ?? [httpStatusOfReason(reason), codeNameOfReason(reason)];
  if (status === 500) return internal(error);
  return new DoorError(status, code, message, error);
}

function internal(cause: unknown): DoorError {
  return new DoorError(500, 'internal_error', 'Internal Server Error', cause);
}

/** Headers of the answer to it: name, value, name, value… */
export function headersOf({ status }: DoorError): readonly string[] {
  return status === 429 || status === 503 ? ['retry-after', String(RETRY_AFTER_SECONDS)] : [];
}

/** `{code, message}` as JSON. */
export function bodyOf({ code, message }: DoorError): string {
  return JSON.stringify({ code, message });
}
