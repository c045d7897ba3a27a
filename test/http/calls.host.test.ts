import { once } from 'node:events';
import http2 from 'node:http2';
import { gzipSync } from 'node:zlib';
import {
  Code,
  ConnectError,
  createClient,
  type HandlerContext,
  type Transport,
} from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { createCallerPort } from '../../src/gateway/connect/caller-port.ts';
import { AUTHZ_ERRORS, malformedMessage } from '../../src/gateway/connect/connect-error.ts';
import { ErrorInfoSchema } from '../../src/gen/google/rpc/error_details_pb.ts';
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from '../../src/gen/grpc/health/v1/health_pb.ts';
import { AuthzService } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { BodyBudget } from '../../src/http/bodies/body-budget.ts';
import type { ConnectAdapterOptions } from '../../src/http/connect/adapter-options.ts';
import { createConnectAdapter } from '../../src/http/connect/adapter.ts';
import { createHttpServer } from '../../src/http/listener/http-server.ts';
import { AppError } from '../../src/shared/app-error.ts';

/* What a method sees of its call, and what its caller gets, is the same over every protocol. */
const TIMEOUT_MS_MAX = 30_000;
const WRITE_BYTES_MAX = 1_000;
const CHECK = '/workspace.v1.AuthzService/Check';

let begun: HandlerContext[] = [];
beforeEach(() => {
  begun = [];
});

async function serve(options: Partial<ConnectAdapterOptions> = {}): Promise<string> {
  const failures: unknown[] = [];
  const adapter = createConnectAdapter({
    routes: (router) => {
      router.service(AuthzService, {
        check: (_request, context) => {
          begun.push(context);
          return { allowed: true };
        },
        listObjects: () => ({ objectIds: ['x'.repeat(WRITE_BYTES_MAX)] }),
      });
      router.service(Health, {
        async *watch({ service }, { responseHeader, responseTrailer }) {
          responseHeader.set('x-head', 'a, b');
          responseTrailer.set('x-trail', 'c');
          await new Promise((resolve) => setImmediate(resolve));
          if (service === 'none') return;
          yield { status: Status.SERVING };
          if (service === 'fails') throw new ConnectError('enough', Code.Aborted, { 'x-why': 'd' });
          yield { status: Status.NOT_SERVING };
        },
      });
    },
    errors: AUTHZ_ERRORS,
    malformed: malformedMessage,
    readMaxBytes: 10_000,
    writeMaxBytes: WRITE_BYTES_MAX,
    report: (failure) => void failures.push(failure),
    ...options,
  });
  const server = createHttpServer({
    host: '127.0.0.1',
    port: 0,
    bodyBudget: options.bodyBudget,
    http2: { onStream: adapter.handleHttp2 },
  });
  server.fallback(adapter.handleHttp1);
  const { port } = await server.listen();
  afterAll(async () => {
    await server.stop(0);
    expect(failures).toEqual([]);
  });
  return `http://127.0.0.1:${port}`;
}

const bodyBudget = new BodyBudget({ bytesMax: 400_000 });
const bounded = await serve({ timeoutMsMax: TIMEOUT_MS_MAX, bodyBudget });
const unbounded = await serve();

type TransportOf = (baseUrl: string) => Transport;
const both = [true, false];
const TRANSPORTS: readonly (readonly [string, TransportOf])[] = both.flatMap((useBinaryFormat) => {
  const format = useBinaryFormat ? 'binary' : 'JSON';
  const connect =
    (httpVersion: '1.1' | '2'): TransportOf =>
    (baseUrl) =>
      createConnectTransport({ baseUrl, httpVersion, useBinaryFormat });
  const web =
    (httpVersion: '1.1' | '2'): TransportOf =>
    (baseUrl) =>
      createGrpcWebTransport({ baseUrl, httpVersion, useBinaryFormat });
  const grpc: TransportOf = (baseUrl) => createGrpcTransport({ baseUrl, useBinaryFormat });
  return [
    [`Connect over HTTP/1.1, ${format}`, connect('1.1')],
    [`Connect over HTTP/2, ${format}`, connect('2')],
    [`gRPC-Web over HTTP/1.1, ${format}`, web('1.1')],
    [`gRPC-Web over HTTP/2, ${format}`, web('2')],
    [`gRPC, ${format}`, grpc],
  ] as const;
});

