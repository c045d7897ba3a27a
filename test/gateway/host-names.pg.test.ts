/*
 * While no service token is set the service answers to names of this machine alone, so that no page can
 * reach it by rebinding its own name: every path, both protocols, both ports.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import * as grpc from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AuthzService, CheckRequestSchema } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { FOREIGN_HOSTS, hostRequest, hostStream, OWN_HOSTS } from '../support/host-request.ts';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { type ServedService, serveService } from '../support/serve-service.ts';

const CHECK = {
  namespace: 'resource',
  object_id: 'd1',
  relation: 'viewer',
  subject_user_id: 'alice',
};
const JSON_CHECK = JSON.stringify(CHECK);
const PROTO_CHECK = toBinary(
  CheckRequestSchema,
  create(CheckRequestSchema, {
    namespace: 'resource',
    objectId: 'd1',
    relation: 'viewer',
    subjectUserId: 'alice',
  }),
);
const JSON_TYPE = { 'content-type': 'application/json' };
const AUTHZ = '/workspace.v1.AuthzService';

const databases: TestDatabase[] = [];
let service: ServedService;

beforeAll(async () => {
  service = await startOpen({});
});

afterAll(async () => {
  expect(await service.stop()).toBe(0);
  for (const database of databases) await database.drop();
});

/** A service that trusts every caller, as without any setting. */
function startOpen(env: Readonly<Record<string, string>>): Promise<ServedService> {
  return start({ GATEWAY_SERVICE_AUTH_TOKENS: '', ...env });
}

/** A service on a database of its own. */
async function start(env: Readonly<Record<string, string>>): Promise<ServedService> {
  const database = await createTestDatabase();
  databases.push(database);
  const DATABASE_URL = urlOf(database.target);
  return serveService({ DATABASE_URL, GATEWAY_WORKERS: '1', ...env });
}

type Request = Parameters<typeof hostRequest>[3] & {
  readonly path: string;
  readonly port: 'rpc' | 'metrics';
  /** Of an answer to a name that is accepted. */
  readonly status: number;
};

/** Each way into the process over HTTP/1.1. */
const REQUESTS: Readonly<Record<string, Request>> = {
  'hot path, JSON': {
    port: 'rpc',
    path: `${AUTHZ}/Check`,
    method: 'POST',
    headers: JSON_TYPE,
    body: JSON_CHECK,
    status: 200,
  },
  'hot path, binary': {
    port: 'rpc',
    path: `${AUTHZ}/Check`,
    method: 'POST',
    headers: { 'content-type': 'application/proto' },
    body: PROTO_CHECK,
    status: 200,
  },
  'hot path, batches': {
    port: 'rpc',
    path: `${AUTHZ}/BatchCheck`,
    method: 'POST',
    headers: JSON_TYPE,
    body: JSON.stringify({ items: [CHECK] }),
    status: 200,
  },
  'general path': {
    port: 'rpc',
    path: `${AUTHZ}/ReadRelationTuples`,
    method: 'POST',
    headers: JSON_TYPE,
    body: '{}',
    status: 200,
  },
  'a hot method sent the general path': {
    port: 'rpc',
    path: `${AUTHZ}/Check`,
    method: 'POST',
    headers: { ...JSON_TYPE, 'content-encoding': 'identity' },
    body: JSON_CHECK,
    status: 200,
  },
  'admin calls': {
    port: 'rpc',
    path: '/workspace.v1.AdminService/ListProjects',
    method: 'POST',
    headers: { ...JSON_TYPE, 'x-admin-secret': 'test-admin-secret' },
    body: '{}',
    status: 200,
  },
  'no such method': {
    port: 'rpc',
    path: '/nothing',
    method: 'POST',
    headers: JSON_TYPE,
    body: '{}',
    status: 404,
  },
  'a wrong verb': { port: 'rpc', path: `${AUTHZ}/Check`, method: 'DELETE', status: 405 },
  'preflight of a page': { port: 'rpc', path: `${AUTHZ}/Check`, method: 'OPTIONS', status: 405 },
  'health on the port of calls': { port: 'rpc', path: '/readyz', status: 200 },
  'a page on the port of calls': { port: 'rpc', path: '/', status: 404 },
  metrics: { port: 'metrics', path: '/metrics', status: 200 },
  'health on the port of metrics': { port: 'metrics', path: '/healthz', status: 200 },
  'a page on the port of metrics': { port: 'metrics', path: '/', status: 404 },
};

function urlFor(request: Request): string {
  return request.port === 'rpc' ? service.baseUrl : service.metricsUrl;
}

