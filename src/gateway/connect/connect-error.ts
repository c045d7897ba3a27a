import { create, toBinary, toJson, type DescMessage } from '@bufbuild/protobuf';
import { base64Encode } from '@bufbuild/protobuf/wire';
import { Code, ConnectError } from '@connectrpc/connect';
import { codeToHttpStatus, codeToString } from '@connectrpc/connect/protocol-connect';
import { ErrorInfoSchema, type ErrorInfo } from '../../gen/google/rpc/error_details_pb.ts';
import type { HttpExchange } from '../../http/http-exchange.ts';
import { AppError } from '../../shared/app-error.ts';
import type { ConnectReason } from './connect-reason.ts';

/**
 * The only mapping from reasons to Connect codes; the HTTP status follows from the code. It has the reasons of
 * all rooms, and no other ones: authz/error-reasons.ts unites them and does not compile otherwise.
 */
export const CODE_OF_REASON = {
  BODY_MALFORMED: Code.InvalidArgument,
  FIELD_INVALID: Code.InvalidArgument,
  FIELD_REQUIRED: Code.InvalidArgument,
  BODY_TOO_LARGE: Code.ResourceExhausted,
  FIELD_TOO_LARGE: Code.ResourceExhausted,
  BODY_MEMORY_EXHAUSTED: Code.ResourceExhausted,
  BODY_IN_CRUMBS: Code.ResourceExhausted,
  MODEL_INVALID: Code.InvalidArgument,
  ASSERTIONS_INVALID: Code.InvalidArgument,
  TOKEN_INVALID: Code.InvalidArgument,
  NAMESPACE_RESERVED: Code.InvalidArgument,
  CREDENTIAL_INVALID: Code.Unauthenticated,
  CREDENTIAL_REVOKED: Code.Unauthenticated,
  KEYS_UNAVAILABLE: Code.Unavailable,
  SCOPE_REFUSED: Code.PermissionDenied,
  RATE_LIMITED: Code.ResourceExhausted,
  HOST_NOT_ALLOWED: Code.PermissionDenied,
  ADMIN_SECRET_INVALID: Code.PermissionDenied,
  ADMIN_DISABLED: Code.Unimplemented,
  METHOD_UNKNOWN: Code.Unimplemented,
  METHOD_UNIMPLEMENTED: Code.Unimplemented,
  PROJECT_UNKNOWN: Code.NotFound,
  PROJECT_EXISTS: Code.AlreadyExists,
  PROJECT_SUSPENDED: Code.FailedPrecondition,
  REGION_REFUSED: Code.FailedPrecondition,
  MODEL_VERSION_UNKNOWN: Code.NotFound,
  MODEL_VERSION_CHANGED: Code.FailedPrecondition,
  TUPLE_NOT_ADMITTED: Code.InvalidArgument,
  RELATION_UNKNOWN: Code.InvalidArgument,
  MODEL_TUPLES_REFUSED: Code.FailedPrecondition,
  MODEL_NOT_IN_FORCE: Code.FailedPrecondition,
  MODEL_NOT_PENDING: Code.FailedPrecondition,
  MODEL_TESTS_FAILED: Code.FailedPrecondition,
  MODEL_GUARD_REFUSED: Code.FailedPrecondition,
  WATCH_OFF: Code.FailedPrecondition,
  WATCH_TOO_OLD: Code.FailedPrecondition,
  ACTION_FORBIDDEN: Code.PermissionDenied,
  WORKSPACE_UNKNOWN: Code.NotFound,
  GROUP_UNKNOWN: Code.NotFound,
  MEMBER_UNKNOWN: Code.NotFound,
  SLUG_TAKEN: Code.AlreadyExists,
  INVITATION_UNKNOWN: Code.NotFound,
  ALREADY_MEMBER: Code.AlreadyExists,
  PERSONAL_WORKSPACE: Code.FailedPrecondition,
  OWNER_FIXED: Code.FailedPrecondition,
  MEMBERSHIP_STATE: Code.FailedPrecondition,
  INVITATION_STATE: Code.FailedPrecondition,
  PRECONDITION_FAILED: Code.FailedPrecondition,
  IDEMPOTENCY_KEY_USED: Code.AlreadyExists,
  IMPORT_DIFFERS: Code.FailedPrecondition,
  IMPORT_TAKEN_OVER: Code.Aborted,
  BUDGET_EXHAUSTED: Code.ResourceExhausted,
  SEATS_EXHAUSTED: Code.ResourceExhausted,
  BATCH_TOO_LARGE: Code.ResourceExhausted,
  RESULT_TOO_LARGE: Code.ResourceExhausted,
  QUEUE_FULL: Code.ResourceExhausted,
  SHARD_TOO_LARGE: Code.ResourceExhausted,
  STORE_UNAVAILABLE: Code.Unavailable,
  STORE_FULL: Code.Unavailable,
  STORE_READ_ONLY: Code.Unavailable,
  STORE_RIGHTS_MISSING: Code.Unavailable,
  STORE_LOGIN_REFUSED: Code.Unavailable,
  WRITE_OUTCOME_UNKNOWN: Code.Unavailable,
  SHARD_UNAVAILABLE: Code.Unavailable,
  SHARD_BEHIND: Code.Unavailable,
  SETTINGS_OLD: Code.Unavailable,
  WORKER_LOST: Code.Unavailable,
  REQUEST_REFUSED: Code.Internal,
  SHUTTING_DOWN: Code.Unavailable,
  DEADLINE_EXCEEDED: Code.DeadlineExceeded,
  CANCELLED: Code.Canceled,
  CONFIG_INVALID: Code.Internal,
  INTERNAL: Code.Internal,
} as const satisfies Readonly<Record<string, Code>>;

