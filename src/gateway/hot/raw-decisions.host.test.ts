import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { expect, onTestFinished, test, vi } from 'vitest';
import { callersOf } from '../../../test/support/callers.ts';
import { BodyBudget } from '../../http/bodies/body-budget.ts';
import { createHttpServer } from '../../http/listener/http-server.ts';
import type { RawAnswer } from '../../protocol/shard-client.ts';
import { AppError } from '../../shared/app-error.ts';
import type { ReadScopes } from '../reads/read-scopes.ts';
import { DecisionReader } from './decision-reader.ts';
import { HOT_METHODS } from './hot-methods.ts';
import { RawDecisions } from './raw-decisions.ts';

/** Sends a body and waits for the answer. */
async function post(port: number, path: string, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const sent = request({ port, path, method: 'POST', headers }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    sent.on('error', reject);
    // Whole, so that its length is stated.
    sent.end(body);
  });
}

test('what the general path gets stays as it came, however long it is kept', async () => {
  const kept: Uint8Array[] = [];
  const hot = HOT_METHODS.find(({ method }) => method === 'batchCheck');
  if (hot === undefined) throw new Error('BatchCheck has a hot path');
  const path = new RawDecisions({
    callers: callersOf(),
    shards: {
      refusalBefore: () => null,
      raw: () => {
        throw new Error('no project is known here');
      },
    },
    // Of every project the general path must learn first.
    scopes: {
      peek: () => undefined,
      enqueue: () => null,
      settled: () => Promise.resolve(),
      isMoved: () => false,
      projectIdOf: (projectId: string) => projectId,
      tokenOf: () => '',
    },
    versions: { peek: () => undefined },
    meter: { ended: () => undefined, failed: () => undefined },
    general: {
      handleHttp1: (exchange) => exchange.sendEmpty(500),
      handleBuffered: (exchange, _path, _headers, body) => {
        kept.push(body);
        exchange.sendEmpty(200);
      },
    },
    bodyBytesMax: 1024 * 1024,
    bodyBudget: new BodyBudget(),
    reader: new DecisionReader({}),
    compressMinBytes: 1024,
    timeoutMsMax: 1000,
  });
  const server = createHttpServer({ host: '127.0.0.1', port: 0 });
  server.route('POST', hot.path, (exchange) => path.handle(exchange, hot));
  const { port } = await server.listen();
  onTestFinished(() => server.stop(0));
  const bodies = ['a', 'b', 'c'].map((letter) => JSON.stringify({ items: [letter.repeat(5000)] }));
  for (const body of bodies) expect(await post(port, hot.path, body)).toBe(200);
  expect(kept.map((bytes) => Buffer.from(bytes).toString())).toEqual(bodies);
});