describe.each(Object.entries(REQUESTS))('HTTP/1.1: %s', (_name, request) => {
  test.each(FOREIGN_HOSTS)('%s is refused', async (host) => {
    const answer = await hostRequest(urlFor(request), request.path, host, request);
    expect(answer.status).toBe(403);
    expect(answer.headers['x-request-id']).toMatch(/\S/);
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    expect(JSON.parse(answer.body)).toMatchObject({
      code: 'permission_denied',
      details: [{ debug: { reason: 'HOST_NOT_ALLOWED' } }],
    });
  });

  test.each(OWN_HOSTS)('%s is served', async (host) => {
    const answer = await hostRequest(urlFor(request), request.path, host, request);
    expect(answer.status).toBe(request.status);
  });
});

test.each([
  ['1.0', undefined],
  ['1.0', ''],
  ['1.1', undefined],
  ['1.1', ''],
] as const)('HTTP/%s, Host %s: no name is none of ours', async (version, host) => {
  const isNameless = version === '1.0' && host === undefined;
  // Health says nothing of anybody, and no page sends such a request.
  const health = isNameless ? [] : ['health on the port of calls'];
  const ways = ['hot path, JSON', 'general path', ...health, 'metrics'];
  const statuses = ways.map(async (way) => {
    const request = REQUESTS[way];
    if (request === undefined) throw new Error(way);
    const options = { ...request, version };
    return (await hostRequest(urlFor(request), request.path, host, options)).status;
  });
  // The HTTP layer refuses or drops some of them by itself: what counts is that none is served.
  for (const status of await Promise.all(statuses)) expect([0, 400, 403, 505]).toContain(status);
  if (!isNameless) return;
  for (const url of [service.baseUrl, service.metricsUrl]) {
    for (const path of ['/healthz', '/readyz']) {
      expect((await hostRequest(url, path, undefined, { version })).status).toBe(200);
    }
  }
});

test('what was accepted last opens nothing for what comes next', async () => {
  const { baseUrl } = service;
  const options = { method: 'POST', headers: JSON_TYPE, body: JSON_CHECK };
  for (const [host, status] of [
    ['localhost:PORT', 200],
    ['rebound.example:PORT', 403],
    ['localhost:PORT', 200],
    ['localhost:PORTX', 403],
    ['rebound.example:PORT', 403],
    ['127.0.0.1:PORT', 200],
  ] as const) {
    const answer = await hostRequest(baseUrl, `${AUTHZ}/Check`, host, options);
    expect([host, answer.status]).toEqual([host, status]);
  }
});

describe('HTTP/2', () => {
  const paths = {
    'Connect, JSON': [`${AUTHZ}/Check`, { ...JSON_TYPE, 'connect-protocol-version': '1' }],
    'no such method': ['/nothing', JSON_TYPE],
  } as const;

  test.each(Object.entries(paths))('%s', async (_name, [path, headers]) => {
    for (const host of FOREIGN_HOSTS) {
      const both = [
        { host },
        { ':authority': 'localhost:PORT', host },
        { ':authority': host, host: 'localhost:PORT' },
      ];
      // What is no authority at all nghttp2 refuses itself, or takes for no `host`.
      const isPlain = /^[\w.:-]+$/.test(host);
      for (const names of [{ ':authority': host }, ...(isPlain ? both : [])]) {
        const sent = { headers, body: JSON_CHECK };
        const answer = await hostStream(service.baseUrl, path, names, sent);
        expect([names, [0, 403].includes(answer.status)]).toEqual([names, true]);
        if (isPlain) expect(answer.body).toContain('HOST_NOT_ALLOWED');
      }
    }
    const none = await hostStream(service.baseUrl, path, {}, { headers, body: JSON_CHECK });
    expect([0, 403]).toContain(none.status);
    for (const host of OWN_HOSTS) {
      for (const names of [{ ':authority': host }, { host }, { ':authority': host, host }]) {
        const answer = await hostStream(service.baseUrl, path, names, {
          headers,
          body: JSON_CHECK,
        });
        expect(answer.status).toBe(path === '/nothing' ? 404 : 200);
      }
    }
  });

  test('health', async () => {
    const get = (authority: string) =>
      hostStream(service.baseUrl, '/healthz', { ':authority': authority }, { method: 'GET' });
    expect((await get('rebound.example')).status).toBe(403);
    expect((await get('localhost:PORT')).status).toBe(200);
  });

  test.each([
    [
      'application/grpc',
      (answer: { trailers: Readonly<Record<string, string>> }) => answer.trailers['grpc-status'],
    ],
    [
      'application/grpc+proto',
      (answer: { trailers: Readonly<Record<string, string>> }) => answer.trailers['grpc-status'],
    ],
    [
      'application/grpc-web+proto',
      (answer: { body: string }) => /grpc-status: (\d+)/.exec(answer.body)?.[1],
    ],
    [
      'application/connect+json',
      (answer: { body: string }) => (answer.body.includes('"permission_denied"') ? '7' : ''),
    ],
  ] as const)('%s is told in its own form', async (type, codeOf) => {
    const answer = await hostStream(
      service.baseUrl,
      `${AUTHZ}/Check`,
      { ':authority': 'rebound.example' },
      { headers: { 'content-type': type, te: 'trailers' }, body: '' },
    );
    expect(answer.status).toBe(200);
    expect(codeOf(answer as never)).toBe('7');
  });

  test.each([
    ['rebound.example:443', grpc.status.PERMISSION_DENIED],
    ['localhost:1234', undefined],
  ])('a gRPC client that calls itself for %s', async (authority, code) => {
    const client = new grpc.Client(service.address, grpc.credentials.createInsecure(), {
      'grpc.default_authority': authority,
    });
    const failure = await new Promise<grpc.ServiceError | null>((resolve) => {
      client.makeUnaryRequest(
        `/${AuthzService.typeName}/Check`,
        (bytes: Buffer) => bytes,
        (bytes: Buffer) => bytes,
        Buffer.from(PROTO_CHECK),
        (error) => resolve(error),
      );
    });
    client.close();
    expect(failure?.code).toBe(code);
  });
});

