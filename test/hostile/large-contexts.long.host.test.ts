import { create, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, test } from 'vitest';
import { CheckRequestSchema } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { type Service, startService } from '../support/service.ts';
import { type LargeMessage, sendLarge } from './large-messages.ts';

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await service.stop();
});

const asked = { namespace: 'workspace', object_id: 'o', relation: 'member', subject_user_id: 'u' };
const CHECK = 'workspace.v1.AuthzService/Check';
const OVER: LargeMessage['answer'] = [429, 'FIELD_TOO_LARGE'];

function members(count: number): Record<string, number> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`member${i}`, i]));
}

function json(context: unknown): string {
  return JSON.stringify({ ...asked, context });
}

function binary(context: Record<string, number>): Uint8Array {
  const [namespace = '', objectId = '', relation = '', subjectUserId = ''] = Object.values(asked);
  const request = { namespace, objectId, relation, subjectUserId, context };
  return toBinary(CheckRequestSchema, create(CheckRequestSchema, request));
}

const deep = (levels: number): string =>
  `${JSON.stringify(asked).slice(0, -1)},"context":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}}`;

const MESSAGES: readonly LargeMessage[] = [
  {
    name: 'a context of 300,000 members',
    method: CHECK,
    type: 'application/json; charset=utf-8',
    body: json(members(300_000)),
    answer: OVER,
  },
  { name: 'the same', method: CHECK, body: json(members(300_000)), answer: OVER, count: 6 },
  {
    name: 'the same, binary',
    method: CHECK,
    type: 'application/proto',
    body: binary(members(300_000)),
    answer: OVER,
  },
  {
    name: 'the same, gRPC',
    method: CHECK,
    type: 'application/grpc',
    body: binary(members(300_000)),
    answer: [8, 'context'],
  },
  {
    name: 'a context of 1,200 members that comes 4,000 times more, each merged with those before',
    method: CHECK,
    type: 'application/proto',
    body: Buffer.concat([
      binary(members(1_200)),
      Buffer.alloc(8_000, Buffer.from([(6 << 3) | 2, 0])),
    ]),
    answer: [429, 'FIELD_TOO_LARGE'],
    count: 2,
  },
  {
    name: 'a context of one list of 2 million numbers',
    method: 'gatehouse.v1.QueryService/Check',
    body: `{"scope":{"context":{"a":[${'1,'.repeat(2_000_000)}1]}}}`,
    answer: OVER,
  },
  {
    name: 'a context of 4 million levels',
    method: CHECK,
    body: deep(4_000_000),
    answer: [400, 'BODY_MALFORMED'],
  },
  {
    name: '100 contextual tuples with parameters of 4,000 members each',
    method: 'gatehouse.v1.QueryService/Check',
    body: JSON.stringify({
      question: {},
      scope: {
        contextual_tuples: Array.from({ length: 100 }, () => ({
          condition_params: members(4_000),
        })),
      },
    }),
    // Read whole: the first of them lacks all else.
    answer: [400, 'FIELD_REQUIRED'],
    count: 2,
  },
  {
    name: 'a context of 4,000 members, which may be',
    method: CHECK,
    type: 'application/json; charset=utf-8',
    body: json(members(4_000)),
    answer: [200, '"allowed"'],
    count: 16,
  },
];

for (const message of MESSAGES) {
  test(`${message.name}, ${message.count ?? 1} at once`, async () => {
    await sendLarge(service, message);
  });
}