test('a large body waits for what its tenant lacks instead of being parsed beside everybody', async () => {
  const hot = HOT_METHODS.find(({ method }) => method === 'batchCheck');
  if (hot === undefined) throw new Error('BatchCheck has a hot path');
  const ways: string[] = [];
  const known = new Set<string>();
  const path = new RawDecisions({
    callers: callersOf(),
    shards: {
      refusalBefore: () => null,
      raw: (_method, _format, body, _scope, _expected, onAnswer) => {
        ways.push(`worker ${body.length}`);
        queueMicrotask(() => onAnswer({ kind: 'allowed' }));
        return { cancel: () => undefined };
      },
    },
    scopes: {
      peek: (projectId, tenantId) =>
        known.has(tenantId)
          ? ({ projectId, tenantId } as unknown as ReturnType<ReadScopes['peek']>)
          : undefined,
      enqueue: () => null,
      settled: (_projectId, tenantId) => {
        ways.push(`settled ${tenantId}`);
        if (tenantId !== 'none') known.add(tenantId);
        return Promise.resolve();
      },
      isMoved: () => false,
      projectIdOf: (projectId: string) => projectId,
      tokenOf: () => '',
    },
    versions: { peek: () => undefined },
    meter: { ended: () => undefined, failed: () => undefined },
    general: {
      handleHttp1: (exchange) => exchange.sendEmpty(500),
      handleBuffered: (exchange, _path, _headers, body) => {
        ways.push(`general ${body.length}`);
        exchange.sendEmpty(418);
      },
    },
    bodyBytesMax: 8 * 1024 * 1024,
    bodyBudget: new BodyBudget(),
    reader: new DecisionReader({}),
    compressMinBytes: 1024,
    timeoutMsMax: 1000,
  });
  const server = createHttpServer({ host: '127.0.0.1', port: 0 });
  server.route('POST', hot.path, (exchange) => path.handle(exchange, hot));
  const { port } = await server.listen();
  onTestFinished(() => server.stop(0));
  const bodyOf = (tenant_id: string, length: number): string =>
    JSON.stringify({ tenant_id, items: ['x'.repeat(length)] });
  const large = bodyOf('t', 1_500_000);
  expect(await post(port, hot.path, large)).toBe(200);
  expect(ways).toEqual(['settled t', `worker ${large.length}`]);
  // Who cannot be known is notified by the general path; a small one goes there at once.
  const unknown = bodyOf('none', 100_000);
  expect(await post(port, hot.path, unknown)).toBe(418);
  const small = bodyOf('other', 100);
  expect(await post(port, hot.path, small)).toBe(418);
  expect(ways.slice(2)).toEqual([
    'settled none',
    `general ${unknown.length}`,
    `general ${small.length}`,
  ]);
});

/** Writes to a connection and waits until what came back has `marker` in it. */
async function exchangeOn(socket: Socket, sent: string, marker: string): Promise<string> {
  const arrived = new Promise<string>((resolve) => {
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes.toString();
      if (text.includes(marker)) resolve(text);
    });
  });
  socket.write(sent);
  const text = await arrived;
  socket.removeAllListeners('data');
  return text;
}

test('what finds no room is refused before its body comes, and the connection goes on', async () => {
  const hot = HOT_METHODS.find(({ method }) => method === 'batchCheck');
  if (hot === undefined) throw new Error('BatchCheck has a hot path');
  const full = new AppError('QUEUE_FULL', 'the queue is too long', { bound: 'deadline' });
  const asked: unknown[][] = [];
  const failed: unknown[] = [];
  const path = new RawDecisions({
    callers: callersOf(),
    shards: {
      refusalBefore: (shard, bytes) => {
        asked.push([shard, bytes]);
        return shard === undefined ? null : full;
      },
      raw: (_method, _format, _body, _scope, _expected, onAnswer) => {
        queueMicrotask(() => onAnswer({ kind: 'allowed' }));
        return { cancel: () => undefined };
      },
    },
    scopes: {
      peek: (projectId, tenantId) =>
        ({ projectId, tenantId }) as unknown as ReturnType<ReadScopes['peek']>,
      enqueue: () => null,
      settled: () => Promise.resolve(),
      isMoved: () => false,
      projectIdOf: (projectId: string) => projectId,
      tokenOf: () => '',
    },
    versions: { peek: () => undefined },
    meter: {
      ended: () => undefined,
      failed: (_rpc, error) => failed.push((error as AppError).reason),
    },
    general: {
      handleHttp1: (exchange) => exchange.sendEmpty(500),
      handleBuffered: (exchange) => exchange.sendEmpty(418),
    },
    bodyBytesMax: 1024 * 1024,
    bodyBudget: new BodyBudget(),
    reader: new DecisionReader({}),
    compressMinBytes: 1024,
    timeoutMsMax: 1000,
  });
  const server = createHttpServer({ host: '127.0.0.1', port: 0 });
  server.route('POST', hot.path, (exchange) => path.handle(exchange, hot));
  const { port } = await server.listen();
  onTestFinished(() => server.stop(0));
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  const headOf = (body: string, extra = ''): string =>
    `POST ${hot.path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${extra}content-length: ${body.length}\r\n\r\n`;
  const long = JSON.stringify({ tenant_id: 't', items: ['x'.repeat(100_000)] });
  const short = JSON.stringify({ tenant_id: 't', items: [] });
  const header = 'x-gatehouse-shard: p/a/b\r\n';
  // Nothing of the body was sent when the answer comes.
  const early = await exchangeOn(socket, headOf(long, header), '"QUEUE_FULL"');
  expect(early).toMatch(/^HTTP\/1.1 429 /);
  expect(early).toContain('"bound":"deadline"');
  // It is thrown away, and what follows on the connection is answered: short, or without the header.
  const rest = await exchangeOn(socket, long + headOf(short, header) + short, '"allowed":true');
  expect(rest).toMatch(/^HTTP\/1.1 200 /);
  expect(await exchangeOn(socket, headOf(long) + long, '"allowed":true')).toMatch(
    /^HTTP\/1.1 200 /,
  );
  expect(asked).toEqual([
    [{ projectId: 'p', tenantId: 'a/b' }, long.length],
    [undefined, long.length],
  ]);
  expect(failed).toEqual(['QUEUE_FULL']);
});

