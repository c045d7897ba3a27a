import { once } from 'node:events';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, type JsonObject, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WatchRequestSchema } from '../../src/gen/gatehouse/v1/tuple_service_pb.ts';
import { HealthCheckRequestSchema } from '../../src/gen/grpc/health/v1/health_pb.ts';
import { callHttp2, envelope } from '../support/http2-calls.ts';
import { call, type Service, startService } from '../support/service.ts';

/* Callers by name, whose file changes while the service runs. */

const folder = mkdtempSync(join(tmpdir(), 'callers-'));
const file = join(folder, 'callers.json');
const all = { projects: '*', tenants: '*', services: '*', methods: '*' };
const inAcme = { ...all, projects: ['default'], tenants: ['acme'] };
const callers = {
  billing: { name: 'billing', tokens: ['billing-1', 'billing-2'], scopes: [inAcme] },
  audit: { name: 'audit', tokens: ['audit-1'], scopes: [{ ...all, methods: ['read', 'export'] }] },
  slow: {
    name: 'slow',
    tokens: ['slow-1'],
    scopes: [all],
    rate_limit: { per_second: 0.01, burst: 2 },
  },
  root: { name: 'root', tokens: ['root-1'], scopes: [all] },
};
let service: Service;
let session: ClientHttp2Session;

function write(...some: readonly object[]): void {
  // In one step, as mounted secrets are exchanged.
  writeFileSync(`${file}.new`, JSON.stringify({ callers: some }));
  renameSync(`${file}.new`, file);
}

beforeAll(async () => {
  write(...Object.values(callers));
  service = await startService({
    postgres: 'shared',
    env: {
      GATEWAY_SERVICE_AUTH_TOKENS: '',
      GATEWAY_CALLERS_FILE: file,
      GATEWAY_OPEN_SERVICES: 'none',
      GATEWAY_WATCH_STREAMS: '10',
      GATEWAY_AUDIT_LOG: 'true',
      GATEWAY_MAX_CHECK_READS: '100',
    },
  });
  session = connect(service.baseUrl);
  await once(session, 'connect');
});
afterAll(async () => {
  session.close();
  expect(await service.stop()).toBe(0);
  rmSync(folder, { recursive: true });
});

const question = {
  namespace: 'resource',
  object_id: 'o',
  relation: 'viewer',
  subject_user_id: 'u',
};
const tuple = {
  namespace: 'resource',
  object_id: 'o',
  relation: 'viewer',
  subject: { user_id: 'u' },
};

async function status(token: string, method: string, body: JsonObject): Promise<number> {
  return (await call({ ...service, token }, method, body)).status;
}

const check = (token: string, tenant = 'acme'): Promise<number> =>
  status(token, 'AuthzService/Check', { ...question, tenant_id: tenant });
const writeTo = (token: string, tenant = 'acme'): Promise<number> =>
  status(token, 'AuthzService/WriteRelationTuples', {
    tenant_id: tenant,
    updates: [{ op: 'OP_INSERT', tuple }],
  });

async function metrics(): Promise<string> {
  return await (await fetch(`${service.metricsUrl}/metrics`)).text();
}

async function soon(what: () => Promise<void> | void): Promise<void> {
  await vi.waitFor(what, { timeout: 20_000, interval: 20 });
}

test('scopes hold on every path, and their refusals are told with the name', async () => {
  expect([await check('billing-1'), await check('billing-2'), await check('nobody')]).toEqual([
    200, 200, 401,
  ]);
  expect([await check('billing-1', 'other'), await check('billing-1', '')]).toEqual([403, 403]);
  expect([await writeTo('billing-1'), await writeTo('billing-1', 'other')]).toEqual([200, 403]);
  expect([await check('audit-1'), await writeTo('audit-1')]).toEqual([200, 403]);
  const unknown = await call({ ...service, token: 'billing-1' }, 'AuthzService/Check', {
    ...question,
    project_id: 'nowhere',
  });
  expect([unknown.status, unknown.body['code']]).toEqual([403, 'permission_denied']);
  await soon(() => {
    const line = service.log.find(({ msg }) => msg === 'scope_refused');
    expect(line?.['detail']).toContain('billing: workspace.v1.AuthzService/Check');
  });
  const records = service.log.filter(({ event }) => event === 'audit');
  expect(records.map((record) => record['caller'])).toEqual(['billing']);
  const text = await metrics();
  expect(text).toMatch(/gatehouse_caller_calls_total\{caller="billing"\} \d+/);
  expect(text).toContain('gatehouse_caller_refusals_total{caller="audit",reason="scope"} 1');
});

test('mutations of projects carry the caller beside the operator', async () => {
  const made = await call({ ...service, token: 'root-1' }, 'AdminService/CreateProject', {
    id: 'atlas',
    name: 'atlas',
  });
  expect(made.status).toBe(200);
  const shown = await call({ ...service, token: 'billing-1' }, 'AdminService/ListProjects', {});
  expect((shown.body['projects'] as readonly JsonObject[]).map(({ id }) => id)).toEqual([
    'default',
  ]);
  await soon(() => {
    const record = service.log.find(({ operation }) => operation === 'create_project');
    expect(record).toMatchObject({ caller: 'root', kind: 'admin_action' });
  });
});

