import {
  type DescMessage,
  fromBinary,
  fromJsonString,
  type Message,
  toBinary,
} from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import { requestLimits } from '../../src/authz/request-limits.ts';
import { assertJsonBounds } from '../../src/decoding/json-count.ts';
import { isWithoutUnknown, MessageDecoder } from '../../src/decoding/message-decoder.ts';
import { PreviewModelRequestSchema } from '../../src/gen/gatehouse/v1/model_service_pb.ts';
import {
  CheckRequestSchema as QueryCheckRequestSchema,
  QueryScopeSchema,
} from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import {
  type BatchCheckRequest,
  BatchCheckRequestSchema,
  CheckRequestSchema,
  WriteRelationTuplesRequestSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { runInSlices, SliceQueue } from '../../src/shared/slice-queue.ts';
import { INPUTS } from './messages.ts';

const limits = requestLimits({ maxBatchItems: 10_000, maxWriteUpdates: 1_000 });
const decoder = new MessageDecoder(limits);
const item = (i: number) => ({ namespace: 'n', object_id: `o${i}`, relation: 'r' });
const itemsOf = (count: number): object[] => Array.from({ length: count }, (_, i) => item(i));

async function decodeJson(desc: DescMessage, json: unknown): Promise<Message> {
  const text = typeof json === 'string' ? json : JSON.stringify(json);
  return await decoder.decode(desc, false, Buffer.from(text));
}

/** The refusal of a body: reason, field, limit. */
async function refusalOf(work: Promise<unknown>): Promise<readonly (string | undefined)[]> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof AppError)) throw new Error('not refused by a reason', { cause: error });
  return [error.reason, error.metadata['field'], error.metadata['limit']];
}