type Asked = Parameters<ConstructorParameters<typeof RawDecisions>[0]['shards']['raw']>;
type Sent = {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: Buffer;
};

/** A service that answers as set up, and the requests that it received. */
async function serve(
  answer: RawAnswer,
  options: { timeoutMsMax?: number; answersFrom?: number; bodyBytesMax?: number } = {},
) {
  const asked: Asked[] = [];
  const peeked: unknown[][] = [];
  const general: {
    path: string;
    how: string;
    headers: Record<string, string>;
    leftMs?: number | undefined;
    body: string;
  }[] = [];
  const metered: unknown[][] = [];
  const path = new RawDecisions({
    callers: callersOf(['right']),
    shards: {
      refusalBefore: () => null,
      raw: (...args: Asked) => {
        asked.push(args);
        if (asked.length >= (options.answersFrom ?? 0)) queueMicrotask(() => args[5](answer));
        return { cancel: () => metered.push(['cancelled']) };
      },
    },
    scopes: {
      peek: (...args) => {
        peeked.push(args);
        const [projectId, tenantId, , deadlineMs] = args;
        if (projectId === 'unknown') return undefined;
        return { projectId, tenantId, deadlineMs } as unknown as ReturnType<ReadScopes['peek']>;
      },
      enqueue: () => null,
      settled: () => Promise.resolve(),
      isMoved: () => false,
      projectIdOf: (projectId: string) => projectId,
      tokenOf: () => '',
    },
    versions: { peek: (_projectId, version) => (version === 3 ? -3 : undefined) },
    meter: {
      ended: (rpc) => void metered.push(['ended', rpc]),
      failed: (rpc, error) => void metered.push(['failed', rpc, (error as AppError).reason]),
    },
    general: {
      handleHttp1: (exchange) => {
        general.push({ path: '', how: 'whole', headers: {}, body: '' });
        exchange.sendEmpty(418);
      },
      handleBuffered: (exchange, to, headers, body, _requestId, _admitted, leftMs) => {
        const text = Buffer.from(body).toString();
        general.push({
          path: to,
          how: 'buffered',
          headers: Object.fromEntries(headers),
          leftMs,
          body: text,
        });
        exchange.sendEmpty(418);
      },
    },
    bodyBytesMax: options.bodyBytesMax ?? 10_000,
    bodyBudget: new BodyBudget(),
    reader: new DecisionReader({}),
    compressMinBytes: 1024,
    timeoutMsMax: options.timeoutMsMax ?? 5000,
  });
  const server = createHttpServer({ host: '127.0.0.1', port: 0 });
  for (const hot of HOT_METHODS) {
    server.route('POST', hot.path, (exchange) => path.handle(exchange, hot));
  }
  const { port } = await server.listen();
  onTestFinished(() => server.stop(0));
  const send = (
    body: string | Buffer,
    headers: Record<string, string> = {},
    method = 'check',
  ): Promise<Sent> =>
    new Promise((resolve, reject) => {
      const hot = HOT_METHODS.find((one) => one.method === method);
      const given: Record<string, string> = {
        'content-type': 'application/json',
        authorization: 'Bearer right',
        ...headers,
      };
      const sent = request(
        { port, path: hot?.path ?? '/', method: 'POST', headers: given },
        (response) => {
          const parts: Buffer[] = [];
          response.on('data', (part: Buffer) => parts.push(part));
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: Buffer.concat(parts),
            }),
          );
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });
  return { send, port, asked, peeked, general, metered };
}

