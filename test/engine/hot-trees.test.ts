import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { CHECK_ALLOWED, CHECK_GENERAL } from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace-model.ts';
import type { RelationTuple, Subject } from '../../src/model/relation-tuple.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/clock.ts';

/* Intersections, exclusions and expiries on the hot path say what the general evaluation says, before and after changes. */

const THIS = { this: {} };
const computed = (relation: string): object => ({ computed: relation });
const parents = { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } };
const NAMESPACES = {
  group: { relations: { member: {} } },
  folder: { relations: { parent: {}, viewer: { union: [THIS, parents] } } },
  doc: {
    relations: {
      parent: {},
      banned: {},
      trained: {},
      viewer: {
        exclusion: { include: { union: [THIS, parents] }, exclude: computed('banned') },
      },
      editor: { intersection: [{ union: [THIS, computed('trained')] }, parents] },
      owner: {
        union: [THIS, { exclusion: { include: computed('trained'), exclude: computed('banned') } }],
      },
      // Rests on another one with operators: the general path's.
      reader: { union: [THIS, computed('viewer')] },
      auditor: { exclusion: { include: THIS, exclude: computed('reader') } },
    },
  },
};
const MODEL = parseModel(JSON.stringify({ schema_version: 1, namespaces: NAMESPACES }));
const ASKED = ['viewer', 'editor', 'owner', 'reader', 'auditor', 'banned'];
const OBJECTS = ['d0', 'd1', 'd2'];
const USERS = ['u0', 'u1', 'u2'];
const NOW_MS = 1_900_000_000_000;

const user = fc.constantFrom(...USERS).map((userId): Subject => ({ kind: 'user', userId }));
const group = fc
  .constantFrom('g0', 'g1')
  .map((objectId): Subject => ({ kind: 'set', namespace: 'group', objectId, relation: 'member' }));
const anyone = fc.constant<Subject>({ kind: 'wildcard' });
const folder = fc
  .constantFrom('f0', 'f1')
  .map((objectId): Subject => ({ kind: 'set', namespace: 'folder', objectId, relation: '' }));
const docSet = fc
  .tuple(fc.constantFrom(...OBJECTS), fc.constantFrom('banned', 'viewer', 'trained'))
  .map(([objectId, relation]): Subject => ({ kind: 'set', namespace: 'doc', objectId, relation }));
const holder = fc.oneof(
  { weight: 5, arbitrary: user },
  { weight: 2, arbitrary: group },
  anyone,
  docSet,
);
const payload = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  fc.constantFrom(-1n, 1n).map((side) => ({
    expiresAtUs: BigInt(NOW_MS) * 1000n + side * 5_000_000n,
  })),
  fc.constant({ conditionName: 'age_at_least', conditionParams: '{"min_age":18}' }),
);
const key = fc.oneof(
  fc.record({
    namespace: fc.constant('doc'),
    objectId: fc.constantFrom(...OBJECTS),
    relation: fc.constantFrom('viewer', 'banned', 'trained', 'editor', 'owner', 'auditor'),
    subject: holder,
  }),
  fc.record({
    namespace: fc.constant('doc'),
    objectId: fc.constantFrom(...OBJECTS),
    relation: fc.constant('parent'),
    subject: folder,
  }),
  fc.record({
    namespace: fc.constant('folder'),
    objectId: fc.constantFrom('f0', 'f1'),
    relation: fc.constantFrom('parent'),
    subject: folder,
  }),
  fc.record({
    namespace: fc.constant('folder'),
    objectId: fc.constantFrom('f0', 'f1'),
    relation: fc.constant('viewer'),
    subject: fc.oneof(user, group),
  }),
  fc.record({
    namespace: fc.constant('group'),
    objectId: fc.constantFrom('g0', 'g1'),
    relation: fc.constant('member'),
    subject: fc.oneof(user, group),
  }),
);
const change = fc.record({ isInsert: fc.boolean(), key, payload });

function compared(index: TupleIndex, evaluator: Evaluator, nowMs: number): number {
  let decided = 0;
  for (const objectId of OBJECTS) {
    for (const relation of ASKED) {
      for (const userId of [...USERS, 'nobody']) {
        const entity = index.entityId(index.nameId('doc'), objectId);
        const name = index.nameId(relation);
        const subject = index.entityId(EMPTY_NAME, userId);
        const task = evaluator.startCheckIds(entity, name, subject, nowMs, 10_000);
        task.run(Infinity);
        const code = evaluator.checkUser(entity, name, subject, nowMs, 10_000);
        if (code === CHECK_GENERAL) continue;
        decided++;
        if ((code === CHECK_ALLOWED) === task.result()) continue;
        const question = `${objectId}#${relation}@${userId} at ${nowMs - NOW_MS}`;
        expect.fail(`${question}: ${code} on the hot path`);
      }
    }
  }
  return decided;
}

describe('operators and expiries on the hot path', () => {
  test('say what the general evaluation says, as tuples come and go and expire', () => {
    let decided = 0;
    const property = fc.property(
      fc.array(fc.array(change, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 5 }),
      (groups) => {
        const index = new TupleIndex();
        const options = { depthMax: 64, closureBytesMax: 1 << 20 };
        const evaluator = new Evaluator(index, MODEL, options, systemClock);
        for (const changes of groups) {
          for (const one of changes) {
            const tuple: RelationTuple = { ...one.key, ...one.payload };
            if (one.isInsert) index.applyChange('insert', tuple);
            else index.applyChange('delete', one.key);
          }
          for (const nowMs of [NOW_MS - 10_000, NOW_MS, NOW_MS + 10_000]) {
            decided += compared(index, evaluator, nowMs);
          }
        }
      },
    );
    fc.assert(property, { numRuns: 200 });
    expect(decided).toBeGreaterThan(10_000);
  });

  test('are decided there: an exclusion, an intersection, an expiry', () => {
    const index = new TupleIndex();
    const evaluator = new Evaluator(
      index,
      MODEL,
      { depthMax: 64, closureBytesMax: 1 << 20 },
      systemClock,
    );
    const insert = (relation: string, userId: string, expiresAtUs?: bigint): boolean =>
      index.applyChange('insert', {
        namespace: 'doc',
        objectId: 'd0',
        relation,
        subject: { kind: 'user', userId },
        ...(expiresAtUs === undefined ? {} : { expiresAtUs }),
      });
    insert('viewer', 'u0');
    insert('viewer', 'u1');
    insert('banned', 'u1');
    insert('viewer', 'u2', BigInt(NOW_MS + 1) * 1000n);
    const check = (userId: string, nowMs: number): number =>
      evaluator.checkUser(
        index.entityId(index.nameId('doc'), 'd0'),
        index.nameId('viewer'),
        index.entityId(EMPTY_NAME, userId),
        nowMs,
        10_000,
      );
    const codes = [check('u0', NOW_MS), check('u1', NOW_MS), check('u2', NOW_MS)];
    expect([...codes, check('u2', NOW_MS + 1)].map((code) => code === CHECK_ALLOWED)).toEqual([
      true,
      false,
      true,
      false,
    ]);
    expect(codes).not.toContain(CHECK_GENERAL);
    // Reads of all operands count against one budget.
    const entity = index.entityId(index.nameId('doc'), 'd0');
    const subject = index.entityId(EMPTY_NAME, 'u0');
    expect(evaluator.checkUser(entity, index.nameId('viewer'), subject, NOW_MS, 2)).toBe(
      CHECK_GENERAL,
    );
  });
});