const CODES: ReadonlyMap<string, Code> = new Map(Object.entries(CODE_OF_REASON));

/** The logical grouping of our reasons in google.rpc.ErrorInfo. */
export const ERROR_DOMAIN = 'gatehouse';

const INTERNAL_TEXT = 'internal error';
/** Of the readable form of details: every field is emitted, as in answers. */
export const ERROR_JSON = { alwaysEmitImplicit: true, useProtoFieldName: true };
const JSON_TYPE = 'application/json';

/** The Connect code of a reason; `internal` for what is none of ours. O(1). */
export function codeOfReason(reason: string): Code {
  return CODES.get(reason) ?? Code.Internal;
}

/** The HTTP status of a unary Connect error; Connect's own table has 400 for failed_precondition. */
export function httpStatusOfCode(code: Code): number {
  return code === Code.FailedPrecondition ? 412 : codeToHttpStatus(code);
}

/** The HTTP status of a reason: that of its code, but 404 for a method that does not exist. */
export function httpStatusOfReason(reason: string): number {
  return reason === 'METHOD_UNKNOWN' ? 404 : httpStatusOfCode(codeOfReason(reason));
}

/** The label of a reason in metrics and bodies: its Connect code, e.g. "resource_exhausted". */
export function codeNameOfReason(reason: string): string {
  return codeToString(codeOfReason(reason));
}

/** The error as Connect's handlers serialize it. INTERNAL never carries its own text. */
export function connectErrorFromAppError(error: AppError): ConnectError {
  const detail = { desc: ErrorInfoSchema, value: errorInfoOf(error) };
  return new ConnectError(textOf(error), codeOfReason(error.reason), undefined, [detail], error);
}

/** The body of a unary Connect error: {"code","message","details"} as JSON text. */
export function errorBody(error: AppError): string {
  const info = errorInfoOf(error);
  return JSON.stringify({
    code: codeNameOfReason(error.reason),
    message: textOf(error),
    details: [
      {
        type: ErrorInfoSchema.typeName,
        // In the order of Connect's own serializer, so that both paths say the same bytes.
        debug: toJson(ErrorInfoSchema, info, ERROR_JSON),
        value: base64Encode(toBinary(ErrorInfoSchema, info), 'std_raw'),
      },
    ],
  });
}

/** Answers an HTTP/1.1 unary Connect request with an error. Does nothing if the client has gone. */
export function sendConnectError(exchange: HttpExchange, error: AppError, requestId: string): void {
  const status = httpStatusOfReason(error.reason);
  exchange.send(status, JSON_TYPE, errorBody(error), ['x-request-id', requestId]);
}

/**
 * Turns whatever a call failed with into an AppError, or returns it unchanged if it is a
 * ConnectError that a handler or the protocol chose itself (its text was written for the caller).
 * Anything unforeseen becomes INTERNAL with the original as its cause: report that one.
 */