const CHECK =
  '{"namespace":"doc","project_id":"p","tenant_id":"t","at_least_consistency_token":"x"}';

test('a plain request goes to its shard, with scope, token and deadline', async () => {
  const { send, asked, peeked, general, metered } = await serve({ kind: 'allowed' });
  const before = performance.timeOrigin + performance.now();
  const { status, headers, body } = await send(CHECK, { 'x-request-id': 'mine' });
  expect([status, headers['content-type'], body.toString(), headers['x-request-id']]).toEqual([
    200,
    'application/json',
    '{"allowed":true}',
    'mine',
  ]);
  expect(headers['content-encoding']).toBeUndefined();
  const [method, format, bytes, , expected] = asked[0] as Asked;
  expect([method, format, Buffer.from(bytes).toString()]).toEqual(['check', 'json', CHECK]);
  expect(expected).toEqual({ projectId: 'p', tenantId: 't', token: 'x', modelVersion: 0 });
  const [projectId, tenantId, token, deadlineMs] = peeked[0] as [string, string, string, number];
  expect([projectId, tenantId, token]).toEqual(['p', 't', 'x']);
  expect(deadlineMs - before).toBeGreaterThan(4000);
  expect(deadlineMs - before).toBeLessThan(15_000);
  expect(general).toEqual([]);
  expect(metered).toEqual([['ended', 'Check']]);
});

test.each([
  ['json', 'allowed', '{"allowed":true}'],
  ['json', 'denied', '{"allowed":false}'],
  ['proto', 'allowed', '\u0008\u0001'],
  ['proto', 'denied', ''],
] as const)('in %s, %s is %j', async (format, kind, text) => {
  const { send } = await serve({ kind });
  const body = format === 'json' ? CHECK : Buffer.from([0x3a, 1, 0x70, 0x42, 1, 0x74]);
  const sent = await send(body, { 'content-type': `application/${format}` });
  expect([sent.status, sent.headers['content-type'], sent.body.toString('latin1')]).toEqual([
    200,
    `application/${format}`,
    text,
  ]);
});

test.each([
  ['json', '{"scope":{"project_id":"p","model_version":"3"}}', '{"scope":{"model_version":4}}'],
  ['proto', Buffer.from([0x0a, 5, 0x0a, 1, 0x70, 0x30, 3]), Buffer.from([0x0a, 2, 0x30, 4])],
] as const)('a query in %s that names a version', async (format, known, unknown) => {
  const { send, asked, general } = await serve({ kind: 'allowed' });
  const headers = { 'content-type': `application/${format}` };
  // One that the workers have goes to them; any other to the general path, which gives it to them.
  expect((await send(known, headers, 'queryCheck')).status).toBe(200);
  const [method, , , scope, expected] = asked[0] as Asked;
  expect([method, scope.projectId, scope.modelVersion]).toEqual(['queryCheck', 'p', -3]);
  expect(expected).toEqual({ projectId: 'p', tenantId: '', token: '', modelVersion: 3 });
  expect((await send(unknown, headers, 'queryCheck')).status).toBe(418);
  expect([asked.length, general.length]).toEqual([1, 1]);
});

