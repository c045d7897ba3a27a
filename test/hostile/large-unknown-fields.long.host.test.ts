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

const CHECK = 'workspace.v1.AuthzService/Check';
/** Those whose scope the gateway scans have at most 2 MiB. */
const BATCH = 'workspace.v1.AuthzService/BatchCheck';
const REFUSED: LargeMessage['answer'] = [400, 'BODY_MALFORMED'];
const keys = `{${Array.from({ length: 500_000 }, (_, i) => `"key${i}":1`).join(',')}}`;
/** Field 1000, a varint. */
const fields = Buffer.from('c03e01'.repeat(2_700_000), 'hex');
/** Group 1000, with as many fields in it. */
const group = Buffer.concat([
  Buffer.from('c33e', 'hex'),
  Buffer.from('0801'.repeat(4_000_000), 'hex'),
  Buffer.from('c43e', 'hex'),
]);

const MESSAGES: readonly LargeMessage[] = [
  { name: '500,000 unknown keys', method: CHECK, body: keys, answer: REFUSED },
  { name: '500,000 unknown keys', method: CHECK, body: keys, answer: REFUSED, count: 6 },
  {
    name: 'an unknown key with 2 million values',
    method: CHECK,
    body: `{"key":[${'1,'.repeat(2_000_000)}1]}`,
    answer: REFUSED,
  },
  {
    name: '2.7 million unknown fields',
    method: CHECK,
    type: 'application/proto',
    body: fields,
    answer: REFUSED,
  },
  {
    name: '2.7 million unknown fields, gRPC',
    method: CHECK,
    type: 'application/grpc',
    body: fields,
    answer: [3, 'unknown field number'],
  },
  {
    name: 'an unknown group of 4 million fields',
    method: CHECK,
    type: 'application/proto',
    body: group,
    answer: REFUSED,
  },
  ...['application/json', 'application/grpc+json'].map((type): LargeMessage => ({
    name: `340,000 names with broken escapes, ${type}`,
    method: BATCH,
    type,
    body: `{${String.raw`"\q":,`.repeat(340_000)}"items":[]}]`,
    answer: type === 'application/json' ? REFUSED : [3, 'JSON'],
  })),
  {
    name: '250,000 names with escapes',
    method: BATCH,
    body: `{${String.raw`"\n":1,`.repeat(250_000)}"items":[]}`,
    answer: REFUSED,
  },
  {
    name: 'a project 500,000 times',
    method: BATCH,
    type: 'application/proto',
    body: Buffer.from('0a02c3a9'.repeat(500_000), 'hex'),
    answer: [429, 'FIELD_TOO_LARGE'],
  },
  {
    name: 'a field 4 million times',
    method: 'workspace.v1.AuthzService/Expand',
    type: 'application/proto',
    body: Buffer.from('0a00'.repeat(4_000_000), 'hex'),
    answer: [429, 'FIELD_TOO_LARGE'],
  },
];

for (const message of MESSAGES) {
  test(`${message.name}, ${message.count ?? 1} at once`, async () => {
    await sendLarge(service, message);
  });
}