describe.each(TRANSPORTS)('%s', (_name, transportOf) => {
  /** What the method learns of the time of its call. */
  async function timeSeen(baseUrl: string, timeoutMs?: number): Promise<number | undefined> {
    const client = createClient(AuthzService, transportOf(baseUrl));
    await client.check({}, timeoutMs === undefined ? {} : { timeoutMs });
    const [context] = begun.splice(0);
    // What has passed by now does not count.
    const ms = context?.timeoutMs();
    return ms === undefined ? undefined : Math.ceil(ms / 10_000) * 10_000;
  }

  test('a call has the time that it states, at most the longest one', async () => {
    expect(await timeSeen(bounded)).toBe(TIMEOUT_MS_MAX);
    expect(await timeSeen(bounded, 20_000)).toBe(20_000);
    expect(await timeSeen(bounded, 99_000)).toBe(TIMEOUT_MS_MAX);
    expect(await timeSeen(unbounded)).toBeUndefined();
    expect(await timeSeen(unbounded, 20_000)).toBe(20_000);
    expect(await timeSeen(unbounded, 90_000_000)).toBe(90_000_000);
  });

  /** What the caller of a stream gets. */
  async function watched(service: string) {
    const seen: { header?: string | null; trailer?: string | null; statuses: Status[] } = {
      statuses: [],
    };
    const answers = createClient(Health, transportOf(bounded)).watch(
      { service },
      {
        onHeader: (headers) => (seen.header = headers.get('x-head')),
        onTrailer: (trailers) => (seen.trailer = trailers.get('x-trail')),
      },
    );
    let error: ConnectError | undefined;
    try {
      for await (const { status } of answers) seen.statuses.push(status);
    } catch (thrown) {
      error = thrown as ConnectError;
    }
    return { ...seen, error };
  }

  test('headers and trailers of a stream arrive, whatever it answers', async () => {
    const extra = { header: 'a, b', trailer: 'c', error: undefined };
    expect(await watched('')).toEqual({
      ...extra,
      statuses: [Status.SERVING, Status.NOT_SERVING],
    });
    expect(await watched('none')).toEqual({ ...extra, statuses: [] });
    const failed = await watched('fails');
    expect(failed).toMatchObject({
      header: 'a, b',
      statuses: [Status.SERVING],
      error: { code: Code.Aborted, rawMessage: 'enough' },
    });
    expect(failed.error?.metadata.get('x-why')).toBe('d');
    expect(failed.error?.metadata.get('x-trail')).toBe('c');
  });

  test('an answer that is too large names its limit', async () => {
    const failure = await createClient(AuthzService, transportOf(bounded))
      .listObjects({})
      .catch((error: unknown) => error as ConnectError);
    expect(failure).toMatchObject({ code: Code.ResourceExhausted });
    expect((failure as ConnectError).findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: 'RESULT_TOO_LARGE', metadata: { limit_bytes: String(WRITE_BYTES_MAX) } },
    ]);
  });
});

test('a time that no timer can hold is as good as none', async () => {
  const headers = { 'content-type': 'application/json', 'connect-timeout-ms': '9999999999' };
  const answer = await fetch(unbounded + CHECK, { method: 'POST', headers, body: '{}' });
  expect(await answer.json()).toEqual({ allowed: true });
  expect(begun[0]?.timeoutMs()).toBeGreaterThan(2_000_000_000);
});

