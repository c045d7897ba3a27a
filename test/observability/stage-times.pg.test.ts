import http2 from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CheckRequestSchema } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { BATCH_STAGES, CALL_STAGES } from '../../src/shared/time/stage-times.ts';
import { callHttp2, envelope } from '../support/http2-calls.ts';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { type ServedService, serveService } from '../support/serve-service.ts';
import { call } from '../support/service.ts';
import { sharedInstance } from '../support/shared-instance.ts';

/* Where the time of decision calls goes is told where that was asked for, and nowhere else. */
const CHECKS = 40;
const CHECK_PATH = '/workspace.v1.AuthzService/Check';
/** None of its settings asks for the times. */
const plain = await sharedInstance();
const databases: TestDatabase[] = [];
let measured: ServedService;
let near: ServedService;

async function startOnDatabase(env: Readonly<Record<string, string>>): Promise<ServedService> {
  const database = await createTestDatabase();
  databases.push(database);
  const DATABASE_URL = urlOf(database.target);
  const common = { GATEWAY_STAGE_TIMES: 'true', GATEWAY_WORKERS: '1' };
  return await serveService({ ...common, DATABASE_URL, ...env });
}

beforeAll(async () => {
  [measured, near] = await Promise.all([
    startOnDatabase({ GATEWAY_THREAD_INDEX_BYTES: '0' }),
    startOnDatabase({ GATEWAY_THREAD_CHECKS_PER_SECOND: '10' }),
  ]);
}, 180_000);
afterAll(async () => {
  await Promise.all([measured, near].map((service) => service.stop()));
  for (const database of databases) await database.drop();
}, 120_000);

type Asked = Pick<ServedService, 'baseUrl' | 'metricsUrl' | 'token'> & {
  readonly projectId?: string;
};

/** Value by `family carrier stage`. */
async function stagesOf(service: Asked): Promise<ReadonlyMap<string, number>> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  const line = /^gatehouse_stage_(\w+)_total\{carrier="(\w+)",stage="(\w+)"\} (\S+)$/gm;
  return new Map(
    [...text.matchAll(line)].map(([, family, carrier, stage, value]) => [
      `${family} ${carrier} ${stage}`,
      Number(value),
    ]),
  );
}

async function askOverHttp1(service: Asked): Promise<void> {
  const scope = service.projectId === undefined ? {} : { project_id: service.projectId };
  const question = { ...scope, namespace: 'resource', object_id: 'o', relation: 'viewer' };
  const response = await fetch(service.baseUrl + CHECK_PATH, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${service.token}` },
    body: JSON.stringify({ ...question, subject_user_id: 'u' }),
  });
  expect(await response.json()).toEqual({ allowed: false });
}

async function askOverGrpc(
  service: ServedService,
  session: http2.ClientHttp2Session,
): Promise<void> {
  const question = { namespace: 'resource', objectId: 'o', relation: 'viewer', subjectUserId: 'u' };
  const message = toBinary(CheckRequestSchema, create(CheckRequestSchema, question));
  const headers = {
    'content-type': 'application/grpc',
    authorization: `Bearer ${service.token}`,
    te: 'trailers',
  };
  const { fields } = await callHttp2(session, CHECK_PATH, headers, [
    envelope(0, Buffer.from(message)),
  ]);
  expect(fields['grpc-status']).toBe('0');
}

test('every stage of calls by both carriers is counted once a call', async () => {
  await askOverHttp1(measured); // the first of a tenant goes another way
  const before = await stagesOf(measured);
  const session = http2.connect(measured.baseUrl);
  for (let i = 0; i < CHECKS; i++) {
    await askOverHttp1(measured);
    await askOverGrpc(measured, session);
  }
  session.close();
  const after = await stagesOf(measured);
  const grown = (name: string): number => (after.get(name) ?? Number.NaN) - (before.get(name) ?? 0);
  for (const carrier of ['http1', 'http2']) {
    for (const stage of ['headers', 'scan', 'write']) {
      expect(grown(`calls ${carrier} ${stage}`), `${carrier} ${stage}`).toBe(CHECKS);
      expect(grown(`seconds ${carrier} ${stage}`), `${carrier} ${stage}`).toBeGreaterThan(0);
    }
    for (const stage of CALL_STAGES) expect(after.has(`calls ${carrier} ${stage}`)).toBe(true);
  }
  for (const stage of ['packing', 'answering', 'evaluation']) {
    expect(grown(`calls any ${stage}`), stage).toBe(2 * CHECKS);
    expect(grown(`seconds any ${stage}`), stage).toBeGreaterThan(0);
  }
  // One call at a time, so that each is a batch; statistics and other messages may be more of them.
  for (const stage of ['waiting', 'hop_out', 'hop_back']) {
    expect(grown(`calls any ${stage}`), stage).toBeGreaterThanOrEqual(2 * CHECKS);
    expect(grown(`seconds any ${stage}`), stage).toBeGreaterThan(0);
  }
  for (const stage of BATCH_STAGES) expect(after.has(`calls any ${stage}`)).toBe(true);
  const totalSeconds = grown('seconds any hop_out') + grown('seconds any evaluation');
  expect(totalSeconds, 'stages are times, not moments').toBeLessThan(600);
}, 120_000);

test('what is answered on the gateway’s thread has a stage of its own there, by both carriers', async () => {
  const tuple = { namespace: 'resource', object_id: 'o', relation: 'viewer' };
  const updates = [{ op: 'OP_INSERT', tuple: { ...tuple, subject: { user_id: 'other' } } }];
  expect((await call(near, 'AuthzService/WriteRelationTuples', { updates })).status).toBe(200);
  const session = http2.connect(near.baseUrl);
  const ask = async (): Promise<ReadonlyMap<string, number>> => {
    for (let i = 0; i < CHECKS; i++) {
      await askOverHttp1(near);
      await askOverGrpc(near, session);
    }
    return stagesOf(near);
  };
  const packed = 'calls any packing';
  // Until all of them are answered there.
  let before = await ask();
  let after = await ask();
  while (after.get(packed) !== before.get(packed)) {
    before = after;
    after = await ask();
  }
  session.close();
  const grown = (name: string): number => (after.get(name) ?? Number.NaN) - (before.get(name) ?? 0);
  expect(grown('calls any instant')).toBe(2 * CHECKS);
  expect(grown('seconds any instant')).toBeGreaterThan(0);
  for (const name of ['http1 scan', 'http1 write', 'http2 scan', 'http2 write']) {
    expect(grown(`calls ${name}`), name).toBe(CHECKS);
    expect(grown(`seconds ${name}`), name).toBeGreaterThan(0);
  }
}, 120_000);

test('nothing is counted, and no series is there, unless it was asked for', async () => {
  await askOverHttp1(plain);
  expect(await stagesOf(plain)).toEqual(new Map());
});
