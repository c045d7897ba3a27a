import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import {
  CHECK_ALLOWED,
  CHECK_DENIED,
  CHECK_GENERAL,
} from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple, Subject } from '../../src/model/relation-tuple.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { byLength } from '../support/test-length.ts';
import { contextOf } from './support.ts';

/* Intersections, exclusions, expiries and conditions on the hot path say what the general evaluation says, before and after changes. */

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(0.25, 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
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
const CONDITIONS = {
  cleared: { parameters: { min: 'int', level: 'int' }, expression: 'level >= min' },
};
const MODEL = parseModel(
  JSON.stringify({ schema_version: 1, namespaces: NAMESPACES, conditions: CONDITIONS }),
);
const CONTEXTS = ['', '{}', '{"age":17,"level":3}', '{"age":30,"level":2}', '{"age":"30"}', '[]'];
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
  fc.record(
    {
      conditionName: fc.constantFrom('age_at_least', 'cleared', 'unheard_of'),
      conditionParams: fc.constantFrom(
        '{"min_age":18}',
        '{"min":3}',
        '',
        `{"min":2}${' '.repeat(400)}`,
      ),
      expiresAtUs: fc.constantFrom(BigInt(NOW_MS - 1) * 1000n, BigInt(NOW_MS + 1) * 1000n),
    },
    { requiredKeys: ['conditionName', 'conditionParams'] },
  ),
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

type Clock = { readonly nowMs: number; readonly reads: number };

/** How many questions the hot path decided, each as the general evaluation does. */
function compared(
  index: TupleIndex,
  evaluator: Evaluator,
  { nowMs, reads }: Clock,
  contextJson: string,
): number {
  let decided = 0;
  const context = contextOf(contextJson);
  for (const objectId of OBJECTS) {
    for (const relation of ASKED) {
      for (const userId of [...USERS, 'nobody']) {
        const entity = index.entityId(index.nameId('doc'), objectId);
        const name = index.nameId(relation);
        const subject = index.entityId(EMPTY_NAME, userId);
        const code = evaluator.checkUser(entity, name, subject, nowMs, reads, context);
        if (code === CHECK_GENERAL) continue;
        decided++;
        const task = evaluator.startCheckIds(entity, name, subject, nowMs, 10_000, contextJson);
        task.run(Infinity);
        if ((code === CHECK_ALLOWED) === task.result()) continue;
        const question = `${objectId}#${relation}@${userId} at ${nowMs - NOW_MS} ${contextJson}`;
        expect.fail(`${question}: ${code} on the hot path`);
      }
    }
  }
  return decided;
}

describe(`operators, expiries and conditions on the hot path (SEED=${seed})`, () => {
  test('say what the general evaluation says, as tuples come and go and expire', () => {
    let decided = 0;
    const property = fc.property(
      fc.array(fc.array(change, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 5 }),
      (groups) => {
        const index = new TupleIndex();
        const options = { depthMax: 64, membershipBytesMax: 1 << 20 };
        const evaluator = new Evaluator(index, MODEL, options, systemClock);
        for (const changes of groups) {
          for (const one of changes) {
            const tuple: RelationTuple = { ...one.key, ...one.payload };
            if (one.isInsert) index.applyChange('insert', tuple);
            else index.applyChange('delete', one.key);
          }
          for (const nowMs of [NOW_MS - 10_000, NOW_MS, NOW_MS + 10_000]) {
            decided += compared(index, evaluator, { nowMs, reads: 10_000 }, '');
          }
          for (const contextJson of CONTEXTS) {
            decided += compared(index, evaluator, { nowMs: NOW_MS, reads: 10_000 }, contextJson);
            decided += compared(index, evaluator, { nowMs: NOW_MS, reads: 7 }, contextJson);
          }
        }
      },
    );
    fc.assert(property, { numRuns: Math.ceil(100 * FUZZ_RUNS), seed });
    expect(decided).toBeGreaterThan(10_000 * Math.min(1, FUZZ_RUNS));
  });

  test('are decided there: an exclusion, an intersection, an expiry', () => {
    const index = new TupleIndex();
    const evaluator = new Evaluator(
      index,
      MODEL,
      { depthMax: 64, membershipBytesMax: 1 << 20 },
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

  /** An index and the code of a question of it. */
  function serviceOf(): {
    readonly index: TupleIndex;
    readonly check: (
      relation: string,
      userId: string,
      contextJson?: string,
      reads?: number,
    ) => number;
    readonly insert: (relation: string, subject: Subject, payload?: Partial<RelationTuple>) => void;
  } {
    const index = new TupleIndex();
    const options = { depthMax: 64, membershipBytesMax: 1 << 20 };
    const evaluator = new Evaluator(index, MODEL, options, systemClock);
    return {
      index,
      insert: (relation, subject, more = {}) =>
        void index.applyChange('insert', {
          namespace: 'doc',
          objectId: 'd0',
          relation,
          subject,
          ...more,
        }),
      check: (relation, userId, contextJson = '', reads = 10_000) =>
        evaluator.checkUser(
          index.entityId(index.nameId('doc'), 'd0'),
          index.nameId(relation),
          index.entityId(EMPTY_NAME, userId),
          NOW_MS,
          reads,
          contextOf(contextJson),
        ),
    };
  }
  const named = (userId: string): Subject => ({ kind: 'user', userId });

  test('conditions of users, groups and parents are decided there', () => {
    const { index, insert, check } = serviceOf();
    const adult = { conditionName: 'age_at_least', conditionParams: '{"min_age":18}' };
    const cleared = { conditionName: 'cleared', conditionParams: '{"min":3}' };
    insert('trained', named('u0'), adult);
    insert(
      'trained',
      { kind: 'set', namespace: 'group', objectId: 'g0', relation: 'member' },
      cleared,
    );
    insert('parent', { kind: 'set', namespace: 'folder', objectId: 'f0', relation: '' }, adult);
    for (const [namespace, objectId, relation, userId] of [
      ['group', 'g0', 'member', 'u1'],
      ['folder', 'f0', 'viewer', 'u2'],
    ] as const) {
      index.applyChange('insert', { namespace, objectId, relation, subject: named(userId) });
    }
    const old = '{"age":30,"level":3}';
    const young = '{"age":17,"level":2}';
    const codes = (context: string): number[] => [
      check('trained', 'u0', context),
      check('trained', 'u1', context),
      check('viewer', 'u2', context),
    ];
    expect(codes(old)).toEqual([CHECK_ALLOWED, CHECK_ALLOWED, CHECK_ALLOWED]);
    expect(codes(young)).toEqual([CHECK_DENIED, CHECK_DENIED, CHECK_DENIED]);
    // What cannot be decided denies; below an operator the general evaluation tells what it comes to.
    expect(codes('').slice(0, 2)).toEqual([CHECK_DENIED, CHECK_DENIED]);
    insert('viewer', named('u0'));
    insert('banned', named('u0'), adult);
    expect(check('viewer', 'u0', young)).toBe(CHECK_ALLOWED);
    expect(check('viewer', 'u0', old)).toBe(CHECK_DENIED);
    expect(check('viewer', 'u0', '{}')).toBe(CHECK_GENERAL);
  });

  test('a context is not looked at before a condition is met, and once in a check', () => {
    const { index, insert } = serviceOf();
    const evaluator = new Evaluator(
      index,
      MODEL,
      { depthMax: 64, membershipBytesMax: 1 << 20 },
      systemClock,
    );
    insert('trained', named('u0'));
    insert('trained', named('u1'), {
      conditionName: 'age_at_least',
      conditionParams: '{"min_age":18}',
    });
    let looks = 0;
    const context = {
      value: () => {
        looks++;
        return { age: 30 };
      },
    };
    const check = (userId: string): number =>
      evaluator.checkUser(
        index.entityId(index.nameId('doc'), 'd0'),
        index.nameId('trained'),
        index.entityId(EMPTY_NAME, userId),
        NOW_MS,
        10_000,
        context,
      );
    expect([check('u0'), looks]).toEqual([CHECK_ALLOWED, 0]);
    expect([check('u1'), looks]).toEqual([CHECK_ALLOWED, 1]);
  });

  test('what a declared condition costs counts against the budget', () => {
    const { insert, check } = serviceOf();
    const conditionParams = `{"min":${' '.repeat(120)}3}`;
    insert('trained', named('u0'), { conditionName: 'cleared', conditionParams });
    const context = '{"level":3}';
    const codes = Array.from({ length: 12 }, (_, reads) => check('trained', 'u0', context, reads));
    const first = codes.indexOf(CHECK_ALLOWED);
    expect(first).toBeGreaterThan(1);
    expect(new Set(codes.slice(0, first))).toEqual(new Set([CHECK_GENERAL]));
    expect(new Set(codes.slice(first))).toEqual(new Set([CHECK_ALLOWED]));
  });

  test('a name that stands for another condition by now is not taken for the one before', () => {
    const { index, insert, check } = serviceOf();
    const subject = named('u0');
    const context = '{"age":30}';
    insert('trained', subject, {
      conditionName: 'age_at_least',
      conditionParams: '{"min_age":18}',
    });
    expect(check('trained', 'u0', context)).toBe(CHECK_ALLOWED);
    const id = index.nameId('age_at_least');
    index.applyChange('delete', { namespace: 'doc', objectId: 'd0', relation: 'trained', subject });
    insert('trained', subject, { conditionName: 'unheard_of', conditionParams: '{"min_age":18}' });
    expect(index.nameId('unheard_of')).toBe(id);
    expect(check('trained', 'u0', context)).toBe(CHECK_DENIED);
  });

  test('the operand that decided last is asked first', () => {
    const { index, insert, check } = serviceOf();
    insert('editor', named('u0'));
    insert('viewer', named('u0'));
    for (let i = 0; i < 3; i++) insert('banned', named(`u${i}`));
    insert('viewer', named('u1'));
    const reads = (): number => {
      for (let budget = 0; ; budget++) {
        if (check('viewer', 'u1', '', budget) !== CHECK_GENERAL) return budget;
      }
    };
    const both = reads();
    expect(check('viewer', 'u1')).toBe(CHECK_DENIED);
    expect(reads()).toBeLessThan(both);
    // Who is denied by the other one costs both again, and is denied.
    expect(check('viewer', 'u9')).toBe(CHECK_DENIED);
    expect(check('viewer', 'u1')).toBe(CHECK_DENIED);
    expect(index.tupleCount).toBe(6);
  });
});
