import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type ClientHttp2Session } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { CheckRequestSchema } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { call, startService, type Service } from '../support/service.ts';

/* Credentials that change while the service runs, and connections that stay open meanwhile. */
const folder = mkdtempSync(join(tmpdir(), 'credentials-'));
const tokens = join(folder, 'tokens');
const admin = join(folder, 'admin');
let service: Service;
let session: ClientHttp2Session;

beforeAll(async () => {
  writeFileSync(tokens, 'old-token\n');
  writeFileSync(admin, 'old-secret\n');
  service = await startService({
    postgres: 'shared',
    env: {
      GATEWAY_SERVICE_AUTH_TOKENS: '',
      GATEWAY_SERVICE_AUTH_TOKENS_FILE: tokens,
      GATEWAY_ADMIN_API_SECRET: '',
      GATEWAY_ADMIN_API_SECRET_FILE: admin,
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
  tenantId: 't',
  namespace: 'resource',
  objectId: 'o',
  relation: 'viewer',
  subjectUserId: 'u',
};

/** grpc-status of a Check on the one connection that is open since the beginning. */
async function grpcCheck(token: string): Promise<string> {
  const message = toBinary(CheckRequestSchema, create(CheckRequestSchema, question));
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  const stream = session.request({
    ':method': 'POST',
    ':path': '/workspace.v1.AuthzService/Check',
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${token}`,
  });
  let status = '';
  stream.on('response', (headers) => (status = String(headers['grpc-status'] ?? status)));
  stream.on('trailers', (headers) => (status = String(headers['grpc-status'])));
  stream.resume();
  stream.end(frame);
  await once(stream, 'close');
  return status;
}

/** HTTP status of a Check (hot path) and of ListProjects (general path, with the operator secret). */
async function statuses(token: string, adminSecret: string): Promise<readonly number[]> {
  const via = { ...service, token, adminSecret };
  const body = { tenant_id: 't', namespace: 'resource', object_id: 'o', relation: 'viewer' };
  const check = await call(via, 'AuthzService/Check', { ...body, subject_user_id: 'u' });
  const list = await call(via, 'AdminService/ListProjects', {});
  return [check.status, list.status];
}

async function metrics(): Promise<string> {
  return await (await fetch(`${service.metricsUrl}/metrics`)).text();
}

const changed = (text: string): RegExpMatchArray | null =>
  /gatehouse_credential_info\{credential="service_tokens",fingerprint="(\w+)"\} 1/.exec(text);

async function soon(what: () => Promise<void>): Promise<void> {
  await vi.waitFor(what, { timeout: 10_000, interval: 20 });
}

test('old and new are valid together, and the old ends with the next call on an open connection', async () => {
  const before = changed(await metrics())?.[1];
  expect(before).toMatch(/^\w{12}$/);
  expect([await grpcCheck('old-token'), await grpcCheck('new-token')]).toEqual(['0', '16']);
  expect(await statuses('old-token', 'old-secret')).toEqual([200, 200]);
  writeFileSync(tokens, 'old-token,new-token\n');
  writeFileSync(admin, 'old-secret\nnew-secret\n');
  await soon(async () => {
    expect(await grpcCheck('new-token')).toBe('0');
    expect(await statuses('new-token', 'new-secret')).toEqual([200, 200]);
  });
  expect(await grpcCheck('old-token')).toBe('0');
  expect(await statuses('old-token', 'old-secret')).toEqual([200, 200]);
  writeFileSync(tokens, 'new-token\n');
  writeFileSync(admin, 'new-secret\n');
  await soon(async () => expect(await grpcCheck('old-token')).toBe('16'));
  await soon(async () => expect(await statuses('new-token', 'old-secret')).toEqual([200, 403]));
  expect(await statuses('old-token', 'new-secret')).toEqual([401, 401]);
  expect(await statuses('new-token', 'new-secret')).toEqual([200, 200]);
  expect([session.closed, await grpcCheck('new-token')]).toEqual([false, '0']);
  const text = await metrics();
  const after = changed(text)?.[1];
  expect(after).not.toBe(before);
  expect(text).not.toContain(`fingerprint="${String(before)}"`);
  expect(service.log.filter((line) => line.msg === 'credential_changed')).toHaveLength(4);
  expect(JSON.stringify(service.log)).not.toMatch(/old-token|new-token|old-secret|new-secret/);
});

test('an empty file opens nothing and closes nothing: what was in force stays, and metrics tell', async () => {
  const failing = (value: number): string =>
    `gatehouse_credential_file_failing{credential="service_tokens"} ${value}`;
  expect(await metrics()).toContain(failing(0));
  writeFileSync(tokens, '');
  await soon(async () => expect(await metrics()).toContain(failing(1)));
  expect(await statuses('new-token', 'new-secret')).toEqual([200, 200]);
  expect(await statuses('', 'new-secret')).toEqual([401, 401]);
  rmSync(tokens);
  await vi.waitFor(
    () =>
      expect(service.log.filter((line) => line.msg === 'credential_file_failing')).toHaveLength(2),
    { timeout: 10_000 },
  );
  expect(await grpcCheck('new-token')).toBe('0');
  writeFileSync(tokens, 'third-token');
  await soon(async () => expect(await grpcCheck('third-token')).toBe('0'));
  expect(await grpcCheck('new-token')).toBe('16');
  await soon(async () => expect(await metrics()).toContain(failing(0)));
});
