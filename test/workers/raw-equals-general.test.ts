import { create, toBinary, toJsonString } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  BatchCheckResponseSchema,
  CheckRequestSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { jsonOfBatch, protoOfBatch } from '../../src/workers/raw/answer-encoder.ts';
import { JsonScanner } from '../../src/workers/raw/json-scanner.ts';
import { ProtoScanner } from '../../src/workers/raw/proto-scanner.ts';
import { createRawFields, equalsText } from '../../src/workers/raw/raw-fields.ts';
import { anyCharacter } from '../support/any-text.ts';

const RUNS = 300 * Number(process.env['FUZZ_RUNS'] ?? '1');
const fields = createRawFields();
const json = new JsonScanner(fields, 50);
const proto = new ProtoScanner(fields, 50);
const NAME = /^[a-z][a-z0-9_-]{0,63}$/;

type Item = { namespace: string; objectId: string; relation: string; userId: string };

/** What the scanner read, as text. */
function itemsOf(bytes: Uint8Array): Item[] {
  const at = fields.items;
  const text = (i: number): string => Buffer.from(bytes.subarray(at[i], at[i + 1])).toString();
  return Array.from({ length: fields.itemCount }, (_, i) => ({
    namespace: text(i * 8),
    objectId: text(i * 8 + 2),
    relation: text(i * 8 + 4),
    userId: text(i * 8 + 6),
  }));
}

const scopeOf = (bytes: Uint8Array): string[] =>
  [0, 2, 4].map((i) =>
    Buffer.from(bytes.subarray(fields.scope[i], fields.scope[i + 1])).toString(),
  );

function isId(text: string): boolean {
  const bytes = Buffer.byteLength(text);
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  return bytes > 0 && bytes <= 256 && !/[\u0000-\u001f\u007f-\u009f#]/.test(text);
}

const anyText = fc.oneof(
  fc.constantFrom(
    'doc',
    'viewer',
    'a',
    'u1',
    '',
    'Ünïcode',
    'a"b',
    'a\\b',
    'x#y',
    '\u0085',
    '日本',
  ),
  fc.string({ unit: 'grapheme', maxLength: 12, size: 'max' }),
  fc.string({ unit: anyCharacter, maxLength: 6 }),
  fc.constantFrom('x'.repeat(64), 'x'.repeat(65), 'é'.repeat(128), 'é'.repeat(129)),
);
const name = fc.oneof({ weight: 6, arbitrary: fc.constantFrom('doc', 'viewer', 'a-b_9') }, anyText);
const id = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('a', 'u1', 'ü@x:/|', 'long'.repeat(9)) },
  anyText,
);
const item = fc.record({ namespace: name, objectId: id, relation: name, userId: id });
const spelling = fc.boolean();
const space = fc.constantFrom('', ' ', '\n\t', '\r\n  ');

