import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { anyPack, type Any } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect';
import type { ServiceRouter } from '../../src/http/connect/adapter-options.ts';
import {
  BidiStreamRequestSchema,
  ClientStreamRequestSchema,
  ConformancePayload_RequestInfoSchema,
  type ConformancePayloadSchema,
  ConformanceService,
  type HeaderSchema,
  IdempotentUnaryRequestSchema,
  ServerStreamRequestSchema,
  UnaryRequestSchema,
  type BidiStreamRequest,
  type Error as ErrorDefinition,
  type Header,
  type StreamResponseDefinition,
  type UnaryResponseDefinition,
} from './gen/connectrpc/conformance/v1/service_pb.ts';

type Payload = MessageInitShape<typeof ConformancePayloadSchema>;

/** The service that the suite's reference client calls, as its proto file describes it. */
export function conformanceRoutes(router: ServiceRouter): void {
  router.service(ConformanceService, {
    unary: async (request, context) => ({
      payload: await unaryPayload(request.responseDefinition, context, [
        anyPack(UnaryRequestSchema, request),
      ]),
    }),
    idempotentUnary: async (request, context) => ({
      payload: await unaryPayload(request.responseDefinition, context, [
        anyPack(IdempotentUnaryRequestSchema, request),
      ]),
    }),
    clientStream: async (requests, context) => {
      const received: Any[] = [];
      let definition: UnaryResponseDefinition | undefined;
      for await (const request of requests) {
        if (received.length === 0) definition = request.responseDefinition;
        received.push(anyPack(ClientStreamRequestSchema, request));
      }
      return { payload: await unaryPayload(definition, context, received) };
    },
    async *serverStream(request, context) {
      const definition = request.responseDefinition;
      if (definition === undefined) return;
      setHeaders(definition, context);
      const received = [anyPack(ServerStreamRequestSchema, request)];
      for (const [index, data] of definition.responseData.entries()) {
        await pause(definition.responseDelayMs);
        yield {
          payload: { data, ...(index === 0 ? { requestInfo: info(context, received) } : {}) },
        };
      }
      failIfDefined(definition, context, received);
    },
    async *bidiStream(requests, context) {
      yield* bidi(requests, context);
    },
  });
}

async function* bidi(
  requests: AsyncIterable<BidiStreamRequest>,
  context: HandlerContext,
): AsyncGenerator<{ payload: Payload }> {
  let definition: StreamResponseDefinition | undefined;
  let isFullDuplex = false;
  let isFirst = true;
  let sentCount = 0;
  let received: Any[] = [];
  for await (const request of requests) {
    received.push(anyPack(BidiStreamRequestSchema, request));
    if (isFirst) {
      isFirst = false;
      definition = request.responseDefinition;
      isFullDuplex = request.fullDuplex;
      if (definition !== undefined) setHeaders(definition, context);
    }
    if (!isFullDuplex) continue;
    const data = definition?.responseData[sentCount];
    if (definition === undefined || data === undefined) break;
    const requestInfo = sentCount === 0 ? info(context, received) : { requests: received };
    await pause(definition.responseDelayMs);
    yield { payload: { data, requestInfo } };
    sentCount += 1;
    received = [];
  }
  if (definition === undefined) return;
  for (const data of definition.responseData.slice(sentCount)) {
    await pause(definition.responseDelayMs);
    yield {
      payload: { data, ...(sentCount === 0 ? { requestInfo: info(context, received) } : {}) },
    };
    sentCount += 1;
  }
  failIfDefined(definition, context, received);
}

async function unaryPayload(
  definition: UnaryResponseDefinition | undefined,
  context: HandlerContext,
  received: Any[],
): Promise<Payload> {
  const requestInfo = info(context, received);
  if (definition === undefined) return { requestInfo };
  setHeaders(definition, context);
  await pause(definition.responseDelayMs);
  const { response } = definition;
  if (response.case === 'error') throw connectErrorFrom(response.value, requestInfo);
  return response.case === 'responseData' ? { requestInfo, data: response.value } : { requestInfo };
}

function failIfDefined(
  definition: StreamResponseDefinition,
  context: HandlerContext,
  received: Any[],
): void {
  if (definition.error === undefined) return;
  const hasSent = definition.responseData.length > 0;
  throw connectErrorFrom(definition.error, hasSent ? undefined : info(context, received));
}

function connectErrorFrom(
  definition: ErrorDefinition,
  requestInfo: MessageInitShape<typeof ConformancePayload_RequestInfoSchema> | undefined,
): ConnectError {
  // Both enums are the codes of gRPC, under the same numbers.
  const code = Code[Code[definition.code as number] as keyof typeof Code];
  const error = new ConnectError(definition.message ?? '', code);
  error.details = definition.details.map((detail) => ({
    type: detail.typeUrl.slice(detail.typeUrl.lastIndexOf('/') + 1),
    value: detail.value,
  }));
  if (requestInfo !== undefined) {
    const value = create(ConformancePayload_RequestInfoSchema, requestInfo);
    error.details.push({ desc: ConformancePayload_RequestInfoSchema, value });
  }
  return error;
}

function info(
  context: HandlerContext,
  requests: Any[],
): MessageInitShape<typeof ConformancePayload_RequestInfoSchema> {
  const timeoutMs = context.timeoutMs();
  const requestHeaders: MessageInitShape<typeof HeaderSchema>[] = [];
  context.requestHeader.forEach((value, name) => {
    requestHeaders.push({ name, value: value.split(', ') });
  });
  const known = timeoutMs === undefined ? {} : { timeoutMs: BigInt(Math.round(timeoutMs)) };
  return { requestHeaders, requests, ...known };
}

function setHeaders(
  definition: { responseHeaders: Header[]; responseTrailers: Header[] },
  context: HandlerContext,
): void {
  for (const { name, value } of definition.responseHeaders) {
    for (const one of value) context.responseHeader.append(name, one);
  }
  for (const { name, value } of definition.responseTrailers) {
    for (const one of value) context.responseTrailer.append(name, one);
  }
}

async function pause(delayMs: number): Promise<void> {
  if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
}
