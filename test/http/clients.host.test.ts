import { create, createRegistry, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from '@connectrpc/connect-node';
import { createAsyncIterable } from '@connectrpc/connect/protocol';
import * as grpc from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ErrorInfoSchema } from '../../src/gen/google/rpc/error_details_pb.ts';
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as Status,
  HealthCheckResponseSchema,
  type HealthCheckResponse,
} from '../../src/gen/grpc/health/v1/health_pb.ts';
import { ServerReflection } from '../../src/gen/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as ServerReflectionV1Alpha } from '../../src/gen/grpc/reflection/v1alpha/reflection_pb.ts';
import {
  AuthzService,
  CheckRequestSchema,
  CheckResponseSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { AppError } from '../../src/shared/app-error.ts';
import {
  ConformanceService,
  file_connectrpc_conformance_v1_service,
} from '../conformance-connect/gen/connectrpc/conformance/v1/service_pb.ts';
import { READ_MAX_BYTES, startServer, waitFor, type TestServer } from './start-server.ts';

let target: TestServer;
const sessions: Http2SessionManager[] = [];

beforeAll(async () => {
  target = await startServer();
});
afterAll(async () => {
  for (const session of sessions) session.abort();
  await target.server.stop(1_000);
});

type Make = (baseUrl: string) => Transport;

function http2Session(baseUrl: string): Http2SessionManager {
  const session = new Http2SessionManager(baseUrl);
  sessions.push(session);
  return session;
}

const transports: [string, Make, boolean][] = [
  [
    'Connect JSON, HTTP/1.1',
    (baseUrl) => createConnectTransport({ baseUrl, httpVersion: '1.1' }),
    false,
  ],
  [
    'Connect binary, HTTP/1.1',
    (baseUrl) => createConnectTransport({ baseUrl, httpVersion: '1.1', useBinaryFormat: true }),
    false,
  ],
  [
    'gRPC-Web, HTTP/1.1',
    (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: '1.1' }),
    false,
  ],
  [
    'Connect JSON, HTTP/2',
    (baseUrl) =>
      createConnectTransport({ baseUrl, httpVersion: '2', sessionManager: http2Session(baseUrl) }),
    true,
  ],
  [
    'gRPC-Web, HTTP/2',
    (baseUrl) =>
      createGrpcWebTransport({ baseUrl, httpVersion: '2', sessionManager: http2Session(baseUrl) }),
    true,
  ],
  [
    'gRPC',
    (baseUrl) => createGrpcTransport({ baseUrl, sessionManager: http2Session(baseUrl) }),
    true,
  ],
  [
    'gRPC JSON, gzip',
    (baseUrl) =>
      createGrpcTransport({
        baseUrl,
        sessionManager: http2Session(baseUrl),
        useBinaryFormat: false,
        sendCompression: compressionGzip,
        acceptCompression: [compressionGzip],
        compressMinBytes: 1,
        jsonOptions: { registry: createRegistry(file_connectrpc_conformance_v1_service) },
      }),
    true,
  ],
];

async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ConnectError) return error;
    throw error;
  }
  throw new Error('the call succeeded');
}

