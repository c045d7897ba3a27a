/* The notification service as clients of gRPC, gRPC-Web and Connect meet it, over HTTP/1.1 and HTTP/2. */
import http2 from 'node:http2';
import { gzipSync } from 'node:zlib';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  createClient,
  type Interceptor,
  type Transport,
} from '@connectrpc/connect';
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import * as grpc from '@grpc/grpc-js';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ErrorInfoSchema } from '../../src/gen/google/rpc/error_details_pb.ts';
import { DeliveryService } from '../../src/gen/notify/v1/delivery_service_pb.ts';
import {
  Channel,
  ListNotificationsRequestSchema,
  ListNotificationsResponseSchema,
  NotifyRequestSchema,
  NotifyResponseSchema,
  NotifyService,
} from '../../src/gen/notify/v1/notify_service_pb.ts';
import { StreamService } from '../../src/gen/notify/v1/stream_service_pb.ts';
import { callHttp2, envelope, type Http2Answer } from '../support/http2-calls.ts';
import { freshDatabase, SERVICE_TOKEN, series } from './support/notify-process.ts';
import { serveNotify, type ServedNotify } from './support/notify-service.ts';
import { poll } from './support/poll.ts';

const AUTHORIZATION = `Bearer ${SERVICE_TOKEN}`;
const NOTIFY_PATH = '/notify.v1.NotifyService/Notify';
const BODY_BYTES_MAX = 128 * 1024;

let service: ServedNotify;
let databaseUrl: string;
let session: http2.ClientHttp2Session;
const undo: (() => unknown)[] = [];

beforeAll(async () => {
  const whenDone = (step: () => unknown): unknown => undo.unshift(step);
  const database = await freshDatabase(whenDone);
  databaseUrl = database['DATABASE_URL'] ?? '';
  service = await serveNotify({ ...database, NOTIFY_LOG_LEVEL: 'debug' }, whenDone);
  session = http2.connect(service.internalUrl);
  undo.unshift(() => session.destroy());
});
afterAll(async () => {
  for (const step of undo) await step();
});

type Authorized = { readonly authorization?: string };
type Make = (baseUrl: string, headers?: Authorized) => Transport;

/** Sends the credential with each call. */
function withToken({ authorization = AUTHORIZATION }: Authorized = {}): {
  readonly interceptors: Interceptor[];
} {
  const send: Interceptor = (next) => (request) => {
    if (authorization !== '') request.header.set('authorization', authorization);
    return next(request);
  };
  return { interceptors: [send] };
}

const GZIP = {
  sendCompression: compressionGzip,
  acceptCompression: [compressionGzip],
  compressMinBytes: 1,
};
const TRANSPORTS: [string, Make][] = [
  ['gRPC', (baseUrl, headers) => createGrpcTransport({ baseUrl, ...withToken(headers) })],
  [
    'gRPC of JSON, gzip',
    (baseUrl, headers) =>
      createGrpcTransport({ baseUrl, useBinaryFormat: false, ...GZIP, ...withToken(headers) }),
  ],
  [
    'gRPC-Web, HTTP/1.1',
    (baseUrl, headers) =>
      createGrpcWebTransport({ baseUrl, httpVersion: '1.1', ...withToken(headers) }),
  ],
  [
    'gRPC-Web, HTTP/2, gzip',
    (baseUrl, headers) =>
      createGrpcWebTransport({ baseUrl, httpVersion: '2', ...GZIP, ...withToken(headers) }),
  ],
  [
    'Connect, HTTP/2',
    (baseUrl, headers) =>
      createConnectTransport({ baseUrl, httpVersion: '2', ...withToken(headers) }),
  ],
  [
    'Connect of JSON, HTTP/1.1, gzip',
    (baseUrl, headers) =>
      createConnectTransport({
        baseUrl,
        httpVersion: '1.1',
        useBinaryFormat: false,
        ...GZIP,
        ...withToken(headers),
      }),
  ],
];

async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  try {
    await call;
  } catch (error) {
    return ConnectError.from(error);
  }
  throw new Error('the call succeeded');
}

/** Code, reason and field of what a call fails with. */
async function refusalOf(call: Promise<unknown>) {
  const error = await failureOf(call);
  const [info] = error.findDetails(ErrorInfoSchema);
  return [Code[error.code], info?.reason, info?.metadata['field']];
}

function titled(
  userId: string,
  title: string,
  more: MessageInitShape<typeof NotifyRequestSchema> = {},
) {
  return { tenantId: 'acme', userId, channels: [Channel.LIVE], title, ...more };
}