export function foreseenError(
  error: unknown,
  limits: { readMaxBytes: number },
): AppError | ConnectError {
  if (error instanceof AppError) return error;
  if (!(error instanceof ConnectError)) return unforeseen(error);
  const text = error.rawMessage;
  if (error.code === Code.DeadlineExceeded && text === 'the operation timed out') {
    return deadlineExceeded();
  }
  if (error.code === Code.Internal && text.startsWith('parse binary: ')) {
    const problem = text.slice('parse binary: '.length);
    return new AppError<ConnectReason>(
      'BODY_MALFORMED',
      `the message cannot be decoded: ${problem}`,
      {},
      error,
    );
  }
  if (error.code === Code.Internal && text.startsWith('serialize ')) return unforeseen(error);
  if (error.code === Code.InvalidArgument && text.startsWith('cannot decode ')) {
    return malformedJson(error);
  }
  if (error.code === Code.ResourceExhausted && text.includes('configured readMaxBytes')) {
    const metadata = { limit_bytes: String(limits.readMaxBytes) };
    const problem = `the body is larger than ${limits.readMaxBytes} bytes`;
    return new AppError<ConnectReason>('BODY_TOO_LARGE', problem, metadata, error);
  }
  return error;
}

/** The error of a change whose deadline, set by the caller, has passed before it said what came of it. */
export function outcomeUnknown(): AppError {
  return new AppError<ConnectReason>(
    'WRITE_OUTCOME_UNKNOWN',
    'the deadline of the request passed while the change was under way: it may be applied or not',
  );
}

/** The error of a call whose deadline, set by the caller, has passed. */
export function deadlineExceeded(): AppError {
  return new AppError<ConnectReason>('DEADLINE_EXCEEDED', 'the deadline of the request has passed');
}

/**
 * BODY_MALFORMED for an error of protobuf's JSON reader while it read a `desc`. Names the field:
 * the one that the reader names, the unknown key, or else the only one of the type that it names.
 */
export function malformedJson(error: Error, desc?: DescMessage): AppError {
  const text = error instanceof ConnectError ? error.rawMessage : error.message;
  const named = /^cannot decode (?:field|oneof) (?:\S+\.)?(\w+) from JSON/.exec(text)?.[1];
  const unknownKey = /: key "([^"]{1,100})" is unknown$/.exec(text)?.[1];
  const typeName = /^cannot decode (?:message |enum )?(\S+) from JSON/.exec(text)?.[1];
  const field = named ?? unknownKey ?? (desc && typeName && onlyFieldOfType(desc, typeName));
  if (!field) return new AppError<ConnectReason>('BODY_MALFORMED', text, {}, error);
  const message = text.includes(field) ? text : `${field}: ${text}`;
  return new AppError<ConnectReason>('BODY_MALFORMED', message, { field }, error);
}

const STRUCT_TYPE = 'google.protobuf.Struct';
/** What lies within a Struct, under keys that the reader does not tell. */
const IN_STRUCTS = new Set(['google.protobuf.Value', 'google.protobuf.ListValue']);

function onlyFieldOfType(desc: DescMessage, typeName: string): string | undefined {
  const found = new Set<string>();
  const visited = new Set<DescMessage>();
  const visit = (message: DescMessage, prefix: string): void => {
    if (visited.has(message)) return;
    visited.add(message);
    for (const field of message.fields) {
      const isStruct = field.message?.typeName === STRUCT_TYPE;
      const isOfType = (field.message ?? field.enum)?.typeName === typeName;
      if (isOfType || (isStruct && IN_STRUCTS.has(typeName))) found.add(prefix + field.name);
      else if (field.message !== undefined && !isStruct)
        visit(field.message, `${prefix}${field.name}.`);
    }
  };
  visit(desc, '');
  const [only] = found;
  return found.size === 1 ? only : undefined;
}

function unforeseen(error: unknown): AppError {
  return new AppError<ConnectReason>('INTERNAL', INTERNAL_TEXT, {}, error);
}

function textOf(error: AppError): string {
  return error.reason === 'INTERNAL' ? INTERNAL_TEXT : error.message;
}

function errorInfoOf(error: AppError): ErrorInfo {
  return create(ErrorInfoSchema, {
    reason: error.reason,
    domain: ERROR_DOMAIN,
    metadata: { ...error.metadata },
  });
}