test('the line about a question beyond its budget names who asked it', async () => {
  const group = (level: number) => ({
    namespace: 'group',
    object_id: `g${level}`,
    relation: 'member',
  });
  const updates = Array.from({ length: 200 }, (_, level) => ({
    op: 'OP_INSERT',
    tuple: { ...group(level), subject: { set: group(level + 1) } },
  }));
  expect(await status('root-1', 'AuthzService/WriteRelationTuples', { updates })).toBe(200);
  expect(
    await status('root-1', 'AuthzService/Check', { ...group(0), subject_user_id: 'nobody' }),
  ).toBe(429);
  await soon(() => {
    const line = service.log.find(({ msg }) => msg === 'budget_exhausted');
    expect(line).toMatchObject({ caller: 'root', project: 'default', relation: 'group#member' });
  });
});

test('a rate counts all of its calls, and the next one is refused', async () => {
  expect([await check('slow-1'), await check('slow-1'), await check('slow-1')]).toEqual([
    200, 200, 429,
  ]);
  expect(await writeTo('slow-1')).toBe(429);
});

test('/fsck is for who reaches every project', async () => {
  const ask = async (token: string): Promise<number> =>
    (await fetch(`${service.metricsUrl}/fsck`, { headers: { authorization: `Bearer ${token}` } }))
      .status;
  expect([
    await ask('root-1'),
    await ask('audit-1'),
    await ask('billing-1'),
    await ask('x'),
  ]).toEqual([200, 200, 403, 401]);
});

test('health and reflection need a credential where they are not open', async () => {
  const health = envelope(0, toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema)));
  const ask = async (path: string, token: string): Promise<string | undefined> => {
    const headers = {
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization: `Bearer ${token}`,
    };
    return (await callHttp2(session, path, headers, [health])).fields['grpc-status'];
  };
  expect(await ask('/grpc.health.v1.Health/Check', 'x')).toBe('16');
  expect(await ask('/grpc.health.v1.Health/Check', 'billing-1')).toBe('0');
  expect(await ask('/grpc.reflection.v1.ServerReflection/ServerReflectionInfo', 'x')).toBe('16');
  expect((await fetch(`${service.baseUrl}/healthz`)).status).toBe(200);
});

function grpcWatch(token: string): ClientHttp2Stream {
  const message = toBinary(WatchRequestSchema, create(WatchRequestSchema, { tenantId: 'acme' }));
  const stream = session.request({
    ':method': 'POST',
    ':path': '/gatehouse.v1.TupleService/Watch',
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${token}`,
  });
  stream.on('error', () => undefined);
  stream.resume();
  stream.end(envelope(0, message));
  return stream;
}

test('streams of a revoked credential end, those of others and of the same caller go on', async () => {
  const headers = { authorization: 'Bearer billing-2' };
  const events = await fetch(`${service.baseUrl}/v1/watch?tenant_id=acme`, { headers });
  const text = events.text();
  const ended = grpcWatch('billing-2');
  const trailers = once(ended, 'trailers');
  const kept = [grpcWatch('billing-1'), grpcWatch('audit-1')];
  await Promise.all([ended, ...kept].map((stream) => once(stream, 'response')));
  write({ ...callers.billing, tokens: ['billing-1', 'billing-3'] }, callers.audit, callers.root);
  expect((await trailers)[0]).toMatchObject({ 'grpc-status': '16' });
  expect(await text).toContain('event: error\ndata: {"code":"unauthenticated"');
  expect([await check('billing-1'), await check('billing-2'), await check('billing-3')]).toEqual([
    200, 401, 200,
  ]);
  expect(kept.map((stream) => stream.closed)).toEqual([false, false]);
  write(
    { ...callers.billing, scopes: [{ ...inAcme, methods: ['read'] }] },
    callers.audit,
    callers.root,
  );
  await once(kept[0] as ClientHttp2Stream, 'close');
  expect(await writeTo('billing-1')).toBe(403);
  expect((kept[1] as ClientHttp2Stream).closed).toBe(false);
  kept[1]?.close();
});

test('a file that is empty, broken or gone changes nothing, and metrics tell', async () => {
  const failing = (value: number): string =>
    `gatehouse_credential_file_failing{credential="callers"} ${value}`;
  expect(await metrics()).toContain(failing(0));
  for (const content of ['', '{"callers":[]}', '{"callers":[{"name":"root"', '[]']) {
    writeFileSync(file, content);
    await soon(async () => expect(await metrics()).toContain(failing(1)));
    expect([await check('root-1'), await check('x'), await check('')]).toEqual([200, 401, 401]);
    write(callers.root);
    await soon(async () => expect(await metrics()).toContain(failing(0)));
  }
  rmSync(file);
  await soon(async () => expect(await metrics()).toContain(failing(1)));
  expect([await check('root-1'), await check('')]).toEqual([200, 401]);
  const log = JSON.stringify(service.log);
  expect(log).not.toMatch(/billing-[123]|audit-1|root-1/);
});
