import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { create, fromBinary } from '@bufbuild/protobuf';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ErrorInfoSchema } from '../../src/gen/google/rpc/error_details_pb.ts';
import {
  Channel,
  NotifyRequestSchema,
  NotifyService,
} from '../../src/gen/notify/v1/notify_service_pb.ts';
import { call, mustCall, SERVICE_TOKEN, series } from './support/notify-process.ts';
import { serveNotify, type ServedNotify } from './support/notify-service.ts';

const USER = { tenant_id: 'acme', user_id: 'ann' };
const NOTIFY = { ...USER, channels: ['CHANNEL_LIVE'], title: 'Build passed' };

/** The reason, field and code of an error answer. */
async function refusal(
  service: ServedNotify,
  method: string,
  body: unknown,
  headers: Record<string, string> = {},
) {
  const answer = await call(service, method, body, headers);
  const [detail] = (answer.body['details'] ?? []) as {
    type: string;
    value: string;
    debug: object;
  }[];
  expect(detail?.type).toBe('google.rpc.ErrorInfo');
  const info = fromBinary(ErrorInfoSchema, Buffer.from(detail?.value ?? '', 'base64'));
  expect(detail?.debug).toEqual({
    reason: info.reason,
    domain: info.domain,
    metadata: info.metadata,
  });
  expect(info.domain).toBe('gatehouse');
  expect(answer.headers.get('x-request-id')).toMatch(/^[\w.:-]+$/);
  return {
    status: answer.status,
    code: answer.body['code'],
    reason: info.reason,
    field: info.metadata['field'],
  };
}

describe.each([
  ['JSON', false],
  ['binary', true],
] as const)('a Connect client over %s', (_name, useBinaryFormat) => {
  test('calls every method, and reads errors with their details', async () => {
    const service = await serveNotify();
    const transport = createConnectTransport({
      baseUrl: service.internalUrl,
      httpVersion: '1.1',
      useBinaryFormat,
      interceptors: [
        (next) => (request) => {
          request.header.set('authorization', `Bearer ${SERVICE_TOKEN}`);
          return next(request);
        },
      ],
    });
    const client = createClient(NotifyService, transport);
    const user = { tenantId: 'acme', userId: 'ann' };
    const endpoint = {
      tenantId: 'acme',
      id: 'hook',
      userId: '',
      channel: Channel.WEBHOOK,
      address: 'http://127.0.0.1:9/hook',
    };
    const put = await client.putEndpoint({ endpoint, signingSecret: 'a secret of sixteen' });
    expect(put.endpoint).toMatchObject(endpoint);
    const sent = await client.notify({
      ...user,
      channels: [Channel.WEBHOOK, Channel.LIVE, Channel.LIVE],
      title: 'Grüße',
      body: 'text',
      data: { list: [1, 'x', null, { deep: true }] },
      dedupeKey: 'k',
    });
    expect(sent.isDuplicate).toBe(false);
    expect(sent.notification).toMatchObject({
      ...user,
      sequence: 1n,
      title: 'Grüße',
      channels: [Channel.LIVE, Channel.WEBHOOK],
      data: { list: [1, 'x', null, { deep: true }] },
    });
    const again = await client.notify({
      ...user,
      channels: [Channel.LIVE],
      title: 'other',
      dedupeKey: 'k',
    });
    expect([again.isDuplicate, again.notification?.title]).toEqual([true, 'Grüße']);
    await client.notify({ ...user, channels: [Channel.LIVE], title: 'second' });
    const page = await client.listNotifications({ ...user, pageSize: 1 });
    expect(page.notifications.map(({ title }) => title)).toEqual(['second']);
    expect([page.nextPageToken, page.unreadCount]).toEqual(['2', 2n]);
    const rest = await client.listNotifications({ ...user, pageToken: page.nextPageToken });
    expect(rest.notifications.map(({ title }) => title)).toEqual(['Grüße']);
    expect(rest.nextPageToken).toBe('');
    const marked = await client.markRead({ ...user, upToSequence: 1n });
    expect([marked.markedCount, marked.unreadCount]).toEqual([1n, 1n]);
    const token = await client.createStreamToken({ ...user, deviceType: 'web' });
    expect(token.token).toMatch(/^ns1\./);
    const listed = await client.listEndpoints({ tenantId: 'acme' });
    expect(listed.endpoints).toMatchObject([endpoint]);
    await client.deleteEndpoint({ tenantId: 'acme', id: 'hook' });
    const error = await client.deleteEndpoint({ tenantId: 'acme', id: 'hook' }).then(
      () => undefined,
      (thrown: unknown) => ConnectError.from(thrown),
    );
    expect(error?.code).toBe(Code.NotFound);
    expect(error?.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: 'ENDPOINT_UNKNOWN', domain: 'gatehouse', metadata: { id: 'hook' } },
    ]);
  });
});

