import type { DescMethod, JsonReadOptions, JsonWriteOptions, Registry } from '@bufbuild/protobuf';
import {
  createMethodImplSpec,
  createServiceImplSpec,
  type ConnectRouter,
  type HandlerContext,
  type Interceptor,
  type MethodImpl,
  type MethodImplSpec,
} from '@connectrpc/connect';
import {
  createUniversalMethodHandler,
  validateUniversalHandlerOptions,
  type Compression,
  type ProtocolHandlerFactory,
  type UniversalHandler,
} from '@connectrpc/connect/protocol';
import { createHandlerFactory as createConnectFactory } from '@connectrpc/connect/protocol-connect';
import { createHandlerFactory as createGrpcFactory } from '@connectrpc/connect/protocol-grpc';
import { createHandlerFactory as createGrpcWebFactory } from '@connectrpc/connect/protocol-grpc-web';
import { ANSWER_JSON } from '../../shared/answer-json.ts';
import { AppError } from '../../shared/app-error.ts';
import { createGuard, type ErrorPolicy, rpcOf } from './adapter-guard.ts';
import { createUnaryConnectHandler } from './adapter-unary.ts';
import { TIMEOUT_MS_MAX } from './call-timeouts.ts';
import { gzipCompression } from './messages/adapter-compression.ts';
import { putInBuilt } from './messages/built-messages.ts';
import type { MessageDecoding } from './messages/message-decoding.ts';
import type { ConnectReason } from './protocol/connect-reason.ts';
import { useGrpcTrailer } from './protocol/grpc-trailer.ts';
import { knownVersionOnly } from './protocol/protocol-version.ts';

export type RouterOptions = {
  readonly policy: ErrorPolicy;
  readonly writeMaxBytes: number;
  readonly compressMinBytes: number;
  readonly interceptors: readonly Interceptor[];
  readonly decoding: MessageDecoding;
  /** Of `jsonOptionsOf`. */
  readonly json: Partial<JsonReadOptions & JsonWriteOptions>;
  readonly drainSignal: AbortSignal | undefined;
};

/** Every field is emitted under its proto name, and an unknown one is refused. */
const JSON_OPTIONS: Partial<JsonReadOptions & JsonWriteOptions> = {
  ...ANSWER_JSON,
  ignoreUnknownFields: false,
};
/** How requests and answers are read and written in JSON. `registry`: types that google.protobuf.Any may hold. */
export function jsonOptionsOf(
  registry: Registry | undefined,
): Partial<JsonReadOptions & JsonWriteOptions> {
  return registry === undefined ? JSON_OPTIONS : { ...JSON_OPTIONS, registry };
}

const COMPRESSIONS: Compression[] = [gzipCompression];

/**
 * Connect's router with our own unary handler for the Connect protocol, the guard around all other
 * calls, and AppErrors instead of ConnectErrors for methods without an implementation.
 */
export function createRouter(options: RouterOptions): ConnectRouter {
  const protocols = protocolsOf(options);
  const handlers: UniversalHandler[] = [];
  const add = (spec: MethodImplSpec): void => {
    handlers.push(createUniversalMethodHandler(spec, protocols));
  };
  const router: ConnectRouter = {
    handlers,
    service(service, implementation) {
      const spec = createServiceImplSpec(service, implementation);
      for (const method of service.methods) {
        const found = spec.methods[method.localName];
        const isBuilt = method.localName in implementation;
        if (found !== undefined) add(isBuilt ? found : unbuilt(method));
      }
      return router;
    },
    rpc(method, implementation) {
      add(createMethodImplSpec(method, implementation));
      return router;
    },
  };
  return router;
}

function protocolsOf(options: RouterOptions): ProtocolHandlerFactory[] {
  const { json } = options;
  const guard = createGuard(options.policy, options.drainSignal);
  const shared = validateUniversalHandlerOptions({
    acceptCompression: COMPRESSIONS,
    compressMinBytes: options.compressMinBytes,
    readMaxBytes: options.policy.readMaxBytes,
    writeMaxBytes: options.writeMaxBytes,
    maxTimeoutMs: TIMEOUT_MS_MAX,
    jsonOptions: json,
    interceptors: [guard, putInBuilt, ...options.interceptors],
  });
  const unaryOptions = {
    policy: options.policy,
    writeMaxBytes: options.writeMaxBytes,
    compressMinBytes: options.compressMinBytes,
    compressions: COMPRESSIONS,
    interceptors: [...options.interceptors],
    json,
    decoding: options.decoding,
  };
  const connectStreams = createConnectFactory({
    ...shared,
    interceptors: [guard, knownVersionOnly, putInBuilt, ...options.interceptors],
  });
  const connect: ProtocolHandlerFactory = Object.assign(
    (spec: MethodImplSpec) =>
      spec.kind === 'unary' ? createUnaryConnectHandler(spec, unaryOptions) : connectStreams(spec),
    { protocolName: 'connect' },
  );
  const grpc = { ...shared, requestGate: useGrpcTrailer };
  return [guardedUnary(createGrpcFactory(grpc)), guardedUnary(createGrpcWebFactory(grpc)), connect];
}

/**
 * Connect decodes the message of a unary gRPC call outside its interceptors, so that the guard would
 * never see that error. Presented as a stream of one message it is decoded inside; on the wire both
 * are the same.
 */
function guardedUnary(factory: ProtocolHandlerFactory): ProtocolHandlerFactory {
  const guarded = (spec: MethodImplSpec): UniversalHandler => {
    if (spec.kind !== 'unary') return factory(spec);
    const { impl, method } = spec;
    const stream = async function* one(request: never, context: HandlerContext) {
      yield await impl(request, context);
    };
    return factory({ kind: 'server_streaming', method, impl: stream } as unknown as MethodImplSpec);
  };
  return Object.assign(guarded, { protocolName: factory.protocolName });
}

function unbuilt(method: DescMethod): MethodImplSpec {
  const name = rpcOf(method);
  const refuse = (): never => {
    throw new AppError<ConnectReason>('METHOD_UNIMPLEMENTED', `${name} is not built yet`, {
      method: name,
    });
  };
  return createMethodImplSpec(method, refuse as unknown as MethodImpl<DescMethod>);
}
