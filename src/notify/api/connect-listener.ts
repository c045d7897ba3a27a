import {
  create,
  fromBinary,
  fromJsonString,
  toBinary,
  toJsonString,
  type DescMessage,
  type DescService,
  type Message,
} from '@bufbuild/protobuf';
import { gunzipLimited } from '../../http/gunzip-limited.ts';
import type { HttpExchange } from '../../http/http-exchange.ts';
import type { HttpServer } from '../../http/http-server.ts';
import { requestIdOf } from '../../http/request-id.ts';
import type { Authenticator } from '../../http/service-tokens.ts';
import { AppError } from '../../shared/app-error.ts';
import { errorAnswer } from './notify-error.ts';

/** One method: takes the request message, returns the answer. */
export type Handler = (request: Message, call: { readonly requestId: string }) => Promise<Message>;

export type ConnectListenerOptions = {
  readonly server: HttpServer;
  readonly service: DescService;
  /** By the local name of the method, such as `notify`; every method must be there. */
  readonly handlers: Readonly<Record<string, Handler>>;
  readonly authenticator: Authenticator;
  readonly bodyBytesMax: number;
  readonly timeoutMsMax: number;
  /** After each call that reached a method. `code` is `ok` or a Connect code. */
  readonly onCall: (call: CallReport) => void;
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
const strictUtf8 = new TextDecoder('utf-8', { fatal: true });

type Method = {
  readonly procedure: string;
  readonly name: string;
  readonly input: DescMessage;
  readonly output: DescMessage;
  readonly handle: Handler;
};
type Head = {
  readonly requestId: string;
  readonly contentType: string;
  readonly isGzip: boolean;
  readonly timeoutMs: number;
};

/**
 * Serves the unary methods of a service by the Connect protocol (connectrpc.com/docs/protocol), JSON and
 * binary, on an HTTP/1.1 listener: credential, headers, body, deadline, and one shape of errors.
 */
export function serveConnect(options: ConnectListenerOptions): void {
  for (const method of options.service.methods) {
    const procedure = `/${options.service.typeName}/${method.name}`;
    const handle = options.handlers[method.localName];
    if (handle === undefined) throw new AppError('INTERNAL', `${procedure} has no handler`);
    const { input, output } = method;
    const served = { procedure, name: method.localName, input, output, handle };
    options.server.route('POST', procedure, (exchange) => take(options, served, exchange));
  }
  options.server.fallback((exchange) => {
    sendError(exchange, new AppError('METHOD_UNKNOWN', 'no such method'), '');
  });
}

function take(options: ConnectListenerOptions, method: Method, exchange: HttpExchange): void {
  const requestId = requestIdOf(exchange.header('x-request-id'));
  if (!options.authenticator.accepts(exchange.header('authorization'))) {
    const problem = 'a service token is needed: Authorization: Bearer';
    return sendError(exchange, new AppError('CREDENTIAL_INVALID', problem), requestId);
  }
  let head: Head;
  try {
    head = headOf(exchange, requestId, options.timeoutMsMax);
  } catch (error) {
    sendError(exchange, error, requestId);
    return;
  }
  if (head.contentType === '') {
    exchange.sendEmpty(415, [
      'accept-post',
      `${JSON_TYPE}, ${PROTO_TYPE}`,
      'x-request-id',
      requestId,
    ]);
    return;
  }
  const tooLarge = new AppError('BODY_TOO_LARGE', `the body exceeds ${options.bodyBytesMax} bytes`);
  exchange.readBody(
    options.bodyBytesMax,
    (body) => void answer(options, method, head, exchange, body),
    () => sendError(exchange, tooLarge, requestId),
  );
}

/** Errors: BODY_MALFORMED. An unknown content type is ''. */
function headOf(exchange: HttpExchange, requestId: string, timeoutMsMax: number): Head {
  const stated = exchange.header('content-type').replace(/;.*$/s, '').trim().toLowerCase();
  const version = exchange.header('connect-protocol-version');
  if (version !== '' && version !== '1') {
    throw new AppError('BODY_MALFORMED', 'Connect-Protocol-Version must be 1');
  }
  const encoding = exchange.header('content-encoding').trim().toLowerCase();
  if (!['', 'identity', 'gzip'].includes(encoding)) {
    throw new AppError('BODY_MALFORMED', 'Content-Encoding must be identity or gzip');
  }
  const timeout = exchange.header('connect-timeout-ms');
  if (timeout !== '' && !TIMEOUT_HEADER.test(timeout)) {
    throw new AppError('BODY_MALFORMED', 'Connect-Timeout-Ms must be at most 10 digits');
  }
  return {
    requestId,
    contentType: stated === JSON_TYPE || stated === PROTO_TYPE ? stated : '',
    isGzip: encoding === 'gzip',
    timeoutMs: timeout === '' ? timeoutMsMax : Math.min(Number(timeout), timeoutMsMax),
  };
}

async function answer(
  options: ConnectListenerOptions,
  method: Method,
  head: Head,
  exchange: HttpExchange,
  body: Uint8Array,
): Promise<void> {
  const startMs = performance.now();
  const { requestId } = head;
  let code = 'ok';
  try {
    const bytes = head.isGzip ? await gunzipLimited(body, options.bodyBytesMax) : body;
    const request = decode(method.input, head.contentType, bytes);
    const response = await withDeadline(method.handle(request, { requestId }), head.timeoutMs);
    const encoded =
      head.contentType === JSON_TYPE
        ? toJsonString(method.output, response, {
            alwaysEmitImplicit: true,
            useProtoFieldName: true,
          })
        : toBinary(method.output, response);
    exchange.send(200, head.contentType, encoded, ['x-request-id', requestId]);
  } catch (error) {
    ({ code } = errorAnswer(error));
    if (code === 'internal') options.onInternalError(method.procedure, requestId, error);
    sendError(exchange, error, requestId);
  }
  const durationMs = performance.now() - startMs;
  options.onCall({ procedure: method.procedure, method: method.name, code, durationMs, requestId });
}

/** Errors: BODY_MALFORMED, which names what is wrong but never quotes a value. */
function decode(input: DescMessage, contentType: string, bytes: Uint8Array): Message {
  if (contentType === PROTO_TYPE) {
    try {
      return fromBinary(input, bytes);
    } catch (error) {
      throw new AppError('BODY_MALFORMED', `the body is no ${input.typeName}`, {}, error);
    }
  }
  // Connect: an empty JSON body is an empty message.
  if (bytes.length === 0) return create(input);
  try {
    return fromJsonString(input, strictUtf8.decode(bytes));
  } catch (error) {
    throw new AppError('BODY_MALFORMED', jsonProblem(input, error), {}, error);
  }
}

/** The library's texts name the field and the kind of mistake; what they quote is cut off. */
function jsonProblem(input: DescMessage, error: unknown): string {
  const text = error instanceof Error ? error.message : '';
  const field = /(?:field|key) "?([\w.]+)"?/.exec(text)?.[1] ?? /\.(\w+)\b/.exec(text)?.[1];
  const where = field === undefined ? '' : `; look at ${field}`;
  return `the body is no JSON of ${input.typeName}${where}`;
}

async function withDeadline<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new AppError('DEADLINE_EXCEEDED', `no answer within ${timeoutMs} ms`));
    }, timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function sendError(exchange: HttpExchange, error: unknown, requestId: string): void {
  const { status, body } = errorAnswer(error);
  const extra = requestId === '' ? [] : ['x-request-id', requestId];
  exchange.send(status, JSON_TYPE, body, extra);
}
