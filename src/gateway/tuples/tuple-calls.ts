import { ConnectError } from '@connectrpc/connect';
import type { HttpExchange } from '../../http/http-exchange.ts';
import { requestIdOf } from '../../http/request-id.ts';
import type { Authenticator } from '../../http/service-tokens.ts';
import type { TupleExport } from '../../services/bulk/tuple-export.ts';
import type { TupleImport } from '../../services/bulk/tuple-import.ts';
import type { TupleWatch } from '../../services/watch/tuple-watch.ts';
import { AppError } from '../../shared/app-error.ts';
import type { CallFailure } from '../connect/adapter-guard.ts';
import { foreseenError, sendConnectError } from '../connect/connect-error.ts';
import type { TuplesReason } from './tuples-reason.ts';

const SERVICE = 'gatehouse.v1.TupleService';

/** What the routes need besides the server. */
export type TupleRoutes = {
  readonly tupleExport: TupleExport;
  readonly tupleImport: TupleImport;
  readonly tupleWatch: TupleWatch;
  /** Of a line of an import, in bytes. */
  readonly bodyBytesMax: number;
  /** A reader who takes nothing of a stream for this long, in ms, is told so and let go. */
  readonly stallMs: number;
  /** Told of each of them. */
  readonly onStalled: (method: 'StreamTuples' | 'Watch') => void;
};

/** What a gateway adds: null while the service starts. */
export type TupleRoutesParts = TupleRoutes & {
  readonly authenticator: Authenticator;
  readonly report: (failure: CallFailure) => void;
};

/** A call of a route that was let in. */
export type TupleCall = {
  readonly exchange: HttpExchange;
  readonly parts: TupleRoutesParts;
  readonly requestId: string;
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal;
};

/** null: it was refused, and answered. */
export function openTupleCall(
  exchange: HttpExchange,
  parts: TupleRoutesParts | null,
): TupleCall | null {
  const requestId = requestIdOf(exchange.header('x-request-id'));
  const refuse = (reason: TuplesReason, message: string): null => {
    sendConnectError(exchange, new AppError<TuplesReason>(reason, message), requestId);
    return null;
  };
  if (parts === null) return refuse('STORE_UNAVAILABLE', 'the service is starting');
  if (exchange.header('origin') !== '') {
    return refuse('ACTION_FORBIDDEN', 'not for pages in a browser');
  }
  if (!parts.authenticator.accepts(exchange.header('authorization'))) {
    return refuse('CREDENTIAL_INVALID', 'a valid service token is required');
  }
  const controller = new AbortController();
  exchange.onAborted(() =>
    controller.abort(new AppError<TuplesReason>('CANCELLED', 'the caller has gone')),
  );
  return { exchange, parts, requestId, signal: controller.signal };
}

/** The error that a caller is shown; an unforeseen one is reported. */
export function shownError(
  { bodyBytesMax, report }: TupleRoutesParts,
  error: unknown,
  requestId: string,
  method: string,
): AppError {
  const foreseen = foreseenError(error, { readMaxBytes: bodyBytesMax });
  const shown =
    foreseen instanceof ConnectError
      ? new AppError<TuplesReason>('INTERNAL', 'internal error', {}, foreseen)
      : foreseen;
  if (shown.reason === 'INTERNAL') {
    report({ requestId, rpc: `${SERVICE}/${method}`, error: shown.cause ?? shown });
  }
  return shown;
}
