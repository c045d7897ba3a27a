import { create, toBinary, toJson } from '@bufbuild/protobuf';
import { base64Encode } from '@bufbuild/protobuf/wire';
import { Code, ConnectError } from '@connectrpc/connect';
import { codeToHttpStatus, codeToString } from '@connectrpc/connect/protocol-connect';
import { type ErrorInfo, ErrorInfoSchema } from '../../../gen/google/rpc/error_details_pb.ts';
import { ANSWER_JSON } from '../../../shared/answer-json.ts';
import type { AppError, ErrorData } from '../../../shared/app-error.ts';
import type { HttpExchange } from '../../exchange/http-exchange.ts';
import { REQUEST_ID_HEADER } from '../../request-id.ts';

/** The logical grouping of our reasons in google.rpc.ErrorInfo. */
const ERROR_DOMAIN = 'gatehouse';
const INTERNAL_TEXT = 'internal error';
const JSON_TYPE = 'application/json';

/** How the errors of a service look on the wire. The functions use no `this`, so that they can be exported one by one. */
export type ConnectErrors = {
  /** Whether the service has the reason; others are shown as INTERNAL. O(1). */
  readonly isKnownReason: (reason: string) => boolean;
  /** The Connect code of a reason; `internal` for one that the service does not have. O(1). */
  readonly codeOfReason: (reason: string) => Code;
  /** The label of a reason in metrics and bodies: its Connect code, e.g. "resource_exhausted". */
  readonly codeNameOfReason: (reason: string) => string;
  /** The HTTP status of a reason: that of its code, but 404 for a method that does not exist. */
  readonly httpStatusOfReason: (reason: string) => number;
  /** Makes the error as Connect's handlers serialize it. INTERNAL never carries its own text. */
  readonly connectErrorFromAppError: (error: AppError) => ConnectError;
  /** The body of a unary Connect error: {"code","message","details"} as JSON text. */
  readonly errorBody: (error: AppError) => string;
  /** Answers an HTTP/1.1 unary Connect request with an error. Does nothing if the client has gone. */
  readonly sendConnectError: (exchange: HttpExchange, error: AppError, requestId: string) => void;
};

/** The HTTP status of a unary Connect error; Connect's own table has 400 for failed_precondition. */
export function httpStatusOfCode(code: Code): number {
  return code === Code.FailedPrecondition ? 412 : codeToHttpStatus(code);
}

/** Makes the errors of a service from the one table that gives each of its reasons a code. */
export function createConnectErrors(
  codeByReason: Readonly<Record<string, Code | undefined>>,
): ConnectErrors {
  const codes = new Map(Object.entries(codeByReason));
  const isKnownReason = (reason: string): boolean => codes.has(reason);
  const codeOfReason = (reason: string): Code => codes.get(reason) ?? Code.Internal;
  const codeNameOfReason = (reason: string): string => codeToString(codeOfReason(reason));
  const httpStatusOfReason = (reason: string): number =>
    reason === 'METHOD_UNKNOWN' ? 404 : httpStatusOfCode(codeOfReason(reason));
  const shownOf = (error: AppError): ErrorData =>
    isKnownReason(error.reason) && error.reason !== 'INTERNAL' ? wellFormed(error) : hidden(error);
  const connectErrorFromAppError = (error: AppError): ConnectError => {
    const { reason, message, metadata } = shownOf(error);
    const detail = { desc: ErrorInfoSchema, value: errorInfoOf(reason, metadata) };
    return new ConnectError(message, codeOfReason(reason), undefined, [detail], error);
  };
  const errorBody = (error: AppError): string => {
    const { reason, message, metadata } = shownOf(error);
    return errorText(codeNameOfReason(reason), message, errorInfoOf(reason, metadata));
  };
  return {
    isKnownReason,
    codeOfReason,
    codeNameOfReason,
    httpStatusOfReason,
    connectErrorFromAppError,
    errorBody,
    sendConnectError: (exchange, error, requestId) => {
      const status = httpStatusOfReason(error.reason);
      exchange.send(status, JSON_TYPE, errorBody(error), [REQUEST_ID_HEADER, requestId]);
    },
  };
}

function errorText(code: string, message: string, info: ErrorInfo): string {
  return JSON.stringify({
    code,
    message,
    details: [
      {
        type: ErrorInfoSchema.typeName,
        // In the order of Connect's own serializer, so that both paths make the same bytes.
        debug: toJson(ErrorInfoSchema, info, ANSWER_JSON),
        value: base64Encode(toBinary(ErrorInfoSchema, info), 'std_raw'),
      },
    ],
  });
}

/** Repairs a text that quotes half a surrogate pair of the caller's, which no form of an answer can hold. */
function wellFormed({ reason, message, metadata }: ErrorData): ErrorData {
  return { reason, message: message.toWellFormed(), metadata };
}

/** Hides all of an error but its metadata, and the metadata too unless it was made as INTERNAL. */
function hidden({ reason, metadata }: AppError): ErrorData {
  const kept = reason === 'INTERNAL' ? metadata : {};
  return { reason: 'INTERNAL', message: INTERNAL_TEXT, metadata: kept };
}

function errorInfoOf(reason: string, metadata: Readonly<Record<string, string>>): ErrorInfo {
  return create(ErrorInfoSchema, { reason, domain: ERROR_DOMAIN, metadata: { ...metadata } });
}
