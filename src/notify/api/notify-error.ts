import { create, toBinary, toJson, type DescMessage } from '@bufbuild/protobuf';
import { base64Encode } from '@bufbuild/protobuf/wire';
import { Code } from '@connectrpc/connect';
import { codeToHttpStatus, codeToString } from '@connectrpc/connect/protocol-connect';
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { AppError } from '../../shared/app-error.ts';
import type { ErrorReason } from '../model/notify-reason.ts';
import { unknownEnumIn } from './unknown-enum.ts';

/** The only mapping from the reasons that this service uses to Connect codes. */
const CODE_OF_REASON: Readonly<Record<string, Code | undefined>> = {
  BODY_MALFORMED: Code.InvalidArgument,
  FIELD_INVALID: Code.InvalidArgument,
  FIELD_REQUIRED: Code.InvalidArgument,
  BODY_TOO_LARGE: Code.ResourceExhausted,
  BATCH_TOO_LARGE: Code.ResourceExhausted,
  FIELD_TOO_LARGE: Code.ResourceExhausted,
  BODY_MEMORY_EXHAUSTED: Code.ResourceExhausted,
  BODY_IN_CRUMBS: Code.ResourceExhausted,
  CREDENTIAL_INVALID: Code.Unauthenticated,
  HOST_NOT_ALLOWED: Code.PermissionDenied,
  STREAM_TOKEN_INVALID: Code.Unauthenticated,
  METHOD_UNKNOWN: Code.Unimplemented,
  METHOD_UNIMPLEMENTED: Code.Unimplemented,
  NOTIFICATION_UNKNOWN: Code.NotFound,
  ENDPOINT_UNKNOWN: Code.NotFound,
  ENDPOINT_DISABLED: Code.FailedPrecondition,
  DELIVERY_UNKNOWN: Code.NotFound,
  DELIVERY_SENT: Code.FailedPrecondition,
  DELIVERY_RUNNING: Code.FailedPrecondition,
  CHANNEL_UNAVAILABLE: Code.FailedPrecondition,
  ORIGIN_NOT_ALLOWED: Code.PermissionDenied,
  STREAM_LIMIT: Code.ResourceExhausted,
  STREAMS_DISABLED: Code.Unavailable,
  RESULT_TOO_LARGE: Code.ResourceExhausted,
  QUEUE_FULL: Code.ResourceExhausted,
  STORE_UNAVAILABLE: Code.Unavailable,
  STORE_FULL: Code.Unavailable,
  STORE_READ_ONLY: Code.Unavailable,
  STORE_RIGHTS_MISSING: Code.Unavailable,
  STORE_LOGIN_REFUSED: Code.Unavailable,
  SHUTTING_DOWN: Code.Unavailable,
  DEADLINE_EXCEEDED: Code.DeadlineExceeded,
} satisfies Partial<Record<ErrorReason, Code>>;

const INTERNAL_TEXT = 'internal error';
/** As the authorization service writes them. */
const ERROR_DOMAIN = 'gatehouse';
const ERROR_JSON = { alwaysEmitImplicit: true, useProtoFieldName: true };

/** An error as it goes over the wire: Connect's unary error body with the status of its code. */
export type ErrorAnswer = { readonly status: number; readonly code: string; readonly body: string };

/**
 * Whatever was thrown, as an answer; what is not an AppError says nothing of itself. The detail is a
 * google.rpc.ErrorInfo as Connect's clients read it: type, base64 of its bytes, and `debug` for people.
 */
export function errorAnswer(error: unknown): ErrorAnswer {
  const known = error instanceof AppError ? CODE_OF_REASON[error.reason] : undefined;
  const code = known ?? Code.Internal;
  const isKnown = known !== undefined && error instanceof AppError;
  const reason = isKnown ? error.reason : 'INTERNAL';
  const info = create(ErrorInfoSchema, {
    reason,
    domain: ERROR_DOMAIN,
    metadata: isKnown ? { ...error.metadata } : {},
  });
  const body = JSON.stringify({
    code: codeToString(code),
    message: isKnown ? error.message : INTERNAL_TEXT,
    details: [
      {
        type: ErrorInfoSchema.typeName,
        debug: toJson(ErrorInfoSchema, info, ERROR_JSON),
        value: base64Encode(toBinary(ErrorInfoSchema, info), 'std_raw'),
      },
    ],
  });
  const status = reason === 'METHOD_UNKNOWN' ? 404 : httpStatusOf(code);
  return { status, code: codeToString(code), body };
}

/** As the authorization service answers: 412, where Connect's table has 400. */
function httpStatusOf(code: Code): number {
  return code === Code.FailedPrecondition ? 412 : codeToHttpStatus(code);
}

/** FIELD_INVALID that names the field. */
export function invalidField(field: string, problem: string): AppError {
  return new AppError('FIELD_INVALID', `${field}: ${problem}`, { field });
}

/** A longer body is not read a second time to say more of it. */
const READ_AGAIN_BYTES_MAX = 65_536;

/**
 * BODY_MALFORMED for what protobuf's JSON reader threw while it read `body` as an `input`. Names the field or the
 * unknown key, if the reader does; for a value that an enum does not have it is FIELD_INVALID, which says what there is. The reader's
 * text is the cause alone: it quotes values, of secrets, too.
 */
export function malformedJson(input: DescMessage, error: unknown, body: Uint8Array): AppError {
  const text = error instanceof Error ? error.message : '';
  if (text.startsWith('cannot decode enum ') && body.length <= READ_AGAIN_BYTES_MAX) {
    const unknown = unknownEnumIn(input, JSON.parse(new TextDecoder().decode(body)));
    if (unknown !== undefined) return invalidField(unknown.field, unknown.problem);
  }
  const named = /^cannot decode (?:field|oneof) (?:\S+\.)?(\w+) from JSON/.exec(text)?.[1];
  const unknownKey = /: key "([^"]{1,100})" is unknown$/.exec(text)?.[1];
  const problem = `the body is no JSON of ${input.typeName}`;
  if (unknownKey !== undefined) {
    const detail = `${problem}; it has no field ${unknownKey}`;
    return new AppError('BODY_MALFORMED', detail, { field: unknownKey }, error);
  }
  if (named === undefined) return new AppError('BODY_MALFORMED', problem, {}, error);
  return new AppError('BODY_MALFORMED', `${problem}; look at ${named}`, { field: named }, error);
}
