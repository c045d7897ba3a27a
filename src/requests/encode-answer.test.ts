import { create, type MessageShape, toBinary, toJsonString } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import {
  BatchCheckResponseSchema,
  BatchCheckResultSchema,
  ExplainResponseSchema,
  FilterObjectsResponseSchema,
} from '../gen/gatehouse/v1/query_service_pb.ts';
import { fillTokenSpace, leaveTokenSpace, TOKEN_SPACE_BYTES } from '../protocol/token-space.ts';
import { ANSWER_JSON } from '../shared/answer-json.ts';
import { encodeAnswer } from './encode-answer.ts';
import { QUERY_METHODS } from './query-methods.ts';

const TOKEN = 'abcdefghijklmnopqrstuvwxyz0123456789-_AB';
const REVISION = { epoch: 3, revision: 2 ** 47 + 1 };
type Answers = (typeof QUERY_METHODS)[keyof typeof QUERY_METHODS]['answer'];

/** The bytes of an answer as they leave, and the steps that it took. */
function encoded(desc: Answers, message: MessageShape<Answers>, format: 'json' | 'proto') {
  const work = encodeAnswer(desc, message, format);
  for (let steps = 1; ; steps++) {
    const step = work.next();
    if (step.done !== true) continue;
    const { body, tokenAt } = step.value;
    const answer = new Uint8Array(body.length + TOKEN_SPACE_BYTES);
    answer.set(body);
    leaveTokenSpace(answer, tokenAt, REVISION);
    let asked: object | undefined;
    const filled = fillTokenSpace(answer, (revision) => {
      asked = revision;
      return TOKEN;
    });
    expect(asked).toEqual(REVISION);
    return { bytes: Buffer.from(filled), steps };
  }
}

/** Ids that look as the space for the token does. */
const TRAPS = ['"consistency_token":""', ' '.repeat(40), '\u0012(' + ' '.repeat(40), '[]', 'é"'];

const results = (count: number) =>
  Array.from({ length: count }, (_, i) =>
    create(BatchCheckResultSchema, {
      allowed: i % 2 === 0,
      error: i % 7 === 0 ? (TRAPS[i % TRAPS.length] ?? '') : '',
      unknownRelation: i % 3 === 0,
    }),
  );

const answers: readonly (readonly [string, Answers, MessageShape<Answers>])[] = [
  ...Object.entries(QUERY_METHODS).map(
    ([name, { answer }]) => [name, answer, create(answer) as MessageShape<Answers>] as const,
  ),
  ...[1, 255, 256, 257, 512, 1_000].map(
    (count) =>
      [
        `${count} results`,
        BatchCheckResponseSchema,
        create(BatchCheckResponseSchema, { results: results(count) }),
      ] as const,
  ),
  ...[TRAPS, Array.from({ length: 600 }, (_, i) => TRAPS[i % TRAPS.length] ?? '')].map(
    (objectIds) =>
      [
        `${objectIds.length} objects`,
        FilterObjectsResponseSchema,
        create(FilterObjectsResponseSchema, {
          objectIds,
          undecidedObjectIds: TRAPS,
          unknownRelation: true,
        }),
      ] as const,
  ),
];

/** An explanation whose tuples have parameters with the name of the token. */
const explanations = ['', 'x', 'v'.repeat(60)].map((value) => {
  const conditionParams = { consistency_token: value, 'consistency_token":""': value };
  const tuple = { namespace: 'doc', objectId: 'd', conditionName: 'c', conditionParams };
  const derivation = { nodes: [{ namespace: 'doc', tuple }] };
  const message = create(ExplainResponseSchema, {
    derivation,
    obstacles: [{ tuple }],
    remedies: [tuple],
    membership: derivation,
  });
  return [`tuples with "${value}"`, ExplainResponseSchema, message] as const;
});

test.each([...answers, ...explanations])(
  '%s are encoded as the library encodes them',
  (_name, desc, message) => {
    const whole = { ...message, consistencyToken: TOKEN } as MessageShape<Answers>;
    expect(encoded(desc, message, 'proto').bytes).toEqual(Buffer.from(toBinary(desc, whole)));
    const text = toJsonString(desc, whole, ANSWER_JSON);
    expect(encoded(desc, message, 'json').bytes.toString()).toBe(text);
  },
);

test('a long list is encoded in steps', () => {
  const message = create(BatchCheckResponseSchema, { results: results(1_000) });
  for (const format of ['json', 'proto'] as const) {
    expect(encoded(BatchCheckResponseSchema, message, format).steps).toBe(5);
  }
});

test('a token of another length is not written', () => {
  const answer = new Uint8Array(60 + TOKEN_SPACE_BYTES);
  leaveTokenSpace(answer, 1, REVISION);
  expect(() => fillTokenSpace(answer, () => 'short')).toThrow('a token that does not fit');
});
