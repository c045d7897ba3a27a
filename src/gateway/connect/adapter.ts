import type { IncomingHttpHeaders } from 'node:http2';
import type { Registry } from '@bufbuild/protobuf';
import {
  createContextValues,
  type ConnectError,
  type ConnectRouter,
  type ContextValues,
  type Interceptor,
} from '@connectrpc/connect';
import type { UniversalHandler } from '@connectrpc/connect/protocol';
import type { DecodeLimits } from '../../decoding/decode-limits.ts';
import { BodyBudget, NO_OWNER } from '../../http/body-budget.ts';
import type { BodyDeadlines } from '../../http/body-deadlines.ts';
import { bodyTooLarge } from '../../http/gunzip-limited.ts';
import type { HttpExchange } from '../../http/http-exchange.ts';
import type { Http2RequestStream } from '../../http/http2/request-stream.ts';
import { requestIdOf } from '../../http/request-id.ts';
import { UNREAD_BYTES_MAX, UnreadAnswers } from '../../http/unread-answers.ts';
import { AppError } from '../../shared/app-error.ts';
import { type Credential, kCredential, NOBODY } from '../callers/caller.ts';
import type { OnRefused } from '../callers/guarded-service.ts';
import { RULES } from '../callers/method-rules.ts';
import {
  cancelled,
  ENVELOPE_BYTES,
  streamedBodyOfExchange,
  streamedBodyOfStream,
  WholeBody,
  wholeBodyOfExchange,
} from './adapter-body.ts';
import type { CallFailure, ErrorPolicy } from './adapter-guard.ts';
import { respondToExchange } from './adapter-http1.ts';
import { headersFromHttp2, refuseStream, respondToStream } from './adapter-http2.ts';
import { refusal } from './adapter-refusal.ts';
import { kRequestId } from './adapter-request-id.ts';
import { createRouter, jsonOptionsOf } from './adapter-router.ts';
import { BuiltMessages, kBuilt } from './built-messages.ts';
import { clampTimeouts, setTimeLeft } from './call-timeouts.ts';
import { connectErrorFromAppError } from './connect-error.ts';
import type { ConnectReason } from './connect-reason.ts';
import { decompressedMessages, kDecompressed } from './counted-messages.ts';
import { MessageDecoding } from './message-decoding.ts';
import { EnvelopeEnds } from './unit-ends.ts';
import { WholeStream } from './whole-stream.ts';

/** Who calls a method, or why nobody is let in; a promise where that takes a look at what was not seen before. */
export type Admission = Credential | AppError;
export type Authorize = (
  path: string,
  header: (lowerCaseName: string) => string,
) => Admission | Promise<Admission>;

export type ConnectAdapterOptions = {
  readonly routes: (router: ConnectRouter) => void;
  /** The credential check, made before anything else of any call. Without it nobody is asked, and nobody is known. */
  readonly authorize?: Authorize | undefined;
  /**
   * Told of each call whose caller has no scope for its method in any place: it is refused before its body is read. Without it
   * nobody's scopes are looked at here.
   */
  readonly onOutOfScope?: OnRefused | undefined;
  /** What requests may hold; see docs/ARCHITECTURE.md for what holds without them. */
  readonly decodeLimits?: DecodeLimits | undefined;
  /** Told of each request that holds more, by its reason. */
  readonly onMessageRefused?: ((reason: string) => void) | undefined;
  /** Of all request bodies of the process; default one of its own. */
  readonly bodyBudget?: BodyBudget | undefined;
  /** Per message, compressed and not. */
  readonly readMaxBytes: number;
  /** Per message; default 256 MiB. */
  readonly writeMaxBytes?: number | undefined;
  /** Answers shorter than this are not compressed; default 1,024. */
  readonly compressMinBytes?: number | undefined;
  /** Ends streams that would never end by themselves, with its reason (an AppError). */
  readonly drainSignal?: AbortSignal | undefined;
  /**
   * Around every handler. Unary calls over gRPC and gRPC-Web show up as streams of one message
   * (`request.stream`); `request.contextValues.get(kRequestId)` is the request id.
   */
  readonly interceptors?: readonly Interceptor[] | undefined;
  /** Told of each failure whose text the caller does not get to see. */
  readonly report: (failure: CallFailure) => void;
  /** Told of every failed call that had a handler: its method, what failed, and what is answered. */
  readonly onFailure?: ErrorPolicy['onFailure'];
  /** Where answers are held that nobody reads; absent: the adapter has its own, of `UNREAD_BYTES_MAX`. */
  readonly unread?: UnreadAnswers | undefined;
  /** Types that google.protobuf.Any may hold in JSON. */
  readonly registry?: Registry | undefined;
  /** How errors are presented; default adds google.rpc.ErrorInfo. */
  readonly presentError?: ((error: AppError) => ConnectError) | undefined;
};

