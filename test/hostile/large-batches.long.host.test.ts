import { gzipSync } from 'node:zlib';
import { type DescMessage, fromJson, type JsonValue, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, test } from 'vitest';
import { ImportTuplesRequestSchema } from '../../src/gen/gatehouse/v1/tuple_service_pb.ts';
import {
  BatchCheckRequestSchema,
  WriteRelationTuplesRequestSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { type Service, startService } from '../support/service.ts';
import { type LargeMessage, sendLarge } from './large-messages.ts';

/* What may be asked, and is much: batches of the sizes that the service allows, by the paths that build messages. */

let service: Service;
beforeAll(async () => {
  service = await startService({ env: { GATEWAY_MAX_WRITE_UPDATES: '10000' } });
});
afterAll(async () => {
  await service.stop();
});

const COUNT = 10_000;
const tuple = (i: number): JsonValue => ({
  namespace: 'workspace',
  object_id: `workspace-${i}`,
  relation: 'member',
  subject: { user_id: `user-${i}` },
});
const updates = {
  updates: Array.from({ length: COUNT }, (_, i) => ({ op: 'OP_INSERT', tuple: tuple(i) })),
};
const items = {
  items: Array.from({ length: COUNT }, (_, i) => ({
    namespace: 'workspace',
    object_id: `workspace-${i}`,
    relation: 'member',
    subject_user_id: `user-${i}`,
  })),
};
const imported = {
  options: { dry_run: true },
  tuples: Array.from({ length: 60_000 }, (_, i) => tuple(i)),
};

function binary(desc: DescMessage, json: JsonValue): Uint8Array {
  return toBinary(desc, fromJson(desc, json));
}

const WRITE = 'workspace.v1.AuthzService/WriteRelationTuples';
const BATCH = 'workspace.v1.AuthzService/BatchCheck';
const GENERAL_JSON = 'application/json; charset=utf-8';
const MESSAGES: readonly LargeMessage[] = [
  {
    name: '10,000 items, JSON',
    method: BATCH,
    type: GENERAL_JSON,
    body: JSON.stringify(items),
    answer: [200, 'results'],
    count: 6,
  },
  {
    name: '10,000 updates, JSON',
    method: WRITE,
    type: GENERAL_JSON,
    body: JSON.stringify(updates),
    answer: [200, 'consistency_token'],
  },
  {
    name: '10,000 updates, binary',
    method: WRITE,
    type: 'application/proto',
    body: binary(WriteRelationTuplesRequestSchema, updates),
    answer: [200, ''],
  },
  {
    name: '10,000 updates, gRPC',
    method: WRITE,
    type: 'application/grpc',
    body: binary(WriteRelationTuplesRequestSchema, updates),
    answer: [0, ''],
    count: 6,
  },
  {
    name: '10,000 items of a query, gRPC',
    method: 'gatehouse.v1.QueryService/BatchCheck',
    type: 'application/grpc+json',
    body: JSON.stringify({
      items: items.items.map(({ subject_user_id: userId, ...item }) => ({
        question: { ...item, subject: { user_id: userId } },
      })),
    }),
    answer: [0, ''],
  },
  {
    name: '10,000 items, binary',
    method: BATCH,
    type: 'application/proto',
    body: gzipSync(binary(BatchCheckRequestSchema, items)),
    isGzip: true,
    answer: [200, ''],
  },
  {
    name: '60,000 tuples of an import in one message, gRPC',
    method: 'gatehouse.v1.TupleService/ImportTuples',
    type: 'application/grpc',
    body: binary(ImportTuplesRequestSchema, imported),
    answer: [0, ''],
  },
];

for (const message of MESSAGES) {
  test(`${message.name}, ${message.count ?? 1} at once`, async () => {
    await sendLarge(service, message);
  });
}
