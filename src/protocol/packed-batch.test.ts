import fc from 'fast-check';
import { expect, test } from 'vitest';
import { handedBufferOf, handedSpace } from './batch-memory.ts';
import type { AnswerBatch, RequestBatch, ScopeEntry } from './messages.ts';
import { RAW_FIELDS } from './messages.ts';
import { packAnswers, RequestPacker, RequestUnpacker, unpackAnswers } from './packed-batch.ts';

const scopes: fc.Arbitrary<ScopeEntry[]> = fc.array(
  fc.record({
    projectId: fc.constantFrom('default', 'p', 'ü'),
    tenantId: fc.constantFrom('', 't:1'),
    modelVersion: fc.nat(3),
    readBudget: fc.nat(2),
    settingsVersion: fc.nat(2),
    epoch: fc.nat(2),
    forkId: fc.constantFrom('', '7', '-8'),
    isHeldOnly: fc.boolean(),
    expectedProjectId: fc.constantFrom('', 'p'),
    expectedTenantId: fc.constantFrom('', 't:1'),
  }),
  { maxLength: 2 },
);

const requests: fc.Arbitrary<RequestBatch> = fc.record({
  scopes,
  tokens: fc.array(fc.string(), { maxLength: 2 }).map((tokens) => ['', ...tokens]),
  raw: fc
    .array(fc.double(), { maxLength: 5 })
    .map((numbers) => Float64Array.from(numbers.flatMap((x) => Array<number>(RAW_FIELDS).fill(x)))),
  bodies: fc.uint8Array(),
  requests: fc.constant([]),
  cancelled: fc.constant([]),
  control: fc.constant([]),
});

test('a sequence of batches comes out as it went in', () => {
  fc.assert(
    fc.property(fc.array(requests, { minLength: 1, maxLength: 6 }), (batches) => {
      const packer = new RequestPacker();
      const unpacker = new RequestUnpacker();
      for (const [index, content] of batches.entries()) {
        const packed = packer.pack(index + 1, content);
        if (packed === null) throw new Error('raw requests alone are packed');
        expect(unpacker.unpack(structuredClone(packed))).toEqual({ batch: index + 1, content });
      }
    }),
  );
});

test('a batch that was written where it is handed over from comes out as it went in', () => {
  fc.assert(
    fc.property(requests, (given) => {
      const space = handedSpace(given.raw.length / RAW_FIELDS, given.bodies.length);
      space.raw.set(given.raw);
      space.bodies.set(given.bodies);
      const content = { ...given, ...space };
      const buffer = handedBufferOf(content);
      if (buffer === null) throw new Error('it is such a space');
      expect(new RequestPacker().packInPlace(9, content, buffer)).toBe(true);
      const moved = structuredClone(buffer, { transfer: [buffer] });
      expect(new RequestUnpacker().unpack(moved)).toEqual({ batch: 9, content: given });
    }),
  );
});

test('a batch whose scopes are longer than the space left for them is not packed in place', () => {
  const content = {
    scopes: [],
    tokens: ['', 'x'.repeat(9_000)],
    ...handedSpace(0, 3),
    requests: [],
    cancelled: [],
    control: [],
  };
  const buffer = handedBufferOf(content);
  if (buffer === null) throw new Error('it is such a space');
  expect(new RequestPacker().packInPlace(1, content, buffer)).toBe(false);
  expect(handedBufferOf({ ...content, raw: new Float64Array(0) })).toBeNull();
});

test('what holds more than raw requests or short answers is not packed', () => {
  const empty: RequestBatch = {
    scopes: [],
    tokens: [''],
    raw: new Float64Array(0),
    bodies: new Uint8Array(0),
    requests: [],
    cancelled: [],
    control: [],
  };
  expect(new RequestPacker().pack(1, { ...empty, cancelled: [7] })).toBeNull();
  const hint = { kind: 'hint', shard: null, revision: 0 } as const;
  expect(new RequestPacker().pack(1, { ...empty, control: [hint] })).toBeNull();
  expect(packAnswers(1, { ...noAnswers, acks: [{ ackId: 1 }] })).toBeNull();
  expect(packAnswers(1, { ...noAnswers, largeBodies: [new Uint8Array(1)] })).toBeNull();
});

const noAnswers: AnswerBatch = {
  ids: new Float64Array(0),
  kinds: new Uint8Array(0),
  bodies: new Uint8Array(0),
  bodyEnds: new Uint32Array(0),
  largeBodies: [],
  responses: [],
  acks: [],
  modelsWanted: [],
  stats: null,
  reports: [],
  refusals: [],
};

test('answers come out as they went in', () => {
  const answer = fc.tuple(fc.nat(), fc.nat(5));
  fc.assert(
    fc.property(fc.array(answer), fc.uint8Array(), fc.uint8Array(), (answers, bodies, ends) => {
      const content: AnswerBatch = {
        ...noAnswers,
        ids: Float64Array.from(answers, ([id]) => id),
        kinds: Uint8Array.from(answers, ([, kind]) => kind),
        bodies,
        bodyEnds: Uint32Array.from(ends),
      };
      const packed = packAnswers(3, content);
      if (packed === null) throw new Error('short answers alone are packed');
      expect(unpackAnswers(packed)).toEqual({ batch: 3, content });
    }),
  );
});