describe('one service', () => {
  let service: ServedNotify;
  const undo: (() => unknown)[] = [];
  beforeAll(async () => {
    service = await serveNotify({}, (end) => undo.unshift(end));
  });
  afterAll(async () => {
    for (const step of undo) await step();
  });

  const endpoint = (given: object) => ({
    endpoint: {
      id: 'hook',
      tenant_id: 'acme',
      channel: 'CHANNEL_WEBHOOK',
      address: 'https://example.test/hook',
      ...given,
    },
    signing_secret: 'a secret of sixteen',
  });
  const deep = (levels: number): object => (levels === 0 ? {} : { a: deep(levels - 1) });
  const REQUIRED = 'FIELD_REQUIRED';
  const INVALID = 'FIELD_INVALID';
  const MALFORMED = 'BODY_MALFORMED';

  test.each([
    ['Notify', REQUIRED, 'tenant_id', { ...NOTIFY, tenant_id: '' }],
    ['Notify', INVALID, 'tenant_id', { ...NOTIFY, tenant_id: 'a b' }],
    ['Notify', INVALID, 'tenant_id', { ...NOTIFY, tenant_id: 'ü' }],
    ['Notify', INVALID, 'tenant_id', { ...NOTIFY, tenant_id: 'x'.repeat(129) }],
    ['Notify', REQUIRED, 'user_id', { ...NOTIFY, user_id: '' }],
    ['Notify', INVALID, 'user_id', { ...NOTIFY, user_id: 'a\nb' }],
    ['Notify', MALFORMED, 'user_id', { ...NOTIFY, user_id: 5 }],
    ['Notify', REQUIRED, 'channels', { ...NOTIFY, channels: [] }],
    ['Notify', INVALID, 'channels', { ...NOTIFY, channels: ['CHANNEL_UNSPECIFIED'] }],
    ['Notify', INVALID, 'channels', { ...NOTIFY, channels: [9] }],
    ['Notify', INVALID, 'channels[0]', { ...NOTIFY, channels: ['CHANNEL_PIGEON'] }],
    ['Notify', REQUIRED, 'title', { ...NOTIFY, title: '' }],
    ['Notify', INVALID, 'title', { ...NOTIFY, title: 'a\nb' }],
    ['Notify', INVALID, 'title', { ...NOTIFY, title: 'a\u0000b' }],
    ['Notify', INVALID, 'title', { ...NOTIFY, title: 'x'.repeat(257) }],
    ['Notify', INVALID, 'body', { ...NOTIFY, body: 'x'.repeat(16_385) }],
    ['Notify', INVALID, 'body', { ...NOTIFY, body: '\u0000' }],
    ['Notify', INVALID, 'data', { ...NOTIFY, data: { text: 'x'.repeat(16_384) } }],
    ['Notify', INVALID, 'data', { ...NOTIFY, data: { 'a\u0000': 1 } }],
    ['Notify', INVALID, 'data', { ...NOTIFY, data: { a: ['\u0000'] } }],
    ['Notify', MALFORMED, undefined, { ...NOTIFY, data: [] }],
    ['Notify', INVALID, 'dedupe_key', { ...NOTIFY, dedupe_key: 'x'.repeat(129) }],
    ['Notify', INVALID, 'dedupe_key', { ...NOTIFY, dedupe_key: '\u0000' }],
    ['Notify', MALFORMED, 'sort', { ...NOTIFY, sort: 1 }],
    ['Notify', MALFORMED, undefined, '{"title":'],
    ['Notify', MALFORMED, undefined, '[]'],
    ['Notify', REQUIRED, 'tenant_id', ''],
    ['ListNotifications', INVALID, 'page_size', { ...USER, page_size: 501 }],
    ['ListNotifications', INVALID, 'page_size', { ...USER, page_size: -1 }],
    ['ListNotifications', INVALID, 'page_token', { ...USER, page_token: '0' }],
    ['ListNotifications', INVALID, 'page_token', { ...USER, page_token: 'x' }],
    ['ListNotifications', REQUIRED, 'user_id', { tenant_id: 'acme' }],
    ['MarkRead', INVALID, 'ids', USER],
    ['MarkRead', INVALID, 'ids', { ...USER, ids: ['x'], up_to_sequence: '1' }],
    ['MarkRead', INVALID, 'ids', { ...USER, ids: Array(501).fill('x') }],
    ['MarkRead', INVALID, 'up_to_sequence', { ...USER, up_to_sequence: '-1' }],
    ['CreateStreamToken', INVALID, 'ttl_seconds', { ...USER, ttl_seconds: 3_601 }],
    ['CreateStreamToken', INVALID, 'ttl_seconds', { ...USER, ttl_seconds: -1 }],
    ['CreateStreamToken', REQUIRED, 'tenant_id', { user_id: 'ann' }],
    ['PutEndpoint', REQUIRED, 'endpoint', {}],
    ['PutEndpoint', REQUIRED, 'endpoint.tenant_id', endpoint({ tenant_id: '' })],
    ['PutEndpoint', REQUIRED, 'endpoint.id', endpoint({ id: '' })],
    ['PutEndpoint', INVALID, 'endpoint.id', endpoint({ id: 'Upper' })],
    ['PutEndpoint', INVALID, 'endpoint.id', endpoint({ id: 'x'.repeat(65) })],
    ['PutEndpoint', INVALID, 'endpoint.channel', endpoint({ channel: 'CHANNEL_LIVE' })],
    ['PutEndpoint', INVALID, 'endpoint.channel', endpoint({ channel: 0 })],
    ['PutEndpoint', INVALID, 'endpoint.address', endpoint({ address: 'ftp://x/' })],
    ['PutEndpoint', INVALID, 'endpoint.address', endpoint({ address: 'no url' })],
    ['PutEndpoint', INVALID, 'endpoint.address', endpoint({ address: 'https://u:p@x/' })],
    [
      'PutEndpoint',
      INVALID,
      'endpoint.address',
      endpoint({ address: `https://x/${'y'.repeat(2_048)}` }),
    ],
    [
      'PutEndpoint',
      REQUIRED,
      'endpoint.user_id',
      endpoint({ channel: 'CHANNEL_EMAIL', address: 'a@b.c' }),
    ],
    ...['a', '@b', 'a@b,c@d', 'a b@c', 'a@b\r\nBcc: x@y', '<a@b>'].map((address) => [
      'PutEndpoint',
      INVALID,
      'endpoint.address',
      endpoint({ channel: 'CHANNEL_EMAIL', user_id: 'ann', address }),
    ]),
    [
      'PutEndpoint',
      REQUIRED,
      'signing_secret',
      { ...endpoint({ id: 'none' }), signing_secret: '' },
    ],
    ['PutEndpoint', INVALID, 'signing_secret', { ...endpoint({}), signing_secret: 'short' }],
    [
      'PutEndpoint',
      INVALID,
      'signing_secret',
      { ...endpoint({}), signing_secret: 'x'.repeat(257) },
    ],
    [
      'PutEndpoint',
      MALFORMED,
      'signing_secret',
      { ...endpoint({}), signing_secret: 4242424242424242 },
    ],
    ['DeleteEndpoint', REQUIRED, 'id', { tenant_id: 'acme' }],
    ['ListEndpoints', INVALID, 'user_id', { tenant_id: 'acme', user_id: 'a b' }],
  ] as [string, string, string | undefined, unknown][])(
    '%s refuses as %s for %s: bad input %#',
    async (method, reason, field, body) => {
      expect(await refusal(service, method, body)).toEqual({
        status: 400,
        code: 'invalid_argument',
        reason,
        field,
      });
    },
  );

  test('what is at its limit is taken', async () => {
    const answer = await mustCall(service, 'Notify', {
      tenant_id: 'x'.repeat(128),
      user_id: '~!"\\{}',
      channels: ['CHANNEL_LIVE', 1],
      title: 'x'.repeat(256),
      body: 'x'.repeat(16_384),
      // Text that only looks like an escape.
      data: { text: '\\u0000 \\ud800', ...deep(20) },
      dedupe_key: 'ü'.repeat(128),
    });
    expect(answer['notification']).toMatchObject({
      channels: ['CHANNEL_LIVE'],
      data: { text: '\\u0000 \\ud800' },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    });
  });

  test('text that is no Unicode is refused in JSON, and values are never quoted', async () => {
    const lone = await refusal(
      service,
      'Notify',
      `{"tenant_id":"acme","user_id":"ann","channels":["CHANNEL_LIVE"],"title":"\\ud800"}`,
    );
    expect(lone).toMatchObject({ status: 400 });
    const secret = { ...endpoint({}), signing_secret: 987654321 };
    const answer = await call(service, 'PutEndpoint', secret);
    expect(JSON.stringify(answer.body)).not.toContain('987654321');
  });

  test('channels without a sender, unknown ids and endpoints say so', async () => {
    const mail = await refusal(service, 'Notify', { ...NOTIFY, channels: ['CHANNEL_EMAIL'] });
    expect(mail).toEqual({
      status: 412,
      code: 'failed_precondition',
      reason: 'CHANNEL_UNAVAILABLE',
      field: 'channels',
    });
    const unknown = await refusal(service, 'MarkRead', { ...USER, ids: ['no such id'] });
    expect(unknown).toMatchObject({ status: 404, reason: 'NOTIFICATION_UNKNOWN' });
    const gone = await refusal(service, 'DeleteEndpoint', { tenant_id: 'acme', id: 'nothing' });
    expect(gone).toMatchObject({ status: 404, reason: 'ENDPOINT_UNKNOWN' });
  });

  test('service tokens: missing, wrong, of another scheme, or with more or less at the end', async () => {
    const bad = ['', 'Bearer', 'Bearer ', SERVICE_TOKEN, `Basic ${SERVICE_TOKEN}`];
    const near = [`Bearer ${SERVICE_TOKEN}x`, `Bearer ${SERVICE_TOKEN.slice(0, -1)}`];
    for (const authorization of [...bad, ...near]) {
      const answer = await refusal(service, 'Notify', NOTIFY, { authorization });
      expect([authorization, answer.status, answer.reason]).toEqual([
        authorization,
        401,
        'CREDENTIAL_INVALID',
      ]);
    }
    const right = await call(service, 'Notify', NOTIFY, {
      authorization: `bearer  ${SERVICE_TOKEN}`,
    });
    expect(right.status).toBe(200);
  });

  test('headers of the protocol: versions, time-outs, encodings, content types', async () => {
    const bad: [Record<string, string>, number, string][] = [
      [{ 'connect-protocol-version': '2' }, 400, 'BODY_MALFORMED'],
      [{ 'connect-timeout-ms': '-1' }, 400, 'BODY_MALFORMED'],
      [{ 'connect-timeout-ms': '12345678901' }, 400, 'BODY_MALFORMED'],
      [{ 'connect-timeout-ms': '0' }, 504, 'DEADLINE_EXCEEDED'],
      [{ 'content-encoding': 'br' }, 501, 'METHOD_UNIMPLEMENTED'],
      [{ 'content-encoding': 'gzip' }, 400, 'BODY_MALFORMED'],
    ];
    for (const [headers, status, reason] of bad) {
      const answer = await refusal(service, 'Notify', NOTIFY, headers);
      expect([headers, answer.status, answer.reason]).toEqual([headers, status, reason]);
    }
    const good: Record<string, string>[] = [
      { 'connect-protocol-version': '1', 'connect-timeout-ms': '9999999999' },
      { 'content-type': 'Application/JSON; charset=utf-8', 'content-encoding': 'identity' },
    ];
    for (const headers of good) {
      expect((await call(service, 'Notify', NOTIFY, headers)).status).toBe(200);
    }
    for (const type of ['text/plain', 'application/connect+json', 'application/grpc', '']) {
      const answer = await call(service, 'Notify', NOTIFY, { 'content-type': type });
      expect([type, answer.status]).toEqual([type, 415]);
      expect(answer.headers.get('accept-post')).toBe('application/json, application/proto');
      expect(answer.headers.get('x-request-id')).not.toBeNull();
    }
  });

  const url = (method: string): string =>
    `${service.internalUrl}/notify.v1.NotifyService/${method}`;
  const headers = {
    authorization: `Bearer ${SERVICE_TOKEN}`,
    'content-type': 'application/json',
  };

  test('bodies: compressed, a bomb, too large, not UTF-8', async () => {
    const post = async (body: Uint8Array<ArrayBuffer>, extra: Record<string, string> = {}) => {
      const response = await fetch(url('Notify'), {
        method: 'POST',
        headers: { ...headers, ...extra },
        body,
      });
      const text = await response.text();
      return [response.status, /"reason":"(\w+)"/.exec(text)?.[1]];
    };
    const gzip = { 'content-encoding': 'gzip' };
    const packed = (text: string) => new Uint8Array(gzipSync(text));
    expect(await post(packed(JSON.stringify(NOTIFY)), gzip)).toEqual([200, undefined]);
    expect(await post(packed(' '.repeat(10_000_000)), gzip)).toEqual([429, 'BODY_TOO_LARGE']);
    expect(await post(new Uint8Array(200_000).fill(0x20))).toEqual([429, 'BODY_TOO_LARGE']);
    const latin1 = Buffer.from(JSON.stringify({ ...NOTIFY, title: 'Grüße' }), 'latin1');
    expect(await post(new Uint8Array(latin1))).toEqual([400, 'BODY_MALFORMED']);
  });

  test('other verbs, methods and services; the request id of the caller comes back', async () => {
    for (const method of ['GET', 'HEAD', 'PUT']) {
      const response = await fetch(url('Notify'), { method, headers });
      expect([method, response.status, response.headers.get('allow')]).toEqual([
        method,
        405,
        'POST',
      ]);
    }
    for (const path of ['NoSuchMethod', 'notify']) {
      const answer = await refusal(service, path, {});
      expect(answer).toMatchObject({
        status: 404,
        code: 'unimplemented',
        reason: 'METHOD_UNKNOWN',
      });
    }
    const id = { 'x-request-id': 'req-1.a:b' };
    expect((await call(service, 'Notify', NOTIFY, id)).headers.get('x-request-id')).toBe(
      'req-1.a:b',
    );
    expect((await call(service, 'Notify', {}, id)).headers.get('x-request-id')).toBe('req-1.a:b');
    const odd = await call(service, 'Notify', NOTIFY, { 'x-request-id': 'a b' });
    expect(odd.headers.get('x-request-id')).not.toBe('a b');
  });

  test('requests count by code, also refused ones', async () => {
    const name = (code: string): string => `notify_notify_requests_total{code="${code}"}`;
    const before = await Promise.all(
      ['ok', 'invalid_argument', 'unauthenticated'].map((code) => series(service, name(code))),
    );
    await call(service, 'Notify', NOTIFY);
    await call(service, 'Notify', {});
    await call(service, 'Notify', NOTIFY, { authorization: '' });
    await call(service, 'ListNotifications', {});
    const after = await Promise.all(
      ['ok', 'invalid_argument', 'unauthenticated'].map((code) => series(service, name(code))),
    );
    expect(after).toEqual(before.map((count) => count + 1));
  });

  test('numbers that JSON cannot write are refused in binary, too', async () => {
    const transport = createConnectTransport({
      baseUrl: service.internalUrl,
      httpVersion: '1.1',
      useBinaryFormat: true,
    });
    const client = createClient(NotifyService, transport);
    const request = create(NotifyRequestSchema, {
      tenantId: 'acme',
      userId: 'ann',
      channels: [Channel.LIVE],
      title: 'x',
      data: { big: Number.POSITIVE_INFINITY },
    });
    const error = await client
      .notify(request, { headers: { authorization: `Bearer ${SERVICE_TOKEN}` } })
      .then(
        () => undefined,
        (thrown: unknown) => ConnectError.from(thrown),
      );
    expect(error?.code).toBe(Code.InvalidArgument);
    expect(error?.findDetails(ErrorInfoSchema)[0]?.metadata).toEqual({ field: 'data' });
  });
});