test('gRPC over HTTP/1.1, which has no trailers, is refused as JSON', async () => {
  const options = { method: 'POST', headers: { 'content-type': 'application/grpc' }, body: '' };
  const answer = await hostRequest(service.baseUrl, `${AUTHZ}/Check`, 'a.example', options);
  expect([answer.status, JSON.parse(answer.body).code]).toEqual([403, 'permission_denied']);
});

test('an operator is told which name was refused, at a bounded rate', async () => {
  await hostRequest(service.baseUrl, '/healthz', `${'x'.repeat(300)}.example`);
  const lines = service.log.filter(({ msg }) => msg === 'host_refused');
  expect(lines.length).toBeGreaterThan(0);
  for (const { detail } of lines) expect(String(detail).length).toBeLessThanOrEqual(100);
});

test('a list admits more names, at any port or at a stated one, and no others', async () => {
  const named = await startOpen({
    GATEWAY_ALLOWED_HOSTS: 'authz,proxy.example:443',
    GATEWAY_HOST: '0.0.0.0',
  });
  const statusOf = async (url: string, path: string, host: string): Promise<number> =>
    (await hostRequest(url, path, host)).status;
  for (const [url, path] of [
    [named.baseUrl, '/healthz'],
    [named.metricsUrl, '/metrics'],
  ] as const) {
    expect(await statusOf(url, path, 'authz:9090')).toBe(200);
    expect(await statusOf(url, path, 'AUTHZ')).toBe(200);
    expect(await statusOf(url, path, 'proxy.example')).toBe(200);
    expect(await statusOf(url, path, 'proxy.example:8443')).toBe(403);
    expect(await statusOf(url, path, 'authz.example')).toBe(403);
    // Others may connect: by address, which nobody can rebind.
    expect(await statusOf(url, path, '10.1.2.3:9090')).toBe(200);
  }
  expect(await named.stop()).toBe(0);
}, 120_000);

test('with service tokens every name will do, since only who has one gets an answer', async () => {
  const guarded = await start({});
  const options = { method: 'POST', headers: JSON_TYPE, body: JSON_CHECK };
  const path = `${AUTHZ}/Check`;
  const withToken = { ...JSON_TYPE, authorization: `Bearer ${guarded.token}` };
  const named = { ...options, headers: withToken };
  expect((await hostRequest(guarded.baseUrl, path, 'authz:8080', options)).status).toBe(401);
  expect((await hostRequest(guarded.baseUrl, path, 'authz:8080', named)).status).toBe(200);
  expect((await hostRequest(guarded.metricsUrl, '/metrics', 'authz:9090')).status).toBe(200);
  const authority = { ':authority': 'authz:8080' };
  const stream = { headers: withToken, body: JSON_CHECK };
  expect((await hostStream(guarded.baseUrl, path, authority, stream)).status).toBe(200);
  expect(await guarded.stop()).toBe(0);
}, 120_000);