describe.each(transports)('%s', (_name, make, isHttp2) => {
  const query = { namespace: 'doc', objectId: 'a', relation: 'viewer', subjectUserId: 'alice' };

  test('unary calls, many at once', async () => {
    const client = createClient(AuthzService, make(target.baseUrl));
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        client.check({ ...query, subjectUserId: i % 2 === 0 ? 'alice' : 'bob' }),
      ),
    );
    expect(answers.map((answer) => answer.allowed)).toEqual(answers.map((_, i) => i % 2 === 0));
  });

  test('errors arrive with code, text and ErrorInfo', async () => {
    const client = createClient(AuthzService, make(target.baseUrl));
    const error = await failureOf(client.check({ ...query, objectId: 'reason:REGION_REFUSED' }));
    expect(error.code).toBe(Code.FailedPrecondition);
    expect(error.rawMessage).toBe('on request');
    const [info] = error.findDetails(ErrorInfoSchema);
    expect(info).toMatchObject({ reason: 'REGION_REFUSED', domain: 'gatehouse' });
  });

  test('what was not foreseen says nothing', async () => {
    const client = createClient(AuthzService, make(target.baseUrl));
    const error = await failureOf(client.check({ ...query, objectId: 'throw' }));
    expect(error.code).toBe(Code.Internal);
    expect(error.rawMessage).toBe('internal error');
  });

  test('methods that are not built, and services that do not exist', async () => {
    const transport = make(target.baseUrl);
    const unbuilt = await failureOf(createClient(AuthzService, transport).expand({}));
    expect(unbuilt.code).toBe(Code.Unimplemented);
    const missing = {
      ...Health.method.check,
      parent: { ...Health, typeName: 'grpc.health.v1.Gone' },
    };
    const unknown = await failureOf(transport.unary(missing, undefined, 1_000, undefined, {}));
    expect(unknown.code).toBe(Code.Unimplemented);
  });

  test('deadlines', async () => {
    const client = createClient(AuthzService, make(target.baseUrl));
    const error = await failureOf(
      client.check({ ...query, objectId: 'stuck:400' }, { timeoutMs: 60 }),
    );
    expect(error.code).toBe(Code.DeadlineExceeded);
  });

  test('cancellation reaches the handler', async () => {
    const client = createClient(AuthzService, make(target.baseUrl));
    const controller = new AbortController();
    const relation = `cancel-${Math.random()}`;
    const call = client.check(
      { ...query, relation, objectId: 'wait:20000' },
      { signal: controller.signal },
    );
    setTimeout(() => controller.abort(), 100);
    expect((await failureOf(call)).code).toBe(Code.Canceled);
    await waitFor(() => target.aborted.includes(relation));
  });

  test('messages over the limit', async () => {
    const client = createClient(AuthzService, make(target.baseUrl));
    const objectId = 'x'.repeat(READ_MAX_BYTES + 100);
    const error = await failureOf(client.check({ ...query, objectId }));
    expect(error.code).toBe(Code.ResourceExhausted);
    expect(error.findDetails(ErrorInfoSchema)[0]?.reason).toBe('BODY_TOO_LARGE');
  });

  test('server streams: the first status at once, then every change, until the caller leaves', async () => {
    const client = createClient(Health, make(target.baseUrl));
    const service = `service-${Math.random()}`;
    const seen: Status[] = [];
    const controller = new AbortController();
    const watching = (async () => {
      for await (const { status } of client.watch({ service }, { signal: controller.signal })) {
        seen.push(status);
      }
    })();
    await waitFor(() => seen.length === 1);
    target.health.setServing(service, true);
    await waitFor(() => seen.length === 2);
    target.health.setServing(service, true);
    target.health.setServing(service, false);
    await waitFor(() => seen.length === 3);
    expect(seen).toEqual([Status.SERVICE_UNKNOWN, Status.SERVING, Status.NOT_SERVING]);
    controller.abort();
    await failureOf(watching);
    await waitFor(() => target.health.watcherCount === 0);
  });

  test('client streams', async () => {
    const client = createClient(ConformanceService, make(target.baseUrl));
    const answer = await client.clientStream(
      createAsyncIterable(
        Array.from({ length: 100 }, () => ({ requestData: new Uint8Array(1_000) })),
      ),
    );
    expect(answer.payload?.requestInfo?.requests).toHaveLength(100);
  });

  test.runIf(isHttp2)('bidirectional streams, in turns', async () => {
    const client = createClient(ServerReflection, make(target.baseUrl));
    let release: () => void = () => undefined;
    const asked = ['', 'workspace.v1.AuthzService'];
    const answers = client.serverReflectionInfo(
      (async function* ask() {
        yield { messageRequest: { case: 'listServices' as const, value: '' } };
        await new Promise<void>((resolve) => (release = resolve));
        yield { messageRequest: { case: 'fileContainingSymbol' as const, value: asked[1] ?? '' } };
      })(),
    );
    const cases: (string | undefined)[] = [];
    for await (const answer of answers) {
      cases.push(answer.messageResponse.case);
      release();
    }
    expect(cases).toEqual(['listServicesResponse', 'fileDescriptorResponse']);
  });
});

test('reflection answers by symbol, method, file, and says what it does not know', async () => {
  const transport = createGrpcTransport({
    baseUrl: target.baseUrl,
    sessionManager: http2Session(target.baseUrl),
  });
  for (const service of [ServerReflection, ServerReflectionV1Alpha]) {
    const client = createClient(service as typeof ServerReflection, transport);
    const ask = async (
      ...requests: { case: string; value: unknown }[]
    ): Promise<{ case: string | undefined; value?: unknown }[]> => {
      const answers = [];
      const input = createAsyncIterable(
        requests.map((messageRequest) => ({ messageRequest }) as never),
      );
      for await (const answer of client.serverReflectionInfo(input))
        answers.push(answer.messageResponse);
      return answers;
    };
    const [list, method, file, missing, extension, nothing] = await ask(
      { case: 'listServices', value: '' },
      { case: 'fileContainingSymbol', value: 'workspace.v1.AuthzService.Check' },
      { case: 'fileByFilename', value: 'google/protobuf/struct.proto' },
      { case: 'fileContainingSymbol', value: 'no.such.Thing' },
      { case: 'allExtensionNumbersOfType', value: 'workspace.v1.CheckRequest' },
      { case: 'fileContainingExtension', value: { containingType: 'a.B', extensionNumber: 1 } },
    );
    expect(JSON.stringify(list)).toContain('workspace.v1.AuthzService');
    expect(JSON.stringify(list)).toContain('grpc.reflection.v1alpha.ServerReflection');
    expect(method?.case).toBe('fileDescriptorResponse');
    expect(file?.case).toBe('fileDescriptorResponse');
    expect(missing).toMatchObject({ case: 'errorResponse', value: { errorCode: 5 } });
    expect(extension?.case).toBe('allExtensionNumbersResponse');
    expect(nothing?.case).toBe('errorResponse');
  }
});