describe('a body beyond a limit is refused, and the field is named', () => {
  const long = 'a'.repeat(200_000);
  const members = (count: number): object =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`m${i}`, i]));
  const CASES: readonly (readonly [DescMessage, unknown, string, string, string | undefined])[] = [
    [BatchCheckRequestSchema, { items: itemsOf(10_001) }, 'BATCH_TOO_LARGE', 'items', '10000'],
    [
      QueryCheckRequestSchema,
      { scope: { contextual_tuples: itemsOf(1_001) } },
      'BATCH_TOO_LARGE',
      'scope.contextual_tuples',
      '100',
    ],
    [
      PreviewModelRequestSchema,
      { questions: { given: itemsOf(10_001) } },
      'FIELD_INVALID',
      'questions.given',
      undefined,
    ],
    [CheckRequestSchema, { context: members(9_000) }, 'FIELD_TOO_LARGE', 'context', '8192'],
    [CheckRequestSchema, { context: { a: long + long } }, 'FIELD_TOO_LARGE', 'context', '262144'],
    [CheckRequestSchema, { object_id: long }, 'FIELD_TOO_LARGE', 'object_id', '131072'],
    [
      BatchCheckRequestSchema,
      { items: [item(0), { ...item(1), relation: long }] },
      'FIELD_TOO_LARGE',
      'items[1].relation',
      '131072',
    ],
  ];

  test.each(CASES)('%s', async (desc, json, reason, field, limit) => {
    expect(await refusalOf(decodeJson(desc, json))).toEqual([reason, field, limit]);
    const bytes = toBinary(desc, fromJsonString(desc, JSON.stringify(json)));
    const binary = (async () => decoder.decode(desc, true, bytes))();
    expect(await refusalOf(binary)).toEqual([reason, field, limit]);
  });

  test('depth, digits and unknown fields', async () => {
    const pad = ' '.repeat(5_000);
    const deep = `{"context":{"a":${'['.repeat(200)}${']'.repeat(200)}}${pad}}`;
    const unknown = `{${Array.from({ length: 65 }, (_, i) => `"k${i}":1`).join(',')}${pad}}`;
    for (const [text, field] of [
      [deep, 'context'],
      [unknown, undefined],
      [`{"context":{"a":${'1'.repeat(6_000)}}}`, 'context'],
    ] as const) {
      const [reason, named] = await refusalOf(decodeJson(CheckRequestSchema, text));
      expect([reason, named]).toEqual(['BODY_MALFORMED', field]);
    }
  });

  /** A field of protobuf that is a text or a message of fewer than 128 bytes. */
  const fieldOf = (number: number, ...bytes: readonly number[]): number[] => [
    (number << 3) | 2,
    bytes.length,
    ...bytes,
  ];
  const struct = (...fields: readonly number[]): number[] =>
    fieldOf(1, ...fieldOf(1, 0x61), ...fields);
  /** `again` is the field that comes again; `whole` makes a body of so many of them. */
  const REPEATED = [
    ['a text', CheckRequestSchema, fieldOf(1, 0x61), (again: number[]) => again],
    ['a userset', CheckRequestSchema, fieldOf(5), (again: number[]) => again],
    ['a context', CheckRequestSchema, fieldOf(6, ...struct()), (again: number[]) => again],
    [
      'an object within a context',
      CheckRequestSchema,
      fieldOf(5, ...struct()),
      (again: number[]) => fieldOf(6, ...struct(...fieldOf(2, ...again))),
    ],
    [
      'a text of an item',
      BatchCheckRequestSchema,
      fieldOf(1, 0x61),
      (again: number[]) => fieldOf(3, ...again),
    ],
    [
      'parameters of a tuple',
      WriteRelationTuplesRequestSchema,
      fieldOf(9, ...struct()),
      (again: number[]) => fieldOf(1, ...fieldOf(2, ...again)),
    ],
  ] as const;

  // The library merges each with those before it, and copies every member for that: thousands of them took seconds.
  test.each(REPEATED)('%s that comes again and again', async (_what, desc, again, whole) => {
    const body = (times: number): Uint8Array =>
      Uint8Array.from(whole(Array.from({ length: times }, () => again).flat()));
    const many = (async () => decoder.decode(desc, true, body(10)))();
    const [reason, , limit] = await refusalOf(many);
    expect([reason, limit]).toEqual(['FIELD_TOO_LARGE', '8']);
    expect(await decoder.decode(desc, true, body(9))).toEqual(fromBinary(desc, body(9)));
  });

  test('fields that may come again have numbers that are looked at', () => {
    const seen = new Set<DescMessage>();
    const visit = (desc: DescMessage): void => {
      if (seen.has(desc)) return;
      seen.add(desc);
      for (const { fieldKind, number, message } of desc.fields) {
        if (fieldKind !== 'list' && fieldKind !== 'map') expect(number).toBeLessThan(32);
        if (message !== undefined) visit(message);
      }
    };
    INPUTS.forEach(visit);
    expect(seen.size).toBeGreaterThan(50);
  });

  test('text that is no UTF-8, in a place that is read late', async () => {
    const bytes = Buffer.from(JSON.stringify({ items: itemsOf(5_000) }));
    bytes[bytes.length - 40] = 0xff;
    const work = (async () => decoder.decode(BatchCheckRequestSchema, false, bytes))();
    expect(await refusalOf(work)).toEqual(['BODY_MALFORMED', undefined, undefined]);
  });
});

test('limits are of fields that there are', () => {
  const names = new Set<string>();
  const visit = (desc: DescMessage): void => {
    for (const field of desc.fields) {
      const name = `${desc.typeName}.${field.name}`;
      if (names.has(name)) continue;
      names.add(name);
      if (field.message !== undefined) visit(field.message);
    }
  };
  for (const input of INPUTS) visit(input);
  visit(QueryScopeSchema);
  const limited = [...(limits.items?.keys() ?? []), ...(limits.textBytes?.keys() ?? [])];
  expect(limited.length).toBeGreaterThan(15);
  expect(limited.filter((name) => !names.has(name))).toEqual([]);
});