const GZIP = gzipSync('{}');
const LATE = [
  ['Connect', 504, { 'content-type': 'application/json', 'connect-timeout-ms': '30' }, '{}'],
  [
    'Connect, gzip',
    504,
    {
      'content-type': 'application/json',
      'connect-timeout-ms': '30',
      'content-encoding': 'gzip',
    },
    GZIP,
  ],
  ['gRPC', 200, { 'content-type': 'application/grpc', 'grpc-timeout': '30m' }, '\0\0\0\0\0'],
  [
    'gRPC, gzip',
    200,
    {
      'content-type': 'application/grpc+json',
      'grpc-timeout': '30m',
      'grpc-encoding': 'gzip',
    },
    Buffer.concat([Buffer.from([1, 0, 0, 0, GZIP.length]), GZIP]),
  ],
] as const;
test.each(LATE)(
  '%s: of a body that nobody waits for nothing comes, and nothing is held',
  async (...one) => {
    const [, status, headers, body] = one;
    const session = http2.connect(bounded);
    const stream = session.request({ ':method': 'POST', ':path': CHECK, ...headers });
    const [head] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders];
    expect(head[':status']).toBe(status);
    const closed = once(stream.resume(), 'close');
    stream.end(body);
    await closed;
    // Whatever came of the body has come of it before this is answered.
    const after = await fetch(bounded + CHECK, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: GZIP,
    });
    expect(after.status).toBe(200);
    expect(begun).toHaveLength(1);
    expect(bodyBudget.heldBytes).toBe(0);
    session.close();
  },
);

test('a refusal is sent before the body that came with the call is kept', async () => {
  const budget = new BodyBudget({ bytesMax: 400_000 });
  const refused = new AppError('CREDENTIAL_INVALID', 'no');
  const callers = { ...createCallerPort(), admit: () => refused };
  const session = http2.connect(await serve({ bodyBudget: budget, callers }));
  const answers = Array.from({ length: 5 }, async () => {
    const stream = session.request({
      ':method': 'POST',
      ':path': CHECK,
      'content-type': 'application/json',
    });
    stream.end(Buffer.alloc(60_000, ' '));
    const [head] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders];
    stream.resume();
    return head[':status'];
  });
  expect(await Promise.all(answers)).toEqual([401, 401, 401, 401, 401]);
  expect(budget.counts.refused.unauthenticated).toBe(0);
  session.close();
});

test('a message in an envelope that cannot be decoded names its field, as one without does', async () => {
  const message = Buffer.from('{"nonsense":1}');
  const envelope = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
  const session = http2.connect(bounded);
  const stream = session.request({
    ':method': 'POST',
    ':path': CHECK,
    'content-type': 'application/grpc+json',
  });
  stream.resume().end(envelope);
  const [trailers] = (await once(stream, 'trailers')) as [http2.IncomingHttpHeaders];
  session.close();
  expect(trailers['grpc-status']).toBe('3');
  const details = Buffer.from(String(trailers['grpc-status-details-bin']), 'base64').toString();
  expect(details).toContain('field\x12\x08nonsense');
});

/** Flags and names of the protocols whose requests may have a last envelope. */
const ENDS = [
  ['application/grpc-web+proto', 0x80, CHECK],
  ['application/connect+proto', 2, '/grpc.health.v1.Health/Watch'],
] as const;
test.each(ENDS)(
  '%s: nothing follows the last envelope, however much there is',
  async (type, flag, path) => {
    const headers = { 'content-type': type };
    const send = async (body: Buffer<ArrayBuffer>): Promise<string> => {
      const answer = await fetch(bounded + path, { method: 'POST', headers, body });
      return await answer.text();
    };
    const end = Buffer.from([flag, 0, 0, 0, 0]);
    const message = Buffer.alloc(5);
    expect(await send(Buffer.concat([message, end]))).not.toMatch(/follows|malformed/i);
    for (const more of [end, message, Buffer.concat(Array.from({ length: 1_900 }, () => end))]) {
      expect(await send(Buffer.concat([message, end, more]))).toContain(
        'an envelope follows the last one',
      );
    }
  },
);
