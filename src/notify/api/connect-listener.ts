import {
  create,
  toBinary,
  toJsonString,
  type DescMessage,
  type DescService,
  type Message,
} from '@bufbuild/protobuf';
import { MessageDecoder } from '../../decoding/message-decoder.ts';
import { gunzipCounted } from '../../http/gunzip-counted.ts';
import { bodyTooLarge } from '../../http/gunzip-limited.ts';
import type { HttpExchange } from '../../http/http-exchange.ts';
import type { HttpServer } from '../../http/http-server.ts';
import { requestIdOf } from '../../http/request-id.ts';
import type { Authenticator } from '../../http/service-tokens.ts';
import { AppError } from '../../shared/app-error.ts';
import { errorAnswer, malformedJson } from './notify-error.ts';

/** One method: takes the request message, returns the answer. */
export type Handler = (request: Message, call: { readonly requestId: string }) => Promise<Message>;

export type ConnectService = {
  readonly service: DescService;
  /** By the local name of the method, such as `notify`; every method must be there. */
  readonly handlers: Readonly<Record<string, Handler>>;
};

export type ConnectListenerOptions = {
  readonly server: HttpServer;
  readonly services: readonly ConnectService[];
  readonly authenticator: Authenticator;
  readonly bodyBytesMax: number;
  readonly timeoutMsMax: number;
  /** Once for each call of a method, also one that was refused. `code` is `ok` or a Connect code. */
  readonly onCall: (call: CallReport) => void;
  /** Told of each request that is refused before it is built, since it holds more than it may. */
  readonly onMessageRefused: (reason: string) => void;
  /** For errors that the caller is told nothing of. */
  readonly onInternalError: (procedure: string, requestId: string, error: unknown) => void;
};
export type CallReport = {
  readonly procedure: string;
  readonly method: string;
  readonly code: string;
  readonly durationMs: number;
  readonly requestId: string;
};

const JSON_TYPE = 'application/json';
const PROTO_TYPE = 'application/proto';
const TIMEOUT_HEADER = /^\d{1,10}$/;
const ANSWER_JSON = { alwaysEmitImplicit: true, useProtoFieldName: true };

type Method = {
  readonly procedure: string;
  readonly name: string;
  readonly input: DescMessage;
  readonly output: DescMessage;
  readonly handle: Handler;
};
type Head = {
  readonly contentType: string;
  readonly isGzip: boolean;
  readonly timeoutMs: number;
};

/**
 * Serves the unary methods of services by the Connect protocol (connectrpc.com/docs/protocol), JSON and
 * binary, on an HTTP/1.1 listener: credential, headers, body, deadline, and one shape of errors.
 */
export function serveConnect(options: ConnectListenerOptions): void {
  for (const { service, handlers } of options.services) {
    for (const method of service.methods) {
      const procedure = `/${service.typeName}/${method.name}`;
      const handle = handlers[method.localName];
      if (handle === undefined) throw new AppError('INTERNAL', `${procedure} has no handler`);
      const { input, output } = method;
      const served = { procedure, name: method.localName, input, output, handle };
      options.server.route('POST', procedure, (exchange) => take(options, served, exchange));
    }
  }
  options.server.fallback((exchange) => {
    const requestId = requestIdOf(exchange.header('x-request-id'));
    sendError(exchange, new AppError('METHOD_UNKNOWN', 'no such method'), requestId);
  });
}

function take(options: ConnectListenerOptions, method: Method, exchange: HttpExchange): void {
  const call = beginCall(options, method, exchange);
  const { requestId } = call;
  const token = options.authenticator.tokenOf(exchange.header('authorization'));
  if (token < 0) {
    const problem = 'a service token is needed: Authorization: Bearer';
    return call.fail(new AppError('CREDENTIAL_INVALID', problem));
  }
  let head: Head;
  try {
    head = headOf(exchange, options.timeoutMsMax);
  } catch (error) {
    return call.fail(error);
  }
  if (head.contentType === '') {
    const types = `${JSON_TYPE}, ${PROTO_TYPE}`;
    exchange.sendEmpty(415, ['accept-post', types, 'x-request-id', requestId]);
    return call.ended('invalid_argument');
  }
  exchange.bodyOwner = `token-${token}`;
  // Until the body is there, nothing is done for a client that goes.
  exchange.onAborted(() => call.ended('canceled'));
  exchange.readBody(
    options.bodyBytesMax,
    (body) => {
      exchange.onAborted(() => undefined);
      void answer(options, method, head, call, body);
    },
    (refusal) => call.fail(refusal ?? bodyTooLarge(options.bodyBytesMax)),
  );
}

/** One call on its way to its answer; reported once. */
type Call = {
  readonly requestId: string;
  readonly exchange: HttpExchange;
  readonly ended: (code: string) => void;
  readonly fail: (error: unknown) => void;
};

