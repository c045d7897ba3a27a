import {
  toBinary,
  toJsonString,
  type DescMessage,
  type JsonReadOptions,
  type JsonWriteOptions,
  type Message,
} from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  createContextValues,
  createHandlerContext,
  type Interceptor,
} from '@connectrpc/connect';
import {
  compressionNegotiate,
  contentTypeMatcher,
  createMethodUrl,
  invokeUnaryImplementation,
  mergeNonProtocolHeaders,
  type Compression,
  type UniversalHandler,
} from '@connectrpc/connect/protocol';
import {
  contentTypeUnaryRegExp,
  errorToJsonBytes,
  parseContentType,
  parseTimeout,
  trailerMux,
} from '@connectrpc/connect/protocol-connect';
import { ANSWER_JSON } from '../../shared/answer-json.ts';
import { AppError } from '../../shared/app-error.ts';
import { gunzipCounted } from '../bodies/gunzip-counted.ts';
import { bodyTooLarge } from '../bodies/gunzip-limited.ts';
import { outgoingError, rpcOf, untilAborted, type ErrorPolicy } from './adapter-guard.ts';
import { TIMEOUT_MS_MAX } from './call-timeouts.ts';
import { BytesBody, WholeBody } from './messages/adapter-body.ts';
import { kDecompressed } from './messages/counted-messages.ts';
import { encodedJsonOf } from './messages/encoded-answer.ts';
import type { MessageDecoding } from './messages/message-decoding.ts';
import { httpStatusOfCode } from './protocol/connect-errors.ts';
import type { ConnectReason } from './protocol/connect-reason.ts';
import { assertKnownVersion } from './protocol/protocol-version.ts';
import type { UniversalRequest, UniversalResponse } from './protocol/universal.ts';

type MethodSpec = Parameters<typeof invokeUnaryImplementation>[0];
type HandlerContext = ReturnType<typeof createHandlerContext>;

export type UnaryOptions = {
  readonly policy: ErrorPolicy;
  readonly writeMaxBytes: number;
  readonly compressMinBytes: number;
  readonly compressions: Compression[];
  readonly interceptors: Interceptor[];
  readonly json: Partial<JsonReadOptions & JsonWriteOptions>;
  readonly decoding: MessageDecoding;
};

/** Why the signal of a call is aborted when it has ended; a constant, since a stack costs more. */
const COMPLETE = new AppError<ConnectReason>('CANCELLED', 'the call is complete');
const utf8 = new TextEncoder();

/**
 * Serves one unary method over the Connect protocol. It stands in for Connect's own handler, which
 * answers failed_precondition with 400, a broken protobuf body with 500 and lets a handler outlive
 * its deadline; the protocol itself is the same and held by Connect's conformance suite.
 */
export function createUnaryConnectHandler(
  spec: MethodSpec,
  options: UnaryOptions,
): UniversalHandler {
  const { method } = spec;
  const { callers } = options.policy;
  const mayChange = callers.isChange(`/${rpcOf(method)}`);
  const handle = async (request: UniversalRequest): Promise<UniversalResponse> => {
    const type = parseContentType(request.header.get('content-type'));
    if (type === undefined || type.stream) return { status: 415 };
    const timeout = parseTimeout(request.header.get('connect-timeout-ms'), TIMEOUT_MS_MAX);
    const context = createHandlerContext({
      ...spec,
      service: method.parent,
      requestMethod: request.method,
      protocolName: 'connect',
      ...(timeout.timeoutMs === undefined ? {} : { timeoutMs: timeout.timeoutMs }),
      requestSignal: request.signal,
      requestHeader: request.header,
      url: request.url,
      responseHeader: { 'content-type': type.binary ? 'application/proto' : 'application/json' },
      contextValues: request.contextValues ?? createContextValues(),
    });
    const compression = compressionNegotiate(
      options.compressions,
      request.header.get('content-encoding'),
      request.header.get('accept-encoding'),
      'accept-encoding',
    );
    let status = 200;
    let body: Uint8Array;
    try {
      assertKnownVersion(request.header);
      if (compression.error !== undefined) throw compression.error;
      if (timeout.error !== undefined) throw timeout.error;
      const call = async (): Promise<Message> => {
        const bytes = await readBody(request, compression.request, options.policy.readMaxBytes);
        const admitted = context.values.get(callers.key);
        const decoded = options.decoding.decode(method, type.binary, bytes, admitted, true);
        const input = decoded instanceof Promise ? await decoded : decoded;
        return invokeUnaryImplementation(spec, context, input, options.interceptors);
      };
      const output = await untilAborted(call(), context.signal, mayChange);
      body = encode(method.output, type.binary, output, options);
    } catch (failure) {
      const error = outgoingError(failure, options.policy, method, context.values);
      status = httpStatusOfCode(error.code);
      body = writeError(context, error);
    } finally {
      context.abort(COMPLETE);
    }
    if (compression.response !== null && body.byteLength >= options.compressMinBytes) {
      body = await compression.response.compress(body);
      context.responseHeader.set('content-encoding', compression.response.name);
    }
    const header = trailerMux(context.responseHeader, context.responseTrailer);
    return { status, header, body: new BytesBody(body) };
  };
  return Object.assign(handle, {
    protocolNames: ['connect'],
    supportedContentType: contentTypeMatcher(contentTypeUnaryRegExp),
    allowedMethods: ['POST'],
    requestPath: createMethodUrl('/', method),
    service: method.parent,
    method,
  });
}

async function readBody(
  request: UniversalRequest,
  compression: Compression | null,
  maxBytes: number,
): Promise<Uint8Array> {
  if (!(request.body instanceof WholeBody)) {
    throw new AppError<ConnectReason>('INTERNAL', 'a unary body is read whole');
  }
  const bytes = await request.body.whole;
  if (bytes.byteLength > maxBytes) throw bodyTooLarge(maxBytes);
  if (compression === null) return bytes;
  const hold = request.contextValues?.get(kDecompressed) ?? null;
  return hold === null
    ? compression.decompress(bytes, maxBytes)
    : gunzipCounted(bytes, maxBytes, hold);
}

function encode(
  desc: DescMessage,
  isBinary: boolean,
  message: Message,
  options: UnaryOptions,
): Uint8Array {
  const bytes = isBinary
    ? toBinary(desc, message)
    : (encodedJsonOf(message) ?? utf8.encode(toJsonString(desc, message, options.json)));
  if (bytes.byteLength > options.writeMaxBytes) {
    const metadata = { limit_bytes: String(options.writeMaxBytes) };
    const problem = `the answer is larger than ${options.writeMaxBytes} bytes`;
    throw new AppError<ConnectReason>('RESULT_TOO_LARGE', problem, metadata);
  }
  return bytes;
}

function writeError(context: HandlerContext, error: ConnectError): Uint8Array {
  context.responseHeader.set('content-type', 'application/json');
  if (!error.isWireError) mergeNonProtocolHeaders(context.responseHeader, error.metadata);
  try {
    return errorToJsonBytes(error, ANSWER_JSON);
  } catch {
    // A detail that cannot be serialized must not cost the caller the code.
    return errorToJsonBytes(new ConnectError('internal error', Code.Internal), undefined);
  }
}