describe.each(TRANSPORTS)('%s', (name, make) => {
  const userId = name.replaceAll(/[^a-z0-9]/gi, '-');
  const client = (headers?: Authorized) =>
    createClient(NotifyService, make(service.internalUrl, headers));

  test('all services answer, one call beside others', async () => {
    const notify = client();
    const titles = Array.from({ length: 20 }, (_, i) => `n${i}`);
    const sent = await Promise.all(
      titles.map((title) => notify.notify(titled(userId, title, { body: 'x'.repeat(9_000) }))),
    );
    expect(new Set(sent.map(({ notification }) => notification?.sequence)).size).toBe(20);
    const page = await notify.listNotifications({ tenantId: 'acme', userId, pageSize: 100 });
    expect(page.notifications.map(({ title }) => title).toSorted()).toEqual(titles.toSorted());
    expect(page.unreadCount).toBe(20n);
    const deliveries = createClient(DeliveryService, make(service.internalUrl));
    expect((await deliveries.listDeliveries({ tenantId: 'acme' })).deliveries).toEqual([]);
    const streams = createClient(StreamService, make(service.internalUrl));
    await streams.setStreamPolicy({ tenantId: userId, endsWithToken: true });
    expect((await streams.getStreamPolicy({ tenantId: userId })).endsWithToken).toBe(true);
  });

  test('errors come with code, reason and metadata', async () => {
    const notify = client();
    expect(await refusalOf(notify.notify(titled('', 'x')))).toEqual([
      'InvalidArgument',
      'FIELD_REQUIRED',
      'user_id',
    ]);
    expect(
      await refusalOf(notify.notify(titled(userId, 'x', { channels: [Channel.EMAIL] }))),
    ).toEqual(['FailedPrecondition', 'CHANNEL_UNAVAILABLE', 'channels']);
    expect(await refusalOf(notify.deleteEndpoint({ tenantId: 'acme', id: 'nothing' }))).toEqual([
      'NotFound',
      'ENDPOINT_UNKNOWN',
      undefined,
    ]);
  });

  test('the text of an error is escaped as gRPC has it, if at all', async () => {
    const error = await failureOf(client().notify(titled('a\u0001', 'x')));
    expect(error.rawMessage).toMatch(/^user_id: /);
    const sent = error.metadata.get('grpc-message');
    expect(sent ?? error.rawMessage).toBe(error.rawMessage);
    expect(sent !== null).toBe(name.startsWith('gRPC'));
  });

  test.each(['', 'Bearer ', `Basic ${SERVICE_TOKEN}`, `${AUTHORIZATION}x`])(
    'without a service token nobody is let in: "%s"',
    async (authorization) => {
      expect(await refusalOf(client({ authorization }).notify(titled(userId, 'x')))).toEqual([
        'Unauthenticated',
        'CREDENTIAL_INVALID',
        undefined,
      ]);
    },
  );

  test('a message beyond 128 KiB is refused, and so is one that becomes longer', async () => {
    const body = 'x'.repeat(BODY_BYTES_MAX);
    const error = await failureOf(client().notify(titled(userId, 'x', { body })));
    expect(Code[error.code]).toBe('ResourceExhausted');
    expect(error.findDetails(ErrorInfoSchema)[0]).toMatchObject({
      reason: 'BODY_TOO_LARGE',
      metadata: { limit_bytes: String(BODY_BYTES_MAX) },
    });
  });

  test('a deadline ends a call that the store does not answer', async () => {
    const lock = new pg.Client({ connectionString: databaseUrl });
    await lock.connect();
    try {
      await lock.query('begin; lock table notify.stream in access exclusive mode');
      const error = await failureOf(
        client().notify(titled(`late-${userId}`, 'x'), { timeoutMs: 300 }),
      );
      expect(Code[error.code]).toBe('DeadlineExceeded');
    } finally {
      await lock.end();
    }
    await client().notify(titled(userId, 'after it'));
  });
});