describe('@grpc/grpc-js', () => {
  type Callback = (error: grpc.ServiceError | null, response?: HealthCheckResponse) => void;

  function healthClient(): {
    check(service: string): Promise<HealthCheckResponse>;
    watch(service: string): grpc.ClientReadableStream<HealthCheckResponse>;
    close(): void;
  } {
    const client = new grpc.Client(`127.0.0.1:${target.port}`, grpc.credentials.createInsecure());
    const encode = (service: string): Buffer =>
      Buffer.from(
        toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service })),
      );
    const decode = (bytes: Buffer): HealthCheckResponse =>
      fromBinary(HealthCheckResponseSchema, bytes);
    return {
      check: (service) =>
        new Promise((resolve, reject) => {
          const done: Callback = (error, response) =>
            error === null && response !== undefined
              ? resolve(response)
              : reject(error ?? new Error('no answer'));
          client.makeUnaryRequest('/grpc.health.v1.Health/Check', encode, decode, service, done);
        }),
      watch: (service) =>
        client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', encode, decode, service),
      close: () => client.close(),
    };
  }

  test('health: check, not found, watch', async () => {
    const client = healthClient();
    expect((await client.check('')).status).toBe(Status.SERVING);
    await expect(client.check('gone')).rejects.toMatchObject({ code: grpc.status.NOT_FOUND });
    const stream = client.watch('');
    stream.on('error', () => undefined);
    const first = await new Promise<HealthCheckResponse>((resolve) => stream.once('data', resolve));
    expect(first.status).toBe(Status.SERVING);
    stream.cancel();
    client.close();
  });

  test('1,000 calls at once, errors with details, unknown methods, broken messages', async () => {
    const client = new grpc.Client(`127.0.0.1:${target.port}`, grpc.credentials.createInsecure());
    const call = (path: string, bytes: Uint8Array): Promise<Buffer> =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          path,
          (value: Uint8Array) => Buffer.from(value),
          (value: Buffer) => value,
          bytes,
          (error, value) => (error === null ? resolve(value as Buffer) : reject(error)),
        );
      });
    const path = '/workspace.v1.AuthzService/Check';
    const encode = (objectId: string): Uint8Array =>
      toBinary(
        CheckRequestSchema,
        create(CheckRequestSchema, { objectId, subjectUserId: 'alice' }),
      );
    const answers = await Promise.all(Array.from({ length: 1_000 }, () => call(path, encode('a'))));
    expect(answers.every((bytes) => fromBinary(CheckResponseSchema, bytes).allowed)).toBe(true);

    await expect(call(path, encode('reason:PROJECT_UNKNOWN'))).rejects.toMatchObject({
      code: grpc.status.NOT_FOUND,
      details: 'on request',
    });
    await expect(call('/workspace.v1.AuthzService/Nope', encode('a'))).rejects.toMatchObject({
      code: grpc.status.UNIMPLEMENTED,
    });
    await expect(call(path, new Uint8Array([0x0a, 0xff]))).rejects.toMatchObject({
      code: grpc.status.INVALID_ARGUMENT,
    });
    client.close();
  });
});

test('streams end when the service drains, with a reason that invites a retry', async () => {
  const own = await startServer();
  const transport = createGrpcTransport({
    baseUrl: own.baseUrl,
    sessionManager: http2Session(own.baseUrl),
  });
  const overHttp1 = createConnectTransport({ baseUrl: own.baseUrl, httpVersion: '1.1' });
  const seen: number[] = [];
  const watch = async (each: Transport): Promise<void> => {
    for await (const answer of createClient(Health, each).watch({})) seen.push(answer.status);
  };
  const watching = [failureOf(watch(transport)), failureOf(watch(overHttp1))];
  await waitFor(() => seen.length === 2);
  own.server.beginDrain();
  own.drain.abort(new AppError('SHUTTING_DOWN', 'the service is shutting down'));
  for (const error of await Promise.all(watching)) expect(error.code).toBe(Code.Unavailable);
  await own.server.stop(5_000);
  expect(own.incidents).not.toContain('drain_deadline');
});
