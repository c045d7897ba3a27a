import type { CallFailure } from '../../http/connect/outgoing-error.ts';
import { internalError } from '../../http/connect/protocol/call-errors.ts';
import type { HttpExchange } from '../../http/exchange/http-exchange.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../../http/request-id.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { TupleExport } from '../../services/bulk/tuple-export.ts';
import type { TupleImport } from '../../services/bulk/tuple-import.ts';
import type { TupleWatch } from '../../services/watch/tuple-watch.ts';
import { AppError } from '../../shared/app-error.ts';
import type { AuthorizeResult, Credential } from '../callers/caller.ts';
import { mustAdmit, type OnRefused } from '../callers/guarded-service.ts';
import type { TargetedRule } from '../callers/method-rules.ts';
import { errorBody, sendConnectError } from '../connect/connect-error.ts';
import { finishWith, StalledError } from './slow-reader.ts';

const SERVICE = 'gatehouse.v1.TupleService';

/** Parts that the routes need besides the server. */
export type TupleRoutes = {
  readonly tupleExport: TupleExport;
  readonly tupleImport: TupleImport;
  readonly tupleWatch: TupleWatch;
  /** Length of a line of an import, in bytes. */
  readonly bodyBytesMax: number;
  /** A reader who takes nothing of a stream for this long, in ms, gets an error and is released. */
  readonly stallMs: number;
  /** Callback for each of them. */
  readonly onStalled: (method: 'StreamTuples' | 'Watch') => void;
};

/** Parts that a gateway adds: null while the service starts. */
export type TupleRoutesParts = TupleRoutes & {
  /** Finds the caller by the `Authorization` header, and counts the call. */
  readonly admit: (authorization: string) => AuthorizeResult | Promise<AuthorizeResult>;
  readonly onOutOfScope: OnRefused;
  readonly report: (failure: CallFailure) => void;
};

/** A call of a route that was let in. */
export type TupleCall = {
  readonly exchange: HttpExchange;
  readonly parts: TupleRoutesParts;
  readonly requestId: string;
  /** Aborts when the caller has gone, or its credential counts no more. */
  readonly signal: AbortSignal;
  readonly credential: Credential;
};

/**
 * Lets a call of a route in, and then calls `begin`: at once, or once it is known who calls. What is refused is answered. Headers, query
 * and body can be had only in the listener's handler.
 */
export function openTupleCall(
  exchange: HttpExchange,
  parts: TupleRoutesParts | null,
  begin: (call: TupleCall) => void,
): void {
  const requestId = requestIdOf(exchange.header(REQUEST_ID_HEADER));
  const refuse = (reason: AuthzReason, message: string): void => {
    sendConnectError(exchange, new AppError<AuthzReason>(reason, message), requestId);
  };
  if (parts === null) return refuse('STORE_UNAVAILABLE', 'the service is starting');
  if (exchange.header('origin') !== '') {
    return refuse('ACTION_FORBIDDEN', 'not for pages in a browser');
  }
  const hasGone = goneSignal(exchange);
  const finish = (admission: AuthorizeResult): void => {
    if (admission instanceof AppError) return sendConnectError(exchange, admission, requestId);
    const signal = AbortSignal.any([hasGone, admission.revoked]);
    begin({ exchange, parts, requestId, signal, credential: admission });
  };
  const admission = parts.admit(exchange.header('authorization'));
  if (!(admission instanceof Promise)) return finish(admission);
  admission.then(finish, (error: unknown) => {
    sendConnectError(exchange, shownError(parts, error, requestId, '', ''), requestId);
  });
}

/** Aborts when the caller has gone. */
function goneSignal(exchange: HttpExchange): AbortSignal {
  const controller = new AbortController();
  exchange.onAborted(() =>
    controller.abort(new AppError<AuthzReason>('CANCELLED', 'the caller has gone')),
  );
  return controller.signal;
}

/** Errors: SCOPE_REFUSED. */
export function mustReach<Request>(
  { credential, parts }: TupleCall,
  rule: TargetedRule<Request>,
  request: Request,
): void {
  mustAdmit(credential, rule, request, parts.onOutOfScope);
}

/** Whether the caller may call the method in any project; a caller that may not is answered before its body is read. */
export function reachesAnywhere<Request>(
  { exchange, requestId, credential, parts }: TupleCall,
  rule: TargetedRule<Request>,
): boolean {
  const error = credential.caller.refusalAnywhere(rule);
  if (error === null) return true;
  parts.onOutOfScope(rule as TargetedRule<unknown>, credential.caller.name);
  sendConnectError(exchange, error, requestId);
  return false;
}

/** Why a stream ended: what stopped it, or else what failed. */
function causeOf({ credential, signal }: TupleCall, drained: AbortSignal, error: unknown): unknown {
  if (credential.revoked.aborted) return credential.revoked.reason;
  return drained.aborted && !signal.aborted ? drained.reason : error;
}

/** The error that a caller is shown; an unforeseen one is reported to the operator. */
export function shownError(
  { report }: TupleRoutesParts,
  error: unknown,
  requestId: string,
  method: string,
  caller: string,
): AppError {
  const shown = internalError(error);
  if (shown.reason === 'INTERNAL') {
    report({ requestId, rpc: `${SERVICE}/${method}`, caller, error: shown.cause ?? shown });
  }
  return shown;
}

/** A stream that failed. */
type FailedStream = {
  readonly method: 'StreamTuples' | 'Watch';
  readonly error: unknown;
  /** Aborted where the service stops. */
  readonly drained: AbortSignal;
  /** Whether its head is sent. */
  readonly hasBegun: boolean;
};

/**
 * Ends a stream that failed: before its head with the answer of a call, behind it with the text that `textOf` makes of the
 * error's body. Never rejects.
 */
export async function failStream(
  call: TupleCall,
  { method, error, drained, hasBegun }: FailedStream,
  textOf: (errorBody: string) => string,
): Promise<void> {
  const { exchange, parts, requestId, credential } = call;
  const cause = causeOf(call, drained, error);
  const shown = shownError(parts, cause, requestId, method, credential.caller.name);
  if (!hasBegun) return sendConnectError(exchange, shown, requestId);
  if (error instanceof StalledError) parts.onStalled(method);
  await finishWith(exchange, textOf(errorBody(shown)), parts.stallMs);
}