test('service tokens follow their file', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'notify-tokens-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'tokens');
  await writeFile(file, SERVICE_TOKEN);
  const service = await serveNotify({
    NOTIFY_SERVICE_AUTH_TOKENS: '',
    NOTIFY_SERVICE_AUTH_TOKENS_FILE: file,
  });
  const statusWith = async (token: string): Promise<number> => {
    const response = await fetch(`${service.internalUrl}/notify.v1.NotifyService/ListEndpoints`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: '{"tenant_id":"t","user_id":"u"}',
    });
    return response.status;
  };
  expect([await statusWith(SERVICE_TOKEN), await statusWith('next')]).toEqual([200, 401]);
  await writeFile(file, `${SERVICE_TOKEN}\nnext\n`);
  await vi.waitFor(async () => expect(await statusWith('next')).toBe(200), { timeout: 10_000 });
  expect(await statusWith(SERVICE_TOKEN)).toBe(200);
  await writeFile(file, 'next');
  await vi.waitFor(async () => expect(await statusWith(SERVICE_TOKEN)).toBe(401), {
    timeout: 10_000,
  });
  await writeFile(file, '');
  const failing = 'notify_credential_file_failing{credential="service_tokens"}';
  await vi.waitFor(async () => expect(await series(service, failing)).toBe(1), { timeout: 10_000 });
  expect([await statusWith('next'), await statusWith('')]).toEqual([200, 401]);
});
