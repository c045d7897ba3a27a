import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import { packChanges } from '../../src/model/packed-changes.ts';
import type { RelationTuple, Subject, TupleChange } from '../../src/model/relation-tuple.ts';
import type { TupleReader } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import type { PackingShardIndex } from '../../src/workers/indexes/packing-index.ts';
import { finish, READS_DEFAULT } from '../engine/support.ts';
import { checkIndex } from '../support/index-structure/check-index.ts';
import { readerText } from '../support/reader-text.ts';
import { packingIndex, smallShards } from './folding-index.ts';

const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const NAMESPACES = ['doc', 'group', ''];
const SHARDS = 4;
const model = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      doc: { relations: { owner: {}, viewer: { union: [{ this: {} }, { computed: 'owner' }] } } },
    },
  }),
);

const subject: fc.Arbitrary<Subject> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('user' as const),
      userId: fc.constantFrom('a', 'b', 'ü😀', 'c'.repeat(300)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('set' as const),
      namespace: fc.constantFrom('group', 'doc'),
      objectId: fc.constantFrom('x', 'y'),
      relation: fc.constantFrom('member', ''),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'wildcard' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('wildcardOf' as const),
      namespace: fc.constantFrom('group', 'ghost'),
    }),
  },
);
const tuple: fc.Arbitrary<RelationTuple> = fc.record(
  {
    namespace: fc.constantFrom('doc', 'group'),
    objectId: fc.constantFrom('x', 'y', 'z', 'long'.repeat(60)),
    relation: fc.constantFrom('viewer', 'owner', 'member'),
    subject,
    expiresAtUs: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 2n }),
    conditionName: fc.constantFrom('c', 'other'),
    conditionParams: fc.constantFrom('{"a":1}', '{"text":"ü"}'),
  },
  { requiredKeys: ['namespace', 'objectId', 'relation', 'subject'] },
);
const change: fc.Arbitrary<TupleChange> = fc.record({
  op: fc.constantFrom('insert' as const, 'insert' as const, 'delete' as const),
  tuple,
});
const step = fc.record({
  shard: fc.nat(SHARDS - 1),
  what: fc.constantFrom('change', 'change', 'read', 'fold', 'audit', 'drop', 'use' as const),
  changes: fc.array(change, { minLength: 1, maxLength: 12 }),
  isMany: fc.boolean(),
});

type Shard = {
  user: { isInUse: boolean };
  index: PackingShardIndex;
  expected: TupleIndex;
};

/** As a worker keeps them: beside the reader, however many shards it is lent to. */
const evaluators = new WeakMap<TupleReader, Evaluator>();
function evaluatorOf(reader: TupleReader): Evaluator {
  let evaluator = evaluators.get(reader);
  if (evaluator === undefined) {
    const options = { depthMax: 64, membershipBytesMax: 1 << 20 };
    evaluator = new Evaluator(reader, model, options, systemClock);
    evaluators.set(reader, evaluator);
  }
  return evaluator;
}

/** Every check of the small world that the hot path can answer. */
function answersOf(reader: TupleReader): string {
  const evaluator = evaluatorOf(reader);
  let text = '';
  for (const objectId of ['x', 'y', 'z']) {
    for (const relation of ['viewer', 'owner']) {
      for (const userId of ['a', 'b']) {
        const entity = reader.entityId(reader.nameId('doc'), objectId);
        const user = reader.entityId(0, userId);
        text += evaluator.checkUser(entity, reader.nameId(relation), user, 0, READS_DEFAULT);
        const query = { namespace: 'doc', objectId, relation, contextJson: '' };
        const task = evaluator.startCheck(
          { ...query, subject: { kind: 'user', userId } },
          0,
          READS_DEFAULT,
        );
        text += finish(task) ? 'y' : 'n';
      }
    }
  }
  return text;
}

const manyOf = (count: number): TupleChange[] =>
  Array.from({ length: count }, (_, i) => ({
    op: 'insert',
    tuple: {
      namespace: 'doc',
      objectId: `many-${i}`,
      relation: 'viewer',
      subject: { kind: 'user', userId: 'a' },
    },
  }));

