import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import * as grpc from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Health } from '../../src/gen/grpc/health/v1/health_pb.ts';
import {
  AuthzService,
  CheckRequestSchema,
  CheckResponseSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { call, spawnService, startService, type Service } from '../support/service.ts';

/* The real service as a child process, with its own embedded Postgres. */
let service: Service;

beforeAll(async () => {
  service = await startService({ env: { GATEWAY_AUDIT_LOG: 'true', GATEWAY_DRAIN_MS: '5000' } });
});

afterAll(async () => {
  expect(await service.stop()).toBe(0);
});

const grant = (objectId: string, userId: string): object => ({
  op: 'OP_INSERT',
  tuple: {
    namespace: 'resource',
    object_id: objectId,
    relation: 'viewer',
    subject: { user_id: userId },
  },
});

async function get(url: string): Promise<{ status: number; body: string; type: string | null }> {
  const response = await fetch(url);
  const type = response.headers.get('content-type');
  return { status: response.status, body: await response.text(), type };
}

describe('a walk through AuthzService', () => {
  const scope = { tenant_id: 'walk' };
  let token = '';

  test('write, check, read, list, expand', async () => {
    const member = { namespace: 'group', object_id: 'g', relation: 'member' };
    const written = await call(service, 'AuthzService/WriteRelationTuples', {
      ...scope,
      updates: [
        grant('d1', 'alice'),
        {
          op: 'OP_INSERT',
          tuple: {
            ...member,
            subject: { user_id: 'bob' },
            expires_at: '2999-01-02T03:04:05.123456Z',
          },
        },
        {
          op: 'OP_INSERT',
          tuple: {
            namespace: 'resource',
            object_id: 'd1',
            relation: 'viewer',
            subject: { set: member },
          },
        },
        {
          op: 'OP_INSERT',
          tuple: {
            namespace: 'resource',
            object_id: 'd2',
            relation: 'viewer',
            subject: { user_id: 'carol' },
            condition_name: 'age_at_least',
            condition_params: { min_age: 18 },
          },
        },
      ],
    });
    expect(written.status).toBe(200);
    token = String(written.body['consistency_token']);
    const question = {
      ...scope,
      namespace: 'resource',
      relation: 'viewer',
      at_least_consistency_token: token,
    };
    const check = async (objectId: string, rest: object): Promise<unknown> =>
      (await call(service, 'AuthzService/Check', { ...question, object_id: objectId, ...rest }))
        .body;
    expect(await check('d1', { subject_user_id: 'alice' })).toEqual({ allowed: true });
    expect(await check('d1', { subject_user_id: 'bob' })).toEqual({ allowed: true });
    expect(await check('d1', { subject_user_id: 'dave' })).toEqual({ allowed: false });
    expect(await check('d1', { subject_set: member })).toEqual({ allowed: true });
    expect(await check('d2', { subject_user_id: 'carol' })).toEqual({ allowed: false });
    expect(await check('d2', { subject_user_id: 'carol', context: { age: 18 } })).toEqual({
      allowed: true,
    });
    const listed = await call(service, 'AuthzService/ListObjects', {
      ...question,
      subject_user_id: 'bob',
    });
    expect(listed.body).toEqual({ object_ids: ['d1'] });
    const found = await call(service, 'AuthzService/ReadRelationTuples', {
      ...scope,
      namespace: 'group',
    });
    expect(found.body).toEqual({
      tuples: [
        {
          project_id: 'default',
          tenant_id: 'walk',
          ...member,
          subject: { user_id: 'bob' },
          expires_at: '2999-01-02T03:04:05.123456Z',
          condition_name: '',
        },
      ],
    });
    const tree = await call(service, 'AuthzService/Expand', {
      ...question,
      namespace: 'group',
      object_id: 'g',
      relation: 'member',
    });
    expect(tree.body).toEqual({
      tree: {
        type: 'NODE_TYPE_LEAF',
        user_ids: ['bob'],
        sets: [],
        children: [],
        expanded: member,
        wildcard: false,
      },
    });
  });

  test('export and deprovision', async () => {
    const exported = await call(service, 'AuthzService/ExportSubjectGrants', { user_id: 'bob' });
    expect(exported.body['grants']).toContainEqual({
      tenant_id: 'walk',
      namespace: 'resource',
      object_id: 'd1',
      relation: 'viewer',
      via_group: 'g',
    });
    const gone = await call(service, 'AuthzService/DeprovisionUser', { user_id: 'bob' });
    expect(gone.body).toEqual({ deleted_count: '1' });
    const after = await call(service, 'AuthzService/Check', {
      ...scope,
      namespace: 'resource',
      object_id: 'd1',
      relation: 'viewer',
      subject_user_id: 'bob',
    });
    expect(after.body).toEqual({ allowed: false });
  });

  test('a token of another tenant is refused', async () => {
    const body = {
      tenant_id: 'other',
      at_least_consistency_token: token,
      namespace: 'resource',
      object_id: 'd1',
      relation: 'viewer',
      subject_user_id: 'x',
    };
    const answer = await call(service, 'AuthzService/Check', body);
    expect([answer.status, answer.body['code']]).toEqual([400, 'invalid_argument']);
  });

  test('every change was audited', () => {
    const audits = service.log.filter(
      (line) => line['event'] === 'audit' && line['tenant_id'] === 'walk',
    );
    expect(audits.length).toBe(5);
    expect(audits.at(-1)).toMatchObject({
      operation: 'delete',
      subject: 'user:bob',
      rpc: 'DeprovisionUser',
    });
  });
});

describe('projects', () => {
  test('create, suspend, pin to a region, restore', async () => {
    const created = await call(service, 'AdminService/CreateProject', {
      id: 'p1',
      name: ' P one ',
    });
    expect(created.body['project']).toMatchObject({
      id: 'p1',
      name: 'P one',
      status: 'PROJECT_STATUS_ACTIVE',
      model_json: '',
      data_region: '',
      max_check_reads: 0,
    });
    expect(
      (await call(service, 'AdminService/CreateProject', { id: 'p1', name: 'x' })).status,
    ).toBe(409);
    expect((await call(service, 'AdminService/GetProject', { id: 'p2' })).status).toBe(404);
    const check = async (): Promise<number> =>
      (
        await call(service, 'AuthzService/Check', {
          project_id: 'p1',
          namespace: 'resource',
          object_id: 'd',
          relation: 'viewer',
          subject_user_id: 'x',
        })
      ).status;
    expect(await check()).toBe(200);
    await call(service, 'AdminService/UpdateProject', {
      id: 'p1',
      status: 'PROJECT_STATUS_SUSPENDED',
    });
    expect(await check()).toBe(412);
    expect(
      (await call(service, 'AuthzService/ExportSubjectGrants', { project_id: 'p1', user_id: 'x' }))
        .status,
    ).toBe(200);
    await call(service, 'AdminService/UpdateProject', {
      id: 'p1',
      status: 'PROJECT_STATUS_ACTIVE',
      data_region: 'mars',
    });
    expect(await check()).toBe(412);
    await call(service, 'AdminService/UpdateProject', { id: 'p1', clear_data_region: true });
    expect(await check()).toBe(200);
    const { body } = await get(`${service.metricsUrl}/metrics`);
    expect(body).toMatch(/authz_region_refused_total 1/);
  });

  test('AdminService wants its own secret, after the service token', async () => {
    const wrong = await call(service, 'AdminService/ListProjects', {}, { 'x-admin-secret': 'no' });
    expect([wrong.status, wrong.body['code']]).toEqual([403, 'permission_denied']);
    const none = await call(service, 'AdminService/ListProjects', '{', { authorization: '' });
    expect([none.status, none.body['code']]).toEqual([401, 'unauthenticated']);
  });
});

describe('operational endpoints', () => {
  test('health on both ports, metrics on one, 404 elsewhere', async () => {
    for (const base of [service.baseUrl, service.metricsUrl]) {
      expect((await get(`${base}/healthz`)).status).toBe(200);
      expect(await get(`${base}/readyz`)).toMatchObject({
        status: 200,
        body: '{"status":"ready","degraded":[]}',
      });
      expect(await get(`${base}/nothing`)).toMatchObject({ status: 404, type: 'application/json' });
    }
    expect((await get(`${service.metricsUrl}/metrics`)).body).toContain(
      'authz_check_duration_seconds_bucket{rpc="Check"',
    );
    expect((await get(`${service.baseUrl}/metrics`)).status).toBe(404);
  });
});

describe('clients of every protocol', () => {
  const headers = { authorization: 'Bearer test-token' };
  const transports: [string, () => Transport][] = [
    [
      'Connect, JSON',
      () =>
        createConnectTransport({
          baseUrl: service.baseUrl,
          httpVersion: '1.1',
          useBinaryFormat: false,
        }),
    ],
    [
      'Connect, binary',
      () =>
        createConnectTransport({
          baseUrl: service.baseUrl,
          httpVersion: '1.1',
          useBinaryFormat: true,
        }),
    ],
    [
      'Connect, HTTP/2',
      () => createConnectTransport({ baseUrl: service.baseUrl, httpVersion: '2' }),
    ],
    ['gRPC', () => createGrpcTransport({ baseUrl: service.baseUrl })],
    ['gRPC-Web', () => createGrpcWebTransport({ baseUrl: service.baseUrl, httpVersion: '1.1' })],
  ];

  test.each(transports)('%s', async (name, transport) => {
    const client = createClient(AuthzService, transport());
    const objectId = name.replaceAll(/\W/g, '-');
    const key = { namespace: 'resource', objectId, relation: 'viewer' };
    const tuple = { ...key, subject: { kind: { case: 'userId' as const, value: 'alice' } } };
    const { consistencyToken } = await client.writeRelationTuples(
      { updates: [{ op: 1, tuple }] },
      { headers },
    );
    const scope = { atLeastConsistencyToken: consistencyToken };
    expect(
      (await client.check({ ...key, ...scope, subjectUserId: 'alice' }, { headers })).allowed,
    ).toBe(true);
    const batch = await client.batchCheck(
      { ...scope, items: [{ ...key, subjectUserId: 'bob' }] },
      { headers },
    );
    expect(batch.results.map((result) => result.allowed)).toEqual([false]);
    const listed = await client.listObjects(
      { ...scope, namespace: 'resource', relation: 'viewer', subjectUserId: 'alice' },
      { headers },
    );
    expect(listed.objectIds).toContain(objectId);
    const refused = await client
      .check({ ...key, subjectUserId: 'alice' })
      .catch((error: unknown) => ConnectError.from(error));
    expect(refused).toMatchObject({ code: Code.Unauthenticated });
    const invalid = await client
      .check({ ...key, subjectUserId: '#' }, { headers })
      .catch((error: unknown) => ConnectError.from(error));
    expect(invalid).toMatchObject({ code: Code.InvalidArgument });
  });

  test('@grpc/grpc-js', async () => {
    const client = new grpc.Client(service.address, grpc.credentials.createInsecure());
    const metadata = new grpc.Metadata();
    metadata.set('authorization', headers.authorization);
    const request = create(CheckRequestSchema, {
      namespace: 'resource',
      objectId: 'gRPC',
      relation: 'viewer',
      subjectUserId: 'alice',
    });
    const allowed = await new Promise<boolean>((resolve, reject) => {
      client.makeUnaryRequest(
        '/workspace.v1.AuthzService/Check',
        (value: typeof request) => Buffer.from(toBinary(CheckRequestSchema, value)),
        (bytes: Buffer) => fromBinary(CheckResponseSchema, bytes),
        request,
        metadata,
        (error, response) => (error === null ? resolve(response?.allowed ?? false) : reject(error)),
      );
    });
    client.close();
    expect(allowed).toBe(true);
  });

  test('gRPC health needs no credential', async () => {
    const client = createClient(Health, createGrpcTransport({ baseUrl: service.baseUrl }));
    expect((await client.check({ service: 'workspace.v1.AuthzService' })).status).toBe(1);
  });
});

describe('starting and stopping', () => {
  test('settings that are wrong end the process with 2, all problems and no stack', async () => {
    const child = spawnService('/nowhere', {
      GATEWAY_CONNECT_PORT: 'x',
      GATEWAY_MAX_CHECK_READS: '5',
    });
    const [output, [code]] = await Promise.all([
      text(child.stderr as NodeJS.ReadableStream),
      once(child, 'exit'),
    ]);
    expect(code).toBe(2);
    expect(output).toContain('GATEWAY_CONNECT_PORT');
    expect(output).toContain('GATEWAY_MAX_CHECK_READS');
    expect(output).not.toContain(' at ');
  });

  test('without tokens everybody is trusted, with one warning', async () => {
    const env = {
      GATEWAY_SERVICE_AUTH_TOKENS: '',
      GATEWAY_ADMIN_API_SECRET: '',
      GATEWAY_WORKERS: '1',
      DEBUG_ASSERTIONS: '',
    };
    const trusting = await startService({ postgres: 'shared', env });
    onTestFinished(async () => expect(await trusting.stop()).toBe(0));
    const open = { authorization: '' };
    const updates = [grant('kept', 'alice')];
    const written = await call(trusting, 'AuthzService/WriteRelationTuples', { updates }, open);
    expect(written.status).toBe(200);
    const admin = await call(trusting, 'AdminService/ListProjects', {}, open);
    expect([admin.status, admin.body['code']]).toEqual([501, 'unimplemented']);
    expect(trusting.log.filter((line) => line.msg === 'service_auth_disabled')).toHaveLength(1);
  });

  // The last: it ends the service of the others.
  test('readiness fails first, and nothing in flight is lost', async () => {
    const statuses: number[] = [];
    let isStopped = false;
    const load = Array.from({ length: 8 }, async (_, lane) => {
      for (let i = 0; !isStopped; i++) {
        const isWrite = lane % 2 === 0;
        const answer = await (
          isWrite
            ? call(service, 'AuthzService/WriteRelationTuples', {
                updates: [grant(`d${lane}-${i}`, 'alice')],
              })
            : call(service, 'AuthzService/Check', {
                namespace: 'resource',
                object_id: `d${lane}`,
                relation: 'viewer',
                subject_user_id: 'alice',
              })
        ).catch((error: Error) => ({ status: isStopped ? 0 : -1, error }));
        statuses.push(answer.status);
      }
    });
    const served = (count: number): Promise<void> =>
      vi.waitFor(() => expect(statuses.length).toBeGreaterThanOrEqual(count), 20_000);
    await served(20);
    const stopping = service.stop();
    // It goes on serving meanwhile.
    await vi.waitFor(
      async () =>
        expect(await get(`${service.metricsUrl}/readyz`)).toMatchObject({
          status: 503,
          body: '{"status":"unavailable","reason":"draining"}',
        }),
      4_000,
    );
    await served(statuses.length + 8);
    isStopped = true;
    await Promise.all(load);
    expect(await stopping).toBe(0);
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
  });
});