function beginCall(options: ConnectListenerOptions, method: Method, exchange: HttpExchange): Call {
  const startMs = performance.now();
  const requestId = requestIdOf(exchange.header('x-request-id'));
  const { procedure, name } = method;
  let isReported = false;
  const ended = (code: string): void => {
    if (isReported) return;
    isReported = true;
    const durationMs = performance.now() - startMs;
    options.onCall({ procedure, method: name, code, durationMs, requestId });
  };
  const fail = (error: unknown): void => {
    const { code } = errorAnswer(error);
    if (code === 'internal') options.onInternalError(procedure, requestId, error);
    sendError(exchange, error, requestId);
    ended(code);
  };
  return { requestId, exchange, ended, fail };
}

/** Errors: BODY_MALFORMED, METHOD_UNIMPLEMENTED for an encoding. An unknown content type is ''. */
function headOf(exchange: HttpExchange, timeoutMsMax: number): Head {
  const stated = exchange.header('content-type').replace(/;.*$/s, '').trim().toLowerCase();
  const version = exchange.header('connect-protocol-version');
  if (version !== '' && version !== '1') {
    throw new AppError('BODY_MALFORMED', 'Connect-Protocol-Version must be 1');
  }
  const encoding = exchange.header('content-encoding').trim().toLowerCase();
  if (!['', 'identity', 'gzip'].includes(encoding)) {
    throw new AppError('METHOD_UNIMPLEMENTED', 'Content-Encoding must be identity or gzip');
  }
  const timeout = exchange.header('connect-timeout-ms');
  if (timeout !== '' && !TIMEOUT_HEADER.test(timeout)) {
    throw new AppError('BODY_MALFORMED', 'Connect-Timeout-Ms must be at most 10 digits');
  }
  return {
    contentType: stated === JSON_TYPE || stated === PROTO_TYPE ? stated : '',
    isGzip: encoding === 'gzip',
    timeoutMs: timeout === '' ? timeoutMsMax : Math.min(Number(timeout), timeoutMsMax),
  };
}

async function answer(
  options: ConnectListenerOptions,
  method: Method,
  { contentType, isGzip, timeoutMs }: Head,
  call: Call,
  body: Uint8Array,
): Promise<void> {
  const { requestId, exchange } = call;
  const hold = exchange.bodyBudget.open(exchange.bodyOwner, { cutForRoom: holdsOn });
  try {
    const bytes = isGzip ? await gunzipCounted(body, options.bodyBytesMax, hold) : body;
    const request = await decode(options, method.input, contentType, bytes);
    // Nothing is begun whose answer nobody waits for.
    if (timeoutMs === 0) throw deadlineExceeded(timeoutMs);
    const response = await withDeadline(method.handle(request, { requestId }), timeoutMs);
    const encoded =
      contentType === JSON_TYPE
        ? toJsonString(method.output, response, ANSWER_JSON)
        : toBinary(method.output, response);
    call.exchange.send(200, contentType, encoded, ['x-request-id', requestId]);
    call.ended('ok');
  } catch (error) {
    call.fail(error);
  } finally {
    hold.release();
  }
}

function holdsOn(): void {
  // Never called: it waits for nobody.
}

/** What is small is decoded at once, all else in slices; no list of ours has a bound of its own there. */
const decoder = new MessageDecoder();

/**
 * Errors: BODY_MALFORMED, FIELD_TOO_LARGE, BATCH_TOO_LARGE, or FIELD_INVALID for names of enums, which say what is wrong but never quote a
 * value.
 */
async function decode(
  { onMessageRefused }: ConnectListenerOptions,
  input: DescMessage,
  contentType: string,
  bytes: Uint8Array,
): Promise<Message> {
  const isBinary = contentType === PROTO_TYPE;
  // Connect: an empty JSON body is an empty message.
  if (!isBinary && bytes.length === 0) return create(input);
  try {
    return await decoder.decode(input, isBinary, bytes);
  } catch (error) {
    if (error instanceof AppError) {
      if (error.reason !== 'BODY_MALFORMED') onMessageRefused(error.reason);
      throw error;
    }
    if (!isBinary) throw malformedJson(input, error, bytes);
    throw new AppError('BODY_MALFORMED', `the body is no ${input.typeName}`, {}, error);
  }
}

async function withDeadline<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(deadlineExceeded(timeoutMs)), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function deadlineExceeded(timeoutMs: number): AppError {
  return new AppError('DEADLINE_EXCEEDED', `no answer within ${timeoutMs} ms`);
}

function sendError(exchange: HttpExchange, error: unknown, requestId: string): void {
  const { status, body } = errorAnswer(error);
  exchange.send(status, JSON_TYPE, body, ['x-request-id', requestId]);
}