test(`a shard that is folded and unfolded answers as one that never was (I2) (SEED=${seed})`, () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      // Two are unfolded at once, so that shards take each other's indexes.
      const shared = smallShards(1e9, 40, 2);
      const fresh = (): Shard => {
        const user = { isInUse: false };
        return { user, index: packingIndex(user, shared), expected: new TupleIndex() };
      };
      const shards = Array.from({ length: SHARDS }, fresh);
      for (const { shard: at, what, changes, isMany } of steps) {
        const shard = shards[at] as Shard;
        const { index, expected, user } = shard;
        if (what === 'change') {
          const all = isMany ? [...changes, ...manyOf(changes.length * 5)] : changes;
          index.apply(packChanges(all));
          for (const { op, tuple: each } of all) expected.applyChange(op, each);
        } else if (what === 'use') user.isInUse = !user.isInUse;
        else if (what === 'fold') {
          const isPacked = index.pack();
          if (user.isInUse) expect(isPacked).toBe(false);
        } else if (what === 'audit') {
          const audit = index.startAudit(() => 1);
          expect(audit.walk(() => false).difference).toBeNull();
          index.endAudit();
        } else if (what === 'drop') {
          index.drop();
          expect(() => index.reader).toThrow('dropped');
          shards[at] = fresh();
        }
        expect(index.tupleCount === expected.tupleCount || what === 'drop').toBe(true);
        if (what !== 'read') continue;
        for (const each of shards) {
          const { reader } = each.index;
          checkIndex(reader as TupleIndex);
          expect(readerText(reader, NAMESPACES, 7)).toEqual(
            readerText(each.expected, NAMESPACES, 7),
          );
          expect(answersOf(reader)).toBe(answersOf(each.expected));
        }
      }
      for (const { index, expected } of shards) {
        expect(readerText(index.reader, NAMESPACES, 7)).toEqual(
          readerText(expected, NAMESPACES, 7),
        );
      }
      for (const { index } of shards) index.drop();
      expect(shared.blocks.usedBytes).toBe(0);
    }),
    { seed, numRuns: 60 * FUZZ_RUNS },
  );
});

test('a reader whose evaluation has begun is nobody else’s until that has ended (I1)', () => {
  const shared = smallShards(1e9, 40, 1);
  const user = { isInUse: true };
  const [first, second] = [packingIndex(user, shared), packingIndex({ isInUse: false }, shared)];
  first.apply(packChanges(manyOf(3)));
  second.apply(packChanges(manyOf(5)));
  expect(first.reader).not.toBe(second.reader);
  const { reader } = first;
  expect((reader as TupleIndex).tupleCount).toBe(3);
  // It goes while its answer is partly sent: what it began with stays as it was.
  first.drop();
  const third = packingIndex({ isInUse: false }, shared);
  third.apply(packChanges(manyOf(7)));
  expect((reader as TupleIndex).tupleCount).toBe(3);
  expect([second.tupleCount, third.tupleCount]).toEqual([5, 7]);
});

test('tuples that were damaged while folded are an error, and no answer', () => {
  const shared = smallShards(1e9, 40, 1);
  const index = packingIndex(undefined, shared);
  index.apply(packChanges(manyOf(3)));
  expect(index.pack()).toBe(true);
  const { blocks } = shared;
  const read = blocks.read.bind(blocks);
  const damage = (handle: number, out: Uint8Array): number => {
    const size = read(handle, out);
    out[1] = 0x7f;
    return size;
  };
  Object.defineProperty(blocks, 'read', { value: damage, configurable: true });
  expect(() => index.reader).toThrow(expect.objectContaining({ name: 'IndexDamage' }));
  expect(() => index.reader).toThrow(expect.objectContaining({ name: 'IndexDamage' }));
});

test('a shard grows up at a size, in a load and by changes, and is folded below it', () => {
  const shared = smallShards(1e9, 40);
  const index = packingIndex(undefined, shared);
  index.apply(packChanges(manyOf(40)));
  expect([index.ownReader, index.pack(), index.isPacked]).toEqual([null, true, true]);
  const folded = index.bytes;
  index.apply(
    packChanges([
      { op: 'insert', tuple: { ...(manyOf(1)[0] as TupleChange).tuple, objectId: 'last' } },
    ]),
  );
  expect([index.ownReader === index.reader, index.pack(), index.tupleCount]).toEqual([
    true,
    false,
    41,
  ]);
  expect(index.bytes).toBeGreaterThan(folded * 5);
});