/** One field of each method's own numbers, and where the other methods have theirs. */
test.each([
  ['check', [7, 8, 9]],
  ['batchCheck', [1, 2, 4]],
  ['listObjects', [4, 5, 6]],
] as const)('%s in binary is routed by its own fields', async (method, numbers) => {
  const { send, asked, metered } = await serve({ kind: 'denied' });
  const values = ['p', 't', 'x'];
  const body = numbers.flatMap((number, i) => [
    (number << 3) | 2,
    1,
    (values[i] ?? '').charCodeAt(0),
  ]);
  await send(Buffer.from(body), { 'content-type': 'application/proto' }, method);
  expect(asked[0]?.[0]).toBe(method);
  expect(asked[0]?.[1]).toBe('proto');
  expect(asked[0]?.[4]).toEqual({ projectId: 'p', tenantId: 't', token: 'x', modelVersion: 0 });
  const names = { check: 'Check', batchCheck: 'BatchCheck', listObjects: 'ListObjects' };
  expect(metered).toEqual([['ended', names[method]]]);
});

test.each([
  ['another credential', { authorization: 'Bearer wrong' }],
  ['no credential', { authorization: '' }],
  ['another content type', { 'content-type': 'application/json; charset=utf-8' }],
  ['a compressed body', { 'content-encoding': 'gzip' }],
  ['another version of the protocol', { 'connect-protocol-version': '2' }],
  ['no time', { 'connect-timeout-ms': '0' }],
  ['a time that is none', { 'connect-timeout-ms': '1s' }],
  ['a time with a sign', { 'connect-timeout-ms': '-1' }],
  ['a time below the digits', { 'connect-timeout-ms': '1/' }],
  ['a time of eleven digits', { 'connect-timeout-ms': '10000000000' }],
  ['a body of unknown length', { 'transfer-encoding': 'chunked' }],
] as const)('%s is for the general path, before anything is read', async (_what, headers) => {
  const { send, asked, peeked, general } = await serve({ kind: 'allowed' });
  expect((await send(CHECK, headers as Record<string, string>)).status).toBe(418);
  expect([asked, peeked, general.map(({ how }) => how)]).toEqual([[], [], ['whole']]);
});

test('so is a body that is too large, and not one of just the largest size', async () => {
  const { send, asked, general } = await serve({ kind: 'allowed' });
  const bodyOf = (bytes: number): string =>
    CHECK.replace('doc', 'd'.repeat(bytes - CHECK.length + 3));
  expect((await send(bodyOf(10_001))).status).toBe(418);
  expect([asked.length, general.length]).toEqual([0, 1]);
  expect((await send(bodyOf(10_000))).status).toBe(200);
  expect([asked.length, general.length]).toEqual([1, 1]);
});

test.each([
  ['1', 1],
  ['0100', 100],
  ['5000', 5000],
  ['5001', 5000],
  ['9999999999', 5000],
  ['1234567890', 5000],
])('a caller may state %s ms', async (stated, counted) => {
  const { send, peeked } = await serve({ kind: 'allowed' });
  const beforeMs = performance.timeOrigin + performance.now();
  await send(CHECK, { 'connect-timeout-ms': stated });
  const left = (peeked[0]?.[3] as number) - beforeMs;
  // The time of the tick is shared, and may be a little older.
  expect(left).toBeGreaterThan(counted - 1000);
  expect(left).toBeLessThan(counted + 2500);
});

