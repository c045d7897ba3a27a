import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, test } from 'vitest';
import { type Service, startService } from '../support/service.ts';
import { type LargeMessage, sendLarge } from './large-messages.ts';

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await service.stop();
});

const EMPTY = 2_700_000;
const emptyItems = `{"items":[${'{},'.repeat(EMPTY)}{}]}`;
/** Field 3 of BatchCheckRequest with nothing in it, again and again. */
const emptyItemsBinary = Buffer.from('1a00'.repeat(4_000_000), 'hex');
const OVER: LargeMessage['answer'] = [429, 'BATCH_TOO_LARGE'];

const MESSAGES: readonly LargeMessage[] = [
  {
    name: 'gzip of 2.7 million items',
    method: 'workspace.v1.AuthzService/BatchCheck',
    body: gzipSync(emptyItems),
    isGzip: true,
    answer: OVER,
  },
  {
    name: 'gzip of 2.7 million items',
    method: 'workspace.v1.AuthzService/BatchCheck',
    body: gzipSync(emptyItems),
    isGzip: true,
    answer: OVER,
    count: 6,
  },
  {
    name: 'gzip of 4 million items, binary',
    method: 'workspace.v1.AuthzService/BatchCheck',
    type: 'application/proto',
    body: gzipSync(emptyItemsBinary),
    isGzip: true,
    answer: OVER,
  },
  {
    name: 'gzip of 4 million items, gRPC',
    method: 'workspace.v1.AuthzService/BatchCheck',
    type: 'application/grpc',
    body: gzipSync(emptyItemsBinary),
    isGzip: true,
    answer: [8, 'items'],
    count: 3,
  },
  {
    name: '2.7 million updates',
    method: 'gatehouse.v1.TupleService/WriteTuples',
    body: `{"updates":[${'{},'.repeat(EMPTY)}{}]}`,
    answer: OVER,
  },
  {
    name: '2.7 million updates, not compressed',
    method: 'workspace.v1.AuthzService/WriteRelationTuples',
    body: `{"updates":[${'{},'.repeat(EMPTY)}{}]}`,
    answer: OVER,
    count: 6,
  },
  {
    name: '2.7 million items, not compressed',
    method: 'workspace.v1.AuthzService/BatchCheck',
    body: emptyItems,
    answer: OVER,
    count: 6,
  },
  {
    name: '2.7 million contextual tuples',
    method: 'gatehouse.v1.QueryService/Check',
    body: `{"scope":{"contextual_tuples":[${'{},'.repeat(EMPTY)}{}]}}`,
    answer: OVER,
  },
  {
    name: '2 million object ids',
    method: 'gatehouse.v1.QueryService/FilterObjects',
    body: `{"object_ids":[${'"",'.repeat(2_000_000)}""]}`,
    answer: OVER,
  },
  {
    name: '2.7 million tuples of an import, gRPC',
    method: 'gatehouse.v1.TupleService/ImportTuples',
    type: 'application/grpc',
    body: Buffer.from(`0a00${'1200'.repeat(4_000_000)}`, 'hex'),
    answer: [8, 'tuples'],
  },
];

for (const message of MESSAGES) {
  test(`${message.name} of ${message.method}, ${message.count ?? 1} at once`, async () => {
    await sendLarge(service, message);
  });
}
