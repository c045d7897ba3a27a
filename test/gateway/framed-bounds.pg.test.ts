import http2 from 'node:http2';
import { gzipSync } from 'node:zlib';
import { create, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  CheckRequestSchema,
  ListObjectsRequestSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { callHttp2, envelope, type Http2Answer } from '../support/http2-calls.ts';
import { startInstance } from '../support/instance.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { call } from '../support/service.ts';

/* What hostile or careless callers of gRPC can make the service hold on the hot path. */
const database = await createTestDatabase();
const instance = await startInstance(database);
const { baseUrl, token, workers } = instance;
const PATH = '/workspace.v1.AuthzService';
const headers = { 'content-type': 'application/grpc', authorization: `Bearer ${token}` };
const OBJECTS = 8_000;
const list = envelope(
  0,
  toBinary(
    ListObjectsRequestSchema,
    create(ListObjectsRequestSchema, {
      namespace: 'resource',
      relation: 'viewer',
      subjectUserId: 'alice',
    }),
  ),
);
const question = toBinary(
  CheckRequestSchema,
  create(CheckRequestSchema, {
    namespace: 'resource',
    objectId: `${'x'.repeat(230)}-1`,
    relation: 'viewer',
    subjectUserId: 'alice',
  }),
);
const check = envelope(0, question);

beforeAll(async () => {
  for (let from = 0; from < OBJECTS; from += 1_000) {
    const updates = Array.from({ length: 1_000 }, (_, i) => ({
      op: 'OP_INSERT',
      tuple: {
        namespace: 'resource',
        object_id: `${'x'.repeat(230)}-${from + i}`,
        relation: 'viewer',
        subject: { user_id: 'alice' },
      },
    }));
    await call(instance, 'AuthzService/WriteRelationTuples', { updates });
  }
});

const session = http2.connect(baseUrl);
afterAll(async () => {
  session.destroy();
  await instance.stop();
  await database.drop();
  expect(instance.failures).toEqual([]);
});

function ask(method: string, body: Uint8Array, more: object = {}): Promise<Http2Answer> {
  return callHttp2(session, `${PATH}/${method}`, { ...headers, ...more }, [body]);
}

/** Polls until `holds`; the test's own time ends it otherwise. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
}

test('an answer of 2 MB comes whole through windows of 64 KiB', async () => {
  const { body, fields } = await ask('ListObjects', list);
  expect(body.length).toBeGreaterThan(OBJECTS * 230);
  expect(body.readUInt32BE(1)).toBe(body.length - 5);
  expect(fields['grpc-status']).toBe('0');
});

test('calls that are reset while they are evaluated leave nothing behind', async () => {
  for (let round = 0; round < 20; round++) {
    const streams = Array.from({ length: 40 }, (_, i) => {
      const stream = session.request({
        ':method': 'POST',
        ':path': `${PATH}/${i % 2 === 0 ? 'ListObjects' : 'Check'}`,
        ...headers,
      });
      stream.on('error', () => undefined);
      stream.end(i % 2 === 0 ? list : check);
      return stream;
    });
    await new Promise((resolve) => setTimeout(resolve, round % 5));
    const closed = streams.map((stream) => new Promise((resolve) => stream.on('close', resolve)));
    for (const stream of streams) stream.close(http2.constants.NGHTTP2_CANCEL);
    await Promise.all(closed);
  }
  await until(() => workers.pendingCount === 0);
  expect((await ask('Check', check)).fields['grpc-status']).toBe('0');
}, 120_000);

test('bombs of gzip are refused one by one, and small messages are read', async () => {
  const gzip = { 'grpc-encoding': 'gzip' };
  const bomb = envelope(1, gzipSync(Buffer.alloc(200 * 1024 * 1024)));
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask('Check', bomb, gzip)));
  for (const { fields } of answers) expect(fields['grpc-status']).toBe('8');
  const good = await ask('Check', envelope(1, gzipSync(question)), gzip);
  expect(good.body.subarray(-2)).toEqual(Buffer.from([8, 1]));
}, 120_000);

test('an error is one block of headers without data', async () => {
  const bad = create(CheckRequestSchema, {
    projectId: 'nobody',
    namespace: 'resource',
    objectId: 'd1',
    relation: 'viewer',
    subjectUserId: 'alice',
  });
  const { body, fields } = await ask('Check', envelope(0, toBinary(CheckRequestSchema, bad)));
  expect(body.length).toBe(0);
  expect(fields['grpc-status']).toBe('5');
});

test('the time that a caller states ends a call whose body does not come', async () => {
  const stream = session.request({
    ':method': 'POST',
    ':path': `${PATH}/Check`,
    ...headers,
    'grpc-timeout': '60m',
  });
  stream.on('error', () => undefined);
  stream.write(check.subarray(0, 7));
  const fields = await new Promise<http2.IncomingHttpHeaders>((resolve) =>
    stream.on('response', resolve),
  );
  expect(fields['grpc-status']).toBe('4');
  stream.close();
});