const FALLBACKS: readonly (readonly [string, string])[] = [
  ['a scope that is no text', CHECK.replace('"t"', '7')],
  ['a tenant with a space', CHECK.replace('"t"', '"t t"')],
  ['a tenant with a slash', CHECK.replace('"t"', '"t/t"')],
  ['a tenant with a semicolon', CHECK.replace('"t"', '"t;"')],
  ['a tenant with an at', CHECK.replace('"t"', '"t@"')],
  ['a tenant with a bracket', CHECK.replace('"t"', '"t["')],
  ['a tenant with a backtick', CHECK.replace('"t"', '"t`"')],
  ['a tenant with a brace', CHECK.replace('"t"', '"t{"')],
  ['a tenant with a comma', CHECK.replace('"t"', '"t,"')],
  ['a tenant that is too long', CHECK.replace('"t"', `"${'t'.repeat(129)}"`)],
  ['a project that is not known yet', CHECK.replace('"p"', '"unknown"')],
];
test.each(FALLBACKS)('%s is for the general path, with the same body', async (_what, body) => {
  const { send, asked, general, metered } = await serve({ kind: 'allowed' });
  const headers = { 'accept-encoding': 'br', 'connect-timeout-ms': '4000' };
  expect((await send(body, headers)).status).toBe(418);
  expect(asked).toEqual([]);
  // What is left of the time that the caller stated.
  const leftMs = general[0]?.leftMs ?? 0;
  expect([leftMs > 0, leftMs <= 4000]).toEqual([true, true]);
  expect(general).toEqual([
    {
      path: '/workspace.v1.AuthzService/Check',
      how: 'buffered',
      headers: { 'content-type': 'application/json', 'accept-encoding': 'br' },
      leftMs,
      body,
    },
  ]);
  expect(metered).toEqual([]);
});

test.each(['aZ09', 'a-b', 'a.b', 'a_b', 'a:b', 'z', 'A', '0:9', '', 't'.repeat(128)])(
  'tenant %j is plain',
  async (tenant) => {
    const { send, asked } = await serve({ kind: 'allowed' });
    expect((await send(CHECK.replace('"t"', JSON.stringify(tenant)))).status).toBe(200);
    expect(asked[0]?.[4].tenantId).toBe(tenant);
  },
);

test('a tenant with escapes is the one that they say', async () => {
  const { send, asked } = await serve({ kind: 'allowed' });
  expect((await send(CHECK.replace('"t"', '"\\u0074"'))).status).toBe(200);
  expect(asked[0]?.[4].tenantId).toBe('t');
});

const RIGHT =
  '{"namespace":"doc","object_id":"d","relation":"viewer","subject_user_id":"u","project_id":"p","tenant_id":"t"}';
const FULL: RawAnswer = {
  kind: 'error',
  error: { reason: 'QUEUE_FULL', message: 'full', metadata: {} },
};
/** Its context ends behind the fields that follow it. */
const RUNS_ON = [0x32, 2, 0x0a, 9, 0x3a, 1, 0x70, 0x42, 1, 0x74, 0x4a, 1, 0x78];

test.each([
  ['a value of another type', RIGHT.replace('"doc"', '7'), 'json', 'BODY_MALFORMED'],
  ['a field that is not valid', RIGHT.replace('doc', 'Doc'), 'json', 'FIELD_INVALID'],
  ['a field that is missing', RIGHT.replace('"u"', '""'), 'json', 'FIELD_REQUIRED'],
  ['a message that runs past its end', Buffer.from(RUNS_ON), 'proto', 'BODY_MALFORMED'],
  ['nothing', RIGHT, 'json', 'QUEUE_FULL'],
] as const)(
  'a full queue says first what is wrong with a body: %s',
  async (_what, body, type, why) => {
    const { send, asked, general, metered } = await serve(FULL);
    const answer = await send(body, { 'content-type': `application/${type}` });
    expect(answer.body.toString()).toContain(`"reason":"${why}"`);
    expect([asked.length, general.length]).toEqual([1, 0]);
    expect(metered).toEqual([
      ['failed', 'Check', why],
      ['ended', 'Check'],
    ]);
  },
);

test('a plain body is not decoded where the queue is full: there are many of them', async () => {
  const decoded = vi.spyOn(DecisionReader.prototype, 'read');
  const { send } = await serve(FULL);
  for (let i = 0; i < 3; i++) await send(RIGHT);
  await send(JSON.stringify({ project_id: 'p', tenant_id: 't', items: [] }), {}, 'batchCheck');
  expect(decoded).toHaveBeenCalledOnce();
  decoded.mockRestore();
});

