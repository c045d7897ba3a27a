import { Code } from '@connectrpc/connect';
import { codeToHttpStatus, codeToString } from '@connectrpc/connect/protocol-connect';
import { AppError, type ErrorReason } from '../../shared/app-error.ts';

/** The only mapping from the reasons that this service uses to Connect codes. */
const CODE_OF_REASON: Readonly<Partial<Record<ErrorReason, Code>>> = {
  BODY_MALFORMED: Code.InvalidArgument,
  FIELD_INVALID: Code.InvalidArgument,
  FIELD_REQUIRED: Code.InvalidArgument,
  BODY_TOO_LARGE: Code.ResourceExhausted,
  CREDENTIAL_INVALID: Code.Unauthenticated,
  STREAM_TOKEN_INVALID: Code.Unauthenticated,
  METHOD_UNKNOWN: Code.Unimplemented,
  NOTIFICATION_UNKNOWN: Code.NotFound,
  ENDPOINT_UNKNOWN: Code.NotFound,
  CHANNEL_UNAVAILABLE: Code.FailedPrecondition,
  ORIGIN_NOT_ALLOWED: Code.PermissionDenied,
  STREAM_LIMIT: Code.ResourceExhausted,
  RESULT_TOO_LARGE: Code.ResourceExhausted,
  QUEUE_FULL: Code.ResourceExhausted,
  STORE_UNAVAILABLE: Code.Unavailable,
  SHUTTING_DOWN: Code.Unavailable,
  DEADLINE_EXCEEDED: Code.DeadlineExceeded,
};

const INTERNAL_TEXT = 'internal error';

/** An error as it goes over the wire: Connect's unary error body with the status of its code. */
export type ErrorAnswer = { readonly status: number; readonly code: string; readonly body: string };

/** Whatever was thrown, as an answer; what is not an AppError says nothing of itself. */
export function errorAnswer(error: unknown): ErrorAnswer {
  const known = error instanceof AppError ? CODE_OF_REASON[error.reason] : undefined;
  const code = known ?? Code.Internal;
  const isKnown = known !== undefined && error instanceof AppError;
  const reason = isKnown ? error.reason : 'INTERNAL';
  const body = JSON.stringify({
    code: codeToString(code),
    message: isKnown ? error.message : INTERNAL_TEXT,
    details: [
      {
        type: 'google.rpc.ErrorInfo',
        debug: { reason, domain: 'gatehouse', metadata: isKnown ? error.metadata : {} },
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