describe('@grpc/grpc-js', () => {
  let client: grpc.Client;
  beforeAll(() => {
    client = new grpc.Client(new URL(service.internalUrl).host, grpc.credentials.createInsecure());
    undo.unshift(() => client.close());
  });

  const metadata = (more: Readonly<Record<string, string>> = {}): grpc.Metadata => {
    const found = new grpc.Metadata();
    const all = { authorization: AUTHORIZATION, ...more };
    for (const [name, value] of Object.entries(all)) found.set(name, value);
    return found;
  };
  const notify = (
    request: MessageInitShape<typeof NotifyRequestSchema>,
    sent = metadata(),
    options: grpc.CallOptions = {},
  ) =>
    new Promise<ReturnType<typeof responseOf>>((resolve, reject) => {
      client.makeUnaryRequest(
        NOTIFY_PATH,
        (value) => Buffer.from(toBinary(NotifyRequestSchema, create(NotifyRequestSchema, value))),
        responseOf,
        request,
        sent,
        options,
        (error, value) => (error === null ? resolve(value as never) : reject(error)),
      );
    });
  const responseOf = (bytes: Buffer) => fromBinary(NotifyResponseSchema, bytes);
  const failed = async (call: Promise<unknown>): Promise<grpc.ServiceError> =>
    call.then(
      () => expect.unreachable('the call succeeded'),
      (error: unknown) => error as grpc.ServiceError,
    );

  test('calls, and reads status, text and details', async () => {
    const { notification } = await notify(titled('grpc', 'from grpc-js'));
    expect(notification).toMatchObject({ userId: 'grpc', title: 'from grpc-js', sequence: 1n });
    const refused = await failed(notify(titled('grpc', '')));
    expect(refused.code).toBe(grpc.status.INVALID_ARGUMENT);
    expect(refused.details).toBe('title is required');
    expect(refused.metadata.get('grpc-status-details-bin')).toHaveLength(1);
    const nobody = await failed(notify(titled('grpc', 'x'), new grpc.Metadata()));
    expect(nobody.code).toBe(grpc.status.UNAUTHENTICATED);
  });

  test('a compressed request is read, and its answer compressed', async () => {
    const gzip = { 'grpc-internal-encoding-request': 'gzip' };
    const long = 'long '.repeat(3_000);
    const { notification } = await notify(titled('grpc', 'gzip', { body: long }), metadata(gzip));
    expect(notification?.body).toBe(long);
  });

  test('a deadline that passed, a method that is not there, a request id', async () => {
    const late = await failed(
      notify(titled('grpc', 'x'), metadata(), { deadline: Date.now() - 1 }),
    );
    expect(late.code).toBe(grpc.status.DEADLINE_EXCEEDED);
    const unknown = await failed(
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          '/notify.v1.NotifyService/NoSuchMethod',
          (value: Buffer) => value,
          (value) => value,
          Buffer.alloc(0),
          metadata(),
          (error, value) => (error === null ? resolve(value) : reject(error)),
        );
      }),
    );
    expect(unknown.code).toBe(grpc.status.UNIMPLEMENTED);
  });
});

/** A call of gRPC by its bytes. */
function framed(
  body: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
  path = NOTIFY_PATH,
): Promise<Http2Answer> {
  const given = {
    'content-type': 'application/grpc',
    authorization: AUTHORIZATION,
    te: 'trailers',
  };
  return callHttp2(session, path, { ...given, ...headers }, [body]);
}

function reasonIn({ fields }: Http2Answer): string | undefined {
  const details = fields['grpc-status-details-bin'];
  return details === undefined
    ? undefined
    : /[A-Z][A-Z_]{7,}/.exec(Buffer.from(details, 'base64').toString('latin1'))?.[0];
}

const good = (userId: string, title = 'x'): Uint8Array =>
  toBinary(NotifyRequestSchema, create(NotifyRequestSchema, titled(userId, title)));