test('a long body is not read where the queue is full, as none is before it has come', async () => {
  const { send } = await serve(FULL, { bodyBytesMax: 100_000 });
  const items = Array.from({ length: 400 }, () => ({ namespace: 'D'.repeat(80) }));
  const body = JSON.stringify({ project_id: 'p', tenant_id: 't', items });
  const answer = await send(body, {}, 'batchCheck');
  expect(answer.body.toString()).toContain('"reason":"QUEUE_FULL"');
});

test('an error is an error: its code, its reason, counted', async () => {
  const { send, metered } = await serve({
    kind: 'error',
    error: { reason: 'BUDGET_EXHAUSTED', message: 'too many reads', metadata: {} },
  });
  const { status, body } = await send(CHECK, { 'x-request-id': 'mine' });
  expect(status).toBe(429);
  expect(JSON.parse(body.toString())).toMatchObject({ code: 'resource_exhausted' });
  expect(metered).toEqual([
    ['failed', 'Check', 'BUDGET_EXHAUSTED'],
    ['ended', 'Check'],
  ]);
});

test.each([
  [1023, 'gzip', false],
  [1024, 'gzip', true],
  [1024, 'br, gzip', true],
  [1024, 'br,gzip ', true],
  [1024, 'gzipped', false],
  [1024, 'br', false],
  [1024, '', false],
])('a body of %i bytes for %j: compressed %s', async (bytes, encoding, isCompressed) => {
  const text = Buffer.from('x'.repeat(bytes));
  const { send, metered } = await serve({ kind: 'body', body: text });
  const { status, headers, body } = await send(CHECK, { 'accept-encoding': encoding });
  expect(status).toBe(200);
  expect(headers['content-encoding']).toBe(isCompressed ? 'gzip' : undefined);
  expect((isCompressed ? gunzipSync(body) : body).equals(text)).toBe(true);
  expect(metered).toEqual([['ended', 'Check']]);
});

/** A Check with a long field: its body is read into memory that is used again. */
const LONG_CHECK = CHECK.replace('doc', 'd'.repeat(5_000));
/** Number of buffers of the bodies that a shard got, and of their offsets. */
const placesOf = (asked: readonly Asked[]): readonly [number, number] => {
  const places = asked.map(([, , { buffer, byteOffset }]) => [buffer, byteOffset] as const);
  const buffers = new Set(places.map(([buffer]) => buffer));
  return [buffers.size, new Set(places.map(([, offset]) => offset)).size];
};

test('memory of bodies is used again once they are answered', async () => {
  for (const answer of [{ kind: 'allowed' }, FULL] as const) {
    const { send, asked } = await serve(answer);
    for (let i = 0; i < 4; i++) await send(LONG_CHECK);
    expect([asked.length, placesOf(asked)]).toEqual([4, [1, 1]]);
  }
});

test('a caller that goes ends its evaluation, and gives back the memory of its body', async () => {
  for (const text of [CHECK, LONG_CHECK]) {
    const { send, port, asked, metered } = await serve({ kind: 'allowed' }, { answersFrom: 2 });
    const sent = request({
      port,
      path: '/workspace.v1.AuthzService/Check',
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer right' },
    });
    sent.on('error', () => undefined);
    sent.end(text);
    await expect.poll(() => asked.length).toBe(1);
    expect(metered).toEqual([]);
    sent.destroy();
    await expect.poll(() => metered).toEqual([['cancelled']]);
    expect((await send(text)).status).toBe(200);
    if (text === LONG_CHECK) expect([asked.length, placesOf(asked)]).toEqual([2, [1, 1]]);
  }
});

test('an answer that cannot be compressed is an error, and counted', async () => {
  const body = { byteLength: 5_000 } as Uint8Array;
  const { send, metered } = await serve({ kind: 'body', body });
  expect((await send(CHECK, { 'accept-encoding': 'gzip' })).status).toBe(500);
  expect(metered).toEqual([
    ['failed', 'Check', 'INTERNAL'],
    ['ended', 'Check'],
  ]);
});