test('what the JSON scanner accepts is what JSON.parse reads, and valid', () => {
  fc.assert(
    fc.property(
      fc.array(item, { maxLength: 5 }),
      spelling,
      space,
      fc.constantFrom('', 'p'),
      fc.constantFrom('', 't'),
      (items, isCamel, gap, projectId, tenantId) => {
        const parts = items.map((entry) => [
          ['namespace', entry.namespace],
          [isCamel ? 'objectId' : 'object_id', entry.objectId],
          ['relation', entry.relation],
          [isCamel ? 'subjectUserId' : 'subject_user_id', entry.userId],
        ]);
        const object = (pairs: string[][]): string =>
          `{${pairs.map(([k, v]) => `${gap}${JSON.stringify(k)}${gap}:${gap}${JSON.stringify(v)}`).join(`${gap},`)}${gap}}`;
        const text = `${gap}{"items":${gap}[${parts.map(object).join(',')}]${gap},"project_id":"${projectId}","tenantId":"${tenantId}"}${gap}`;
        const bytes = Buffer.from(text);
        const isAccepted = json.batchCheck(bytes, 0, bytes.length);
        if (isAccepted) {
          expect(itemsOf(bytes)).toEqual(items);
          expect(scopeOf(bytes)).toEqual([projectId, tenantId, '']);
          for (const entry of items) {
            expect(NAME.test(entry.namespace) && NAME.test(entry.relation)).toBe(true);
            expect(isId(entry.objectId) && isId(entry.userId)).toBe(true);
          }
        } else {
          const isPlain =
            items.length > 0 &&
            items.every(
              (entry) =>
                NAME.test(entry.namespace) &&
                NAME.test(entry.relation) &&
                isId(entry.objectId) &&
                isId(entry.userId) &&
                !/["\\]/.test(entry.objectId + entry.userId) &&
                entry.objectId.isWellFormed() &&
                entry.userId.isWellFormed(),
            );
          expect(isPlain).toBe(false);
        }
      },
    ),
    { numRuns: RUNS },
  );
});

test.each([
  [
    'both spellings',
    '{"object_id":"a","objectId":"a","namespace":"d","relation":"v","subject_user_id":"u"}',
  ],
  [
    'a duplicate key',
    '{"namespace":"d","namespace":"d","object_id":"a","relation":"v","subject_user_id":"u"}',
  ],
  [
    'an escaped key',
    '{"n\\u0061mespace":"d","object_id":"a","relation":"v","subject_user_id":"u"}',
  ],
  ['an escape', '{"namespace":"d","object_id":"\\u0061","relation":"v","subject_user_id":"u"}'],
  [
    'null',
    '{"namespace":"d","object_id":"a","relation":"v","subject_user_id":"u","tenant_id":null}',
  ],
  [
    'a context that is null',
    '{"namespace":"d","object_id":"a","relation":"v","subject_user_id":"u","context":null}',
  ],
  ['a subject set', '{"namespace":"d","object_id":"a","relation":"v","subject_set":{}}'],
  [
    'an unknown key',
    '{"namespace":"d","object_id":"a","relation":"v","subject_user_id":"u","x":"y"}',
  ],
  ['a missing field', '{"namespace":"d","object_id":"a","relation":"v"}'],
  ['a number', '{"namespace":"d","object_id":1,"relation":"v","subject_user_id":"u"}'],
  ['text after it', '{"namespace":"d","object_id":"a","relation":"v","subject_user_id":"u"}x'],
  [
    'a byte order mark',
    '\ufeff{"namespace":"d","object_id":"a","relation":"v","subject_user_id":"u"}',
  ],
  ['items in a check', '{"items":[]}'],
  ['nothing', ''],
])('%s goes the general path', (_what, text) => {
  const bytes = Buffer.from(text);
  expect(json.check(bytes, 0, bytes.length)).toBe(false);
});

test('empty items, too many items and invalid UTF-8 go the general path', () => {
  const one = '{"namespace":"d","object_id":"a","relation":"v","subject_user_id":"u"}';
  const scan = (text: string | Buffer): boolean => {
    const bytes = Buffer.from(text as string);
    return json.batchCheck(bytes, 0, bytes.length);
  };
  expect(scan('{"items":[]}')).toBe(false);
  expect(scan(`{"items":[${Array.from({ length: 50 }, () => one).join(',')}]}`)).toBe(true);
  expect(scan(`{"items":[${Array.from({ length: 51 }, () => one).join(',')}]}`)).toBe(false);
  const broken = Buffer.from(`{"items":[${one.replace('"a"', '"\u00e9"')}]}`);
  expect(scan(broken)).toBe(true);
  broken[broken.indexOf(0xc3)] = 0xff;
  expect(scan(broken)).toBe(false);
});

test('a plain binary check is accepted, also with a context, and not twice', () => {
  const plain = {
    namespace: 'doc',
    objectId: 'a',
    relation: 'v',
    subjectUserId: 'u',
    tenantId: 't',
  };
  const bytes = toBinary(CheckRequestSchema, create(CheckRequestSchema, plain));
  expect(proto.check(bytes, 0, bytes.length)).toBe(true);
  expect(equalsText(bytes, fields.scope[2] as number, fields.scope[3] as number, 't')).toBe(true);
  const rich = create(CheckRequestSchema, { ...plain, context: { age: 3 } });
  const richBytes = toBinary(CheckRequestSchema, rich);
  expect(proto.check(richBytes, 0, richBytes.length)).toBe(true);
  expect(fields.context).toEqual({ age: 3 });
  const twice = Buffer.concat([bytes, bytes]);
  expect(proto.check(twice, 0, twice.length)).toBe(false);
});

test('batch answers are encoded as the general encoder does', () => {
  const outcome = fc.record({
    outcome: fc.constantFrom(0, 1, 2),
    text: fc.string({ unit: 'grapheme' }),
  });
  fc.assert(
    fc.property(fc.array(outcome, { maxLength: 20, size: 'max' }), (list) => {
      const outcomes = Uint8Array.from(list, (entry) => entry.outcome);
      const errors = new Map(
        list.flatMap(({ outcome: o, text }, i) => (o === 2 ? [[i, `${text}!`]] : [])),
      );
      const message = create(BatchCheckResponseSchema, {
        results: list.map((entry, i) => ({
          allowed: entry.outcome === 1,
          error: errors.get(i) ?? '',
        })),
      });
      const options = { useProtoFieldName: true, alwaysEmitImplicit: true };
      expect(Buffer.from(jsonOfBatch(outcomes, errors)).toString()).toBe(
        toJsonString(BatchCheckResponseSchema, message, options),
      );
      expect(Buffer.from(protoOfBatch(outcomes, errors))).toEqual(
        Buffer.from(toBinary(BatchCheckResponseSchema, message)),
      );
    }),
    { numRuns: RUNS },
  );
});