/** Connect, gRPC-Web and gRPC calls on our listener. */
export interface ConnectAdapter {
  /** Takes a whole HTTP/1.1 request of any path and verb, synchronously inside its handler. */
  readonly handleHttp1: (exchange: HttpExchange) => void;
  /** The same for a request whose credential was checked and whose body was read elsewhere. */
  readonly handleBuffered: (
    exchange: HttpExchange,
    path: string,
    headers: Headers,
    body: Uint8Array,
    requestId: string,
    credential: Credential,
  ) => void;
  /**
   * The same over HTTP/2; `body` is null for one beyond the limit, whose rest is thrown away. `leftMs` is what is left of
   * the time that the caller stated.
   */
  readonly handleBufferedStream: (
    stream: Http2RequestStream,
    headers: IncomingHttpHeaders,
    body: Uint8Array | null,
    leftMs: number | undefined,
    credential: Credential,
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

const WRITE_MAX_BYTES = 256 * 1_048_576;
const COMPRESS_MIN_BYTES = 1_024;
const ENVELOPE_ENCODINGS = ['grpc-encoding', 'connect-content-encoding'];
const STALL_MS = 60_000;

/**
 * Builds the adapter. Order of checks: credential, method, verb, content type, body. Body-less
 * answers: 405 with Allow, 415. Errors of calls: see connect-error.ts.
 */
export function createConnectAdapter(options: ConnectAdapterOptions): ConnectAdapter {
  const policy: ErrorPolicy = {
    readMaxBytes: options.readMaxBytes,
    report: options.report,
    present: options.presentError,
    onFailure: options.onFailure,
  };
  const json = jsonOptionsOf(options.registry);
  const decoding = new MessageDecoding({
    limits: options.decodeLimits,
    json,
    onOutOfScope: options.onOutOfScope,
    onRefused: options.onMessageRefused,
  });
  const router = createRouter({
    policy,
    decoding,
    json,
    writeMaxBytes: options.writeMaxBytes ?? WRITE_MAX_BYTES,
    compressMinBytes: options.compressMinBytes ?? COMPRESS_MIN_BYTES,
    interceptors: options.interceptors ?? [],
    drainSignal: options.drainSignal,
  });
  options.routes(router);
  const calls = new Calls(options, policy, decoding, router.handlers);
  return {
    handleHttp1: (exchange) => calls.handleHttp1(exchange),
    handleBuffered: (exchange, path, headers, body, requestId, credential) =>
      calls.handleBuffered(exchange, path, headers, body, requestId, credential),
    handleBufferedStream: (stream, headers, body, leftMs, credential) =>
      calls.handleBufferedStream(stream, headers, body, leftMs, credential),
    handleHttp2: (stream, headers, deadlines) => calls.handleHttp2(stream, headers, deadlines),
    paths: router.handlers.map((handler) => handler.requestPath),
  };
}

type UniversalRequest = Parameters<UniversalHandler>[0];
type UniversalResponse = Awaited<ReturnType<UniversalHandler>>;

class Calls {
  readonly #options: ConnectAdapterOptions;
  readonly #policy: ErrorPolicy;
  readonly #decoding: MessageDecoding;
  readonly #budget: BodyBudget;
  readonly #unread: UnreadAnswers;
  readonly #handlers = new Map<string, UniversalHandler>();

  constructor(
    options: ConnectAdapterOptions,
    policy: ErrorPolicy,
    decoding: MessageDecoding,
    handlers: readonly UniversalHandler[],
  ) {
    this.#options = options;
    this.#policy = policy;
    this.#decoding = decoding;
    this.#budget = options.bodyBudget ?? new BodyBudget();
    this.#unread =
      options.unread ?? new UnreadAnswers({ bytesMax: UNREAD_BYTES_MAX, stallMs: STALL_MS });
    for (const handler of handlers) this.#handlers.set(handler.requestPath, handler);
  }

  handleHttp1(exchange: HttpExchange): void {
    const head: CallHead = {
      path: exchange.path(),
      requestId: requestIdOf(exchange.header('x-request-id')),
      contentType: exchange.header('content-type'),
      method: exchange.method(),
    };
    const handler = this.#handlers.get(head.path);
    const admission = this.#admission(head.path, (name) => exchange.header(name));
    if (admission instanceof Promise) this.#holdHttp1(exchange, head, handler, admission);
    else if (!this.#refusedHttp1(exchange, head, handler, admission)) {
      if (!(admission instanceof AppError)) exchange.bodyOwner = admission.caller.name;
      this.#openHttp1(exchange, head, handler)(admission);
    }
  }

  /** The caller is not known yet, but headers and body can be had only now. */
  #holdHttp1(
    exchange: HttpExchange,
    head: CallHead,
    handler: UniversalHandler | undefined,
    admission: Promise<Admission>,
  ): void {
    const begin = this.#openHttp1(exchange, head, handler);
    void admission.catch(internalError).then((known) => {
      if (!this.#refusedHttp1(exchange, head, handler, known)) begin(known);
    });
  }

  /** Reads headers, and begins to read the body; what it returns begins the call. */
  #openHttp1(
    exchange: HttpExchange,
    head: CallHead,
    handler: UniversalHandler | undefined,
  ): (credential: Admission) => void {
    const controller = new AbortController();
    exchange.onAborted(() => controller.abort(cancelled()));
    if (handler === undefined) return () => undefined;
    const body = isReadWhole(handler)
      ? wholeBodyOfExchange(exchange, this.#options.readMaxBytes, controller.signal)
      : streamedBodyOfExchange(exchange, this.#ends(), controller.signal);
    const headers = exchange.headers();
    return (credential) => {
      if (credential instanceof AppError) return;
      exchange.bodyOwner = credential.caller.name;
      const request = requestOf('1.1', head, headers, body, controller.signal, credential);
      this.#callHttp1(exchange, handler, request, head.requestId);
    };
  }

  /** Answers what no handler sees. */
  #refusedHttp1(
    exchange: HttpExchange,
    head: CallHead,
    handler: UniversalHandler | undefined,
    admission: Admission,
  ): boolean {
    const early = this.#earlyHttp1(head, handler, admission);
    if (early !== null) void respondToExchange(exchange, early, head.requestId, true);
    return early !== null;
  }

  #earlyHttp1(
    head: CallHead,
    handler: UniversalHandler | undefined,
    admission: Admission,
  ): UniversalResponse | null {
    const early = this.#early(head, handler, admission);
    // Trailers of gRPC cannot be sent on HTTP/1.1.
    return early ?? (isGrpc(head.contentType) ? { status: 415 } : null);
  }

  handleBuffered(
    exchange: HttpExchange,
    path: string,
    headers: Headers,
    body: Uint8Array,
    requestId: string,
    credential: Credential,
  ): void {
    const handler = this.#handlers.get(path);
    const contentType = headers.get('content-type') ?? '';
    if (handler === undefined || !handler.supportedContentType(contentType)) {
      const early = handler === undefined ? this.#unknown(path, contentType) : { status: 415 };
      void respondToExchange(exchange, early, requestId, true);
      return;
    }
    const controller = new AbortController();
    exchange.onAborted(() => controller.abort(cancelled()));
    const whole = new WholeBody(Promise.resolve(body));
    const head = { path, requestId };
    const request = requestOf('1.1', head, headers, whole, controller.signal, credential);
    this.#callHttp1(exchange, handler, request, requestId);
  }

  handleHttp2(
    stream: Http2RequestStream,
    incoming: IncomingHttpHeaders,
    deadlines: BodyDeadlines,
  ): void {
    const path = pathOf(incoming[':path']);
    const admission = this.#admission(path, (name) => textOf(incoming[name]));
    if (!(admission instanceof Promise)) {
      this.#admitted(stream, incoming, deadlines, path, admission);
      return;
    }
    // Of its body there is what waits in the meantime, as that of nobody.
    void admission.catch(internalError).then((known) => {
      if (!stream.destroyed) this.#admitted(stream, incoming, deadlines, path, known);
    });
  }

  #admitted(
    stream: Http2RequestStream,
    incoming: IncomingHttpHeaders,
    deadlines: BodyDeadlines,
    path: string,
    admission: Admission,
  ): void {
    const requestId = requestIdOf(textOf(incoming['x-request-id']));
    const contentType = textOf(incoming['content-type']);
    const handler = this.#handlers.get(path);
    const head = { path, requestId, contentType, method: textOf(incoming[':method']) };
    const early = this.#early(head, handler, admission);
    if (early !== null || handler === undefined || admission instanceof AppError) {
      void refuseStream(stream, early ?? { status: 404 }, requestId, this.#unread);
      return;
    }
    const signal = signalOfStream(stream);
    stream.bodyOwner = admission.caller.name;
    const body = isReadWhole(handler)
      ? this.#wholeBody(stream, deadlines, signal)
      : streamedBodyOfStream(stream, this.#ends(), this.#budget, signal);
    const request = requestOf('2.0', head, headersFromHttp2(incoming), body, signal, admission);
    this.#callHttp2(stream, handler, contentType, request, requestId);
  }

  #wholeBody(stream: Http2RequestStream, deadlines: BodyDeadlines, signal: AbortSignal): WholeBody {
    const { readMaxBytes: messageBytesMax } = this.#options;
    const bytesMax = messageBytesMax + ENVELOPE_BYTES;
    const options = { bytesMax, messageBytesMax, deadlines, budget: this.#budget };
    const owner = stream.bodyOwner ?? NO_OWNER;
    return new WholeBody(new WholeStream(stream, options, owner, signal).whole);
  }

  #ends(): EnvelopeEnds {
    return new EnvelopeEnds(this.#options.readMaxBytes);
  }

  handleBufferedStream(
    stream: Http2RequestStream,
    incoming: IncomingHttpHeaders,
    body: Uint8Array | null,
    leftMs: number | undefined,
    credential: Credential,
  ): void {
    const path = pathOf(incoming[':path']);
    const requestId = requestIdOf(textOf(incoming['x-request-id']));
    const contentType = textOf(incoming['content-type']);
    const handler = this.#handlers.get(path);
    if (handler === undefined) {
      void refuseStream(stream, { status: 404 }, requestId, this.#unread);
      return;
    }
    const headers = headersFromHttp2(incoming);
    if (leftMs !== undefined) setTimeLeft(headers, leftMs);
    const { readMaxBytes } = this.#options;
    const whole = new WholeBody(
      body === null ? Promise.reject(bodyTooLarge(readMaxBytes)) : Promise.resolve(body),
    );
    const signal = signalOfStream(stream);
    const request = requestOf('2.0', { path, requestId }, headers, whole, signal, credential);
    this.#callHttp2(stream, handler, contentType, request, requestId);
  }

  #callHttp2(
    stream: Http2RequestStream,
    handler: UniversalHandler,
    contentType: string,
    request: UniversalRequest,
    requestId: string,
  ): void {
    void this.#counted(handler, request, (counted) =>
      handler(counted).then(
        (response) => respondToStream(stream, response, requestId, this.#unread, ownerOf(request)),
        (error: unknown) => this.#failHttp2(stream, handler, contentType, error, request),
      ),
    );
  }

  #admission(
    path: string,
    header: (lowerCaseName: string) => string,
  ): Admission | Promise<Admission> {
    const { authorize } = this.#options;
    return authorize === undefined ? NOBODY : authorize(path, header);
  }

  /** The answer of a call that no handler sees, or null. */
  #early(
    { path, method, contentType }: CallHead,
    handler: UniversalHandler | undefined,
    admission: Admission,
  ): UniversalResponse | null {
    if (admission instanceof AppError) {
      return refusal(contentType, admission, this.#policy.present);
    }
    if (handler === undefined) return this.#unknown(path, contentType);
    if (method !== 'POST') return { status: 405 };
    if (!handler.supportedContentType(contentType)) return { status: 415 };
    return this.#outOfScope(path, contentType, admission);
  }

  /** The answer to a caller who may reach nothing by this method, so that its body need not be read; or null. */
  #outOfScope(path: string, contentType: string, { caller }: Credential): UniversalResponse | null {
    const { onOutOfScope } = this.#options;
    const rule = onOutOfScope === undefined ? undefined : RULES.get(path);
    const error = rule === undefined ? null : caller.refusalAnywhere(rule);
    if (rule === undefined || error === null) return null;
    onOutOfScope?.(rule, caller.name);
    const shown = (this.#policy.present ?? connectErrorFromAppError)(error);
    this.#policy.onFailure?.(path.slice(1), error, shown);
    return refusal(contentType, error, this.#policy.present);
  }

  #unknown(path: string, contentType: string): UniversalResponse {
    const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
    const error = new AppError<ConnectReason>(
      'METHOD_UNKNOWN',
      `${shown}: there is no such method`,
    );
    return refusal(contentType, error, this.#policy.present);
  }

  #callHttp1(
    exchange: HttpExchange,
    handler: UniversalHandler,
    request: UniversalRequest,
    requestId: string,
  ): void {
    const isWhole = handler.method.methodKind === 'unary';
    void this.#counted(handler, request, (counted) =>
      handler(counted).then(
        (response) => respondToExchange(exchange, response, requestId, isWhole, this.#unread),
        (error: unknown) => {
          this.#report(handler, error, request);
          const contentType = request.header.get('content-type') ?? '';
          const response = refusal(contentType, internalError(error), this.#policy.present);
          return respondToExchange(exchange, response, requestId, true);
        },
      ),
    );
  }

  /** What compressed messages become counts as the caller's until `work`, which never rejects, is done. */
  async #counted(
    handler: UniversalHandler,
    request: UniversalRequest,
    work: (request: UniversalRequest) => Promise<void>,
  ): Promise<void> {
    const { header, contextValues } = request;
    const isWhole = header.has('content-encoding');
    const isEnveloped = ENVELOPE_ENCODINGS.some((name) => header.get(name) === 'gzip');
    if (!isWhole && !isEnveloped) return work(this.#built(handler, request));
    const owner = contextValues?.get(kCredential).caller.name ?? NO_OWNER;
    const hold = this.#budget.open(owner, { cutForRoom: holdsOn });
    contextValues?.set(kDecompressed, hold);
    const { body } = request;
    const isOpen = isEnveloped && isStreamType(header.get('content-type') ?? '');
    const { readMaxBytes } = this.#options;
    const plain =
      isOpen && isIterable(body) ? decompressedMessages(body, readMaxBytes, hold) : body;
    try {
      await work(this.#built(handler, { ...request, body: plain }));
    } finally {
      hold.release();
    }
  }

  /** Messages in envelopes are built here where they are not small: Connect would build them whole. */
  #built(handler: UniversalHandler, request: UniversalRequest): UniversalRequest {
    const { header, body, contextValues } = request;
    const type = header.get('content-type') ?? '';
    if (!isStreamType(type) || !isIterable(body)) return request;
    const isJson = type.includes('+json');
    const credential = contextValues?.get(kCredential);
    const built = new BuiltMessages(isJson, (message, isFirst) =>
      this.#decoding.decode(handler.method, !isJson, message, credential, isFirst),
    );
    contextValues?.set(kBuilt, built);
    return { ...request, body: built.bodyOf(body, this.#options.readMaxBytes) };
  }

  #failHttp2(
    stream: Http2RequestStream,
    handler: UniversalHandler,
    contentType: string,
    error: unknown,
    request: UniversalRequest,
  ): Promise<void> {
    this.#report(handler, error, request);
    const response = refusal(contentType, internalError(error), this.#policy.present);
    const requestId = request.contextValues?.get(kRequestId) ?? '';
    return respondToStream(stream, response, requestId, this.#unread, ownerOf(request));
  }

  #report(handler: UniversalHandler, error: unknown, { contextValues }: UniversalRequest): void {
    const rpc = `${handler.service.typeName}/${handler.method.name}`;
    const requestId = contextValues?.get(kRequestId) ?? '';
    const caller = contextValues?.get(kCredential).caller.name ?? '';
    this.#options.report({ requestId, rpc, caller, error });
  }
}

/** What is known of a call by its first lines. */
type CallHead = {
  readonly path: string;
  readonly requestId: string;
  readonly contentType: string;
  readonly method: string;
};

function requestOf(
  httpVersion: string,
  { path, requestId }: Pick<CallHead, 'path' | 'requestId'>,
  header: Headers,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  credential: Credential,
): UniversalRequest {
  clampTimeouts(header);
  const contextValues: ContextValues = createContextValues()
    .set(kRequestId, requestId)
    .set(kCredential, credential);
  const url = `http://localhost${path}`;
  return {
    httpVersion,
    method: 'POST',
    url,
    header,
    body,
    signal,
    contextValues,
  };
}

/** Who an answer is for. */
function ownerOf({ contextValues }: UniversalRequest): object | undefined {
  return contextValues?.get(kCredential).caller;
}

/** Aborted when the stream has closed, answered or not. */
function signalOfStream(stream: Http2RequestStream): AbortSignal {
  const controller = new AbortController();
  stream.once('close', () => controller.abort(cancelled()));
  return controller.signal;
}

function isStreamType(contentType: string): boolean {
  return (
    contentType.startsWith('application/grpc') || contentType.startsWith('application/connect+')
  );
}

function isIterable(body: UniversalRequest['body']): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

function holdsOn(): void {
  // Never called: it waits for nobody.
}

function isReadWhole(handler: UniversalHandler): boolean {
  const { methodKind } = handler.method;
  return methodKind === 'unary' || methodKind === 'server_streaming';
}

function isGrpc(contentType: string): boolean {
  return (
    contentType.startsWith('application/grpc') && !contentType.startsWith('application/grpc-web')
  );
}

function internalError(cause: unknown): AppError {
  if (cause instanceof AppError) return cause;
  return new AppError<ConnectReason>('INTERNAL', 'internal error', {}, cause);
}

function pathOf(target: string | string[] | undefined): string {
  const text = textOf(target);
  const query = text.indexOf('?');
  return query < 0 ? text : text.slice(0, query);
}

function textOf(value: string | string[] | undefined): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : value.join(', ');
}