describe('hostile bodies and frames', () => {
  const grpcStatus = (code: Code): string => String(code);
  const bomb = gzipSync(Buffer.alloc(20_000_000));
  const cases: [string, () => Uint8Array, Readonly<Record<string, string>>, Code, string][] = [
    ['no message at all', () => new Uint8Array(0), {}, Code.Unimplemented, 'METHOD_UNIMPLEMENTED'],
    ['half an envelope', () => Buffer.from([0, 0]), {}, Code.InvalidArgument, 'BODY_MALFORMED'],
    [
      'a message that ends early',
      () => envelope(0, good('h')).subarray(0, 9),
      {},
      Code.InvalidArgument,
      'BODY_MALFORMED',
    ],
    [
      'a length of 4 GiB',
      () => Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1]),
      {},
      Code.ResourceExhausted,
      'BODY_TOO_LARGE',
    ],
    [
      'two messages',
      () => Buffer.concat([envelope(0, good('h')), envelope(0, good('h'))]),
      {},
      Code.Unimplemented,
      'METHOD_UNIMPLEMENTED',
    ],
    [
      'no protobuf',
      () => envelope(0, Buffer.from([0xff])),
      {},
      Code.InvalidArgument,
      'BODY_MALFORMED',
    ],
    [
      'long bytes that are no protobuf',
      () => envelope(0, Buffer.alloc(100_000, 0xff)),
      {},
      Code.InvalidArgument,
      'BODY_MALFORMED',
    ],
    [
      'compressed without an encoding',
      () => envelope(1, gzipSync(good('h'))),
      {},
      Code.Internal,
      'INTERNAL',
    ],
    [
      'compressed as nobody knows',
      () => envelope(1, good('h')),
      { 'grpc-encoding': 'br' },
      Code.Unimplemented,
      'METHOD_UNIMPLEMENTED',
    ],
    [
      'no gzip',
      () => envelope(1, good('h')),
      { 'grpc-encoding': 'gzip' },
      Code.InvalidArgument,
      'BODY_MALFORMED',
    ],
    [
      'a small gzip that becomes 20 MB',
      () => envelope(1, bomb),
      { 'grpc-encoding': 'gzip' },
      Code.ResourceExhausted,
      'BODY_TOO_LARGE',
    ],
    [
      'JSON with a value of the wrong type',
      () => envelope(0, Buffer.from('{"tenant_id":987654321}')),
      { 'content-type': 'application/grpc+json' },
      Code.InvalidArgument,
      'BODY_MALFORMED',
    ],
    [
      'a time-out that is none',
      () => envelope(0, good('h')),
      { 'grpc-timeout': 'soon' },
      Code.InvalidArgument,
      'BODY_MALFORMED',
    ],
  ];

  test.each(cases)('%s', async (_name, body, headers, code, reason) => {
    const answer = await framed(body(), headers);
    expect([answer.status, answer.fields['grpc-status'], reasonIn(answer)]).toEqual([
      200,
      grpcStatus(code),
      reason,
    ]);
    // Texts of errors never quote values: they may be secrets.
    expect(JSON.stringify(answer.fields)).not.toContain('987654321');
    expect(service.events('call_failed')).toEqual([]);
  });

  test('another content type is 415 and says which there are; another verb is 405', async () => {
    const other = await framed(envelope(0, good('h')), { 'content-type': 'text/plain' });
    expect([other.status, other.fields['accept-post']]).toEqual([
      415,
      'application/json, application/proto',
    ]);
    const stream = session.request({
      ':method': 'PUT',
      ':path': NOTIFY_PATH,
      authorization: AUTHORIZATION,
    });
    const status = await new Promise((resolve) => {
      stream.on('response', (head) => resolve([head[':status'], head['allow']]));
      stream.end();
    });
    expect(status).toEqual([405, 'POST']);
    stream.destroy();
  });

  test('bodies that never end hold nobody else up, and are over with their connection', async () => {
    const canceled = 'notify_notify_requests_total{code="canceled"}';
    const before = await series(service, canceled);
    const gone = http2.connect(service.internalUrl);
    for (let i = 0; i < 20; i++) {
      const stream = gone.request({
        ':method': 'POST',
        ':path': NOTIFY_PATH,
        'content-type': i % 2 === 0 ? 'application/grpc' : 'application/proto',
        authorization: AUTHORIZATION,
      });
      stream.on('error', () => undefined);
      stream.write(envelope(0, good('never')).subarray(0, 12));
    }
    // A ping is answered once all that came before it was read.
    await new Promise((resolve) => gone.ping(resolve));
    const answer = await framed(envelope(0, good('h')));
    expect(answer.fields['grpc-status']).toBe('0');
    expect(await series(service, canceled)).toBe(before);
    gone.destroy();
    await poll(() => series(service, canceled)).toBe(before + 20);
  });

  test('nothing begins once its time is over', async () => {
    const answer = await framed(envelope(0, good('never', 'never stored')), {
      'grpc-timeout': '0S',
    });
    expect([answer.fields['grpc-status'], reasonIn(answer)]).toEqual([
      grpcStatus(Code.DeadlineExceeded),
      'DEADLINE_EXCEEDED',
    ]);
    const asked = create(ListNotificationsRequestSchema, { tenantId: 'acme', userId: 'never' });
    const listed = await framed(
      envelope(0, toBinary(ListNotificationsRequestSchema, asked)),
      {},
      '/notify.v1.NotifyService/ListNotifications',
    );
    expect(listed.fields['grpc-status']).toBe('0');
    expect(
      fromBinary(ListNotificationsResponseSchema, listed.body.subarray(5)).notifications,
    ).toEqual([]);
  });
});

test('calls of gRPC are counted by code and logged by procedure, once each', async () => {
  const name = (code: string): string => `notify_notify_requests_total{code="${code}"}`;
  const counts = () =>
    Promise.all(
      ['ok', 'invalid_argument', 'unauthenticated'].map((code) => series(service, name(code))),
    );
  const before = await counts();
  const id = 'grpc-logged-1';
  await framed(envelope(0, good('counted')), { 'x-request-id': id });
  await framed(envelope(0, good('counted', '')), { 'x-request-id': 'grpc-logged-2' });
  await framed(envelope(0, good('counted')), {
    authorization: '',
    'x-request-id': 'grpc-logged-3',
  });
  await poll(counts).toEqual(before.map((count) => count + 1));
  const logged = () => service.events('rpc').filter((line) => line['request_id'] === id);
  await poll(logged).toHaveLength(1);
  expect(logged()[0]).toMatchObject({ procedure: NOTIFY_PATH, duration_ms: expect.any(Number) });
});