test('who may not go there is refused before an item is built, and before a limit is told', async () => {
  const refusal = new AppError('SCOPE_REFUSED', 'no');
  for (const count of [5_000, 20_000]) {
    const seen: BatchCheckRequest[] = [];
    const admit = (rest: Message): void => {
      seen.push(rest as BatchCheckRequest);
      throw refusal;
    };
    // The project stands behind the items.
    const text = JSON.stringify({ items: itemsOf(count), project_id: 'other' });
    const json = decoder.decode(BatchCheckRequestSchema, false, Buffer.from(text), {}, admit);
    await expect(json).rejects.toBe(refusal);
    const bytes = toBinary(BatchCheckRequestSchema, fromJsonString(BatchCheckRequestSchema, text));
    const binary = decoder.decode(BatchCheckRequestSchema, true, bytes, {}, admit);
    await expect(binary).rejects.toBe(refusal);
    expect(seen.map(({ projectId, items }) => [projectId, items.length])).toEqual([
      ['other', 0],
      ['other', 0],
    ]);
  }
});

test('white space costs nothing but its bytes', async () => {
  const space = ' \n'.repeat(200_000);
  const text = `${space}{${space}"items"${space}:${space}[${space}{"relation":"r"}${space},${space}{}${space}]${space},"project_id":"p"${space}}${space}`;
  const message = await decodeJson(BatchCheckRequestSchema, text);
  expect(message).toEqual(fromJsonString(BatchCheckRequestSchema, text));
});

test('what is small is decoded at once', () => {
  const text = JSON.stringify({ items: itemsOf(20) });
  const message = decoder.decode(BatchCheckRequestSchema, false, Buffer.from(text));
  expect(message).not.toBeInstanceOf(Promise);
  expect(message).toEqual(fromJsonString(BatchCheckRequestSchema, text));
});

test('of a large message it is known whether it has unknown fields', async () => {
  const text = JSON.stringify({ items: itemsOf(5_000) });
  const known = toBinary(BatchCheckRequestSchema, fromJsonString(BatchCheckRequestSchema, text));
  const unknown = Buffer.concat([known, Buffer.from([0xc0, 0x3e, 0x01])]);
  const of = async (bytes: Uint8Array): Promise<boolean> =>
    isWithoutUnknown(await decoder.decode(BatchCheckRequestSchema, true, bytes));
  expect(await of(known)).toBe(true);
  expect(await of(unknown)).toBe(false);
});

test('workers take turns, and others are served between them', async () => {
  const queue = new SliceQueue();
  const order: string[] = [];
  const slow = function* steps(name: string): Generator<void, void> {
    for (let i = 0; i < 3; i++) {
      order.push(name);
      // Each step is a slice of its own.
      for (const untilMs = performance.now() + 6; performance.now() < untilMs;);
      yield;
    }
  };
  let turns = 0;
  const other = setInterval(() => (turns += 1), 0);
  await Promise.all([runInSlices(slow('a'), queue), runInSlices(slow('b'), queue)]);
  clearInterval(other);
  expect(order).toEqual(['a', 'b', 'a', 'b', 'a', 'b']);
  expect(turns).toBeGreaterThan(2);
});

test('JSON that no message describes', () => {
  const bounds = { valuesMax: 100, bytesMax: 10_000 };
  const pad = ' '.repeat(5_000);
  expect(() => assertJsonBounds(Buffer.from(`[${'1,'.repeat(100)}1${pad}]`), bounds)).toThrow(
    'more than 100 values',
  );
  expect(() => assertJsonBounds(Buffer.from(pad + pad + pad), bounds)).toThrow('10000 bytes');
  expect(() => assertJsonBounds(Buffer.from(`[${'1,'.repeat(90)}1${pad}]`), bounds)).not.toThrow();
  // What is no JSON is for the parser to tell.
  expect(() => assertJsonBounds(Buffer.from(`[1 2${pad}]`), bounds)).not.toThrow();
});
