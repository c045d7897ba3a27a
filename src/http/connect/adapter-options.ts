import type { IncomingHttpHeaders } from 'node:http2';
import type { Registry } from '@bufbuild/protobuf';
import type { DescService } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import type { DecodeLimits } from '../../decoding/decode-limits.ts';
import type { BodyBudget } from '../bodies/body-budget.ts';
import type { BodyDeadlines } from '../bodies/body-deadlines.ts';
import type { HttpExchange } from '../exchange/http-exchange.ts';
import type { UnreadAnswers } from '../exchange/unread-answers.ts';
import type { Http2RequestStream } from '../http2/request-stream.ts';
import type { CallReport } from './call-record.ts';
import type { ErrorPolicy } from './outgoing-error.ts';
import type { MalformedError } from './protocol/call-errors.ts';
import type { Admitted, CallerPort } from './protocol/caller-port.ts';

/** Registers implementations of services. */
export type ServiceRouter = {
  /** Adds a service; a method that `implementation` lacks is answered METHOD_UNIMPLEMENTED. */
  readonly service: <S extends DescService>(
    service: S,
    implementation: Partial<ServiceImpl<S>>,
  ) => void;
};

export type ConnectAdapterOptions = Omit<ErrorPolicy, 'callers'> & {
  readonly routes: (router: ServiceRouter) => void;
  /** Admits callers. Without it every caller is let in, and none is known. */
  readonly callers?: CallerPort | undefined;
  /** Makes the error of a message that cannot be built. */
  readonly malformed: MalformedError;
  /** Limits on what requests may hold; docs/ARCHITECTURE.md has the ones that hold without them. */
  readonly decodeLimits?: DecodeLimits | undefined;
  /** Callback for each request beyond the limits, with the reason. */
  readonly onMessageRefused?: ((reason: string) => void) | undefined;
  /** Budget of all request bodies of the process; default a new one. */
  readonly bodyBudget?: BodyBudget | undefined;
  /** Limit on the bytes of a request message, both compressed and decompressed. */
  readonly readMaxBytes: number;
  /** Limit on the bytes of an answer message; default 256 MiB. */
  readonly writeMaxBytes?: number | undefined;
  /** Answers shorter than this are not compressed; default 1,024. */
  readonly compressMinBytes?: number | undefined;
  /** Ends streams that would never end by themselves, with its reason (an AppError). */
  readonly drainSignal?: AbortSignal | undefined;
  /** Answers that wait for their readers; default a new table of `UNREAD_BYTES_MAX`. */
  readonly unread?: UnreadAnswers | undefined;
  /** Types that google.protobuf.Any may hold in JSON. */
  readonly registry?: Registry | undefined;
  /**
   * Deadline in ms of a call whose caller states none, and the longest that one may state. Without it a call that states none
   * has no deadline.
   */
  readonly timeoutMsMax?: number | undefined;
  /** Callback for each call of a method, refused or not; once a call. */
  readonly onCall?: ((report: CallReport) => void) | undefined;
  /**
   * Takes unary calls of Connect as plain HTTP clients write them. A content type may have any parameters and any case. An
   * empty body of JSON is an empty message. 415 then names the types.
   */
  readonly isPlainHttpTaken?: boolean | undefined;
};

/** Connect, gRPC-Web and gRPC calls on our listener. */
export interface ConnectAdapter {
  /** Takes a whole HTTP/1.1 request of any path and verb, synchronously inside its handler. */
  readonly handleHttp1: (exchange: HttpExchange) => void;
  /**
   * The same for a request whose credential was checked and whose body was read elsewhere. `leftMs` is what is left of the
   * time that the caller stated.
   */
  readonly handleBuffered: (
    exchange: HttpExchange,
    path: string,
    headers: Headers,
    body: Uint8Array,
    requestId: string,
    admitted: Admitted,
    leftMs?: number,
  ) => void;
  /** The same over HTTP/2; `body` is null for one beyond the limit, the rest of which is thrown away. */
  readonly handleBufferedStream: (
    stream: Http2RequestStream,
    headers: IncomingHttpHeaders,
    body: Uint8Array | null,
    leftMs: number | undefined,
    bodyDeadlines: BodyDeadlines,
    admitted: Admitted,
  ) => void;
  /** Takes an HTTP/2 request: pass it as `http2.onStream` of the server. */
  readonly handleHttp2: (
    stream: Http2RequestStream,
    headers: IncomingHttpHeaders,
    bodyDeadlines: BodyDeadlines,
  ) => void;
  /** "/package.Service/Method" of every method. */
  readonly paths: readonly string[];
}
