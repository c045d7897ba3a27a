import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ExpandTree } from '../../src/model/expand-tree.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple, Subject } from '../../src/model/relation-tuple.ts';
import { Dependencies } from '../../verify/checker/dependencies.ts';
import { Evaluator, type Query, type Stored, usersetText } from '../../verify/checker/evaluate.ts';
import {
  DOCS,
  GROUPS,
  LEASES,
  MARKS,
  USERS,
  createUniverse,
} from '../../verify/checker/universe.ts';
import { ReferenceEvaluator, type ReferenceTarget } from '../reference/reference-evaluator.ts';
import { byLength } from '../support/test-length.ts';

const universe = createUniverse();
const evaluator = new Evaluator(universe);
const models = universe.models.map((model) => parseModel(JSON.stringify(model)));
const NOW_MS = 1_000;
const DEPTH_MAX = 256;
const RELATIONS: Readonly<Record<string, readonly string[]>> = {
  doc: ['viewer', 'editor', 'banned', 'parent'],
  folder: ['viewer'],
  group: ['member'],
  mark: ['at', 'seen'],
  lease: ['held'],
};
const OBJECTS: Readonly<Record<string, readonly string[]>> = {
  doc: DOCS,
  folder: ['f0', 'f1'],
  group: GROUPS,
  mark: MARKS,
  lease: LEASES,
};
const REFS = Object.entries(RELATIONS).flatMap(([namespace, relations]) =>
  relations.flatMap((relation) =>
    (OBJECTS[namespace] ?? []).map((objectId) => ({ namespace, objectId, relation })),
  ),
);

const contents: fc.Arbitrary<Stored> = fc
  .tuple(
    fc.constantFrom(0.1, 0.3, 0.6),
    fc.array(fc.double({ min: 0, max: 1, noNaN: true }), {
      minLength: universe.tuples.length,
      maxLength: universe.tuples.length,
      size: 'max',
    }),
  )
  .map(([density, draws]) =>
    draws.map((draw, index) => {
      if (draw > density) return 0;
      if (universe.tuples[index]?.namespace !== 'lease') return 1;
      return draw * 2 < density ? NOW_MS : NOW_MS + 1;
    }),
  );
const modelNumbers = fc.integer({ min: 0, max: universe.models.length - 1 });

function reference(stored: Stored, model: number): ReferenceEvaluator {
  const tuples = universe.tuples.flatMap((tuple, index) => {
    const value = stored[index] ?? 0;
    if (value === 0 || (value > 1 && value <= NOW_MS)) return [];
    const { namespace, object: objectId, relation, subject } = tuple;
    const one: RelationTuple = { namespace, objectId, relation, subject: subjectOf(subject) };
    return [{ tuple: one, weight: 'true' as const }];
  });
  const parsed = models[model];
  if (parsed === undefined) throw new Error('no such model');
  return new ReferenceEvaluator(parsed, tuples, REFS);
}

function subjectOf(subject: (typeof universe.tuples)[number]['subject']): Subject {
  if ('user' in subject) return { kind: 'user', userId: subject.user };
  if ('wildcard' in subject) return { kind: 'wildcard' };
  const [namespace, objectId, relation] = subject.set;
  return { kind: 'set', namespace, objectId, relation };
}

function shortOf(tree: ExpandTree): unknown {
  const refText = (ref: { namespace: string; objectId: string; relation: string }): string =>
    usersetText(ref.namespace, ref.objectId, ref.relation);
  const of = tree.expanded === undefined ? {} : { of: refText(tree.expanded) };
  if (tree.type === 'leaf') {
    const everybody = tree.wildcard ? { everybody: true } : {};
    return { ...of, users: tree.userIds, sets: tree.sets.map(refText), ...everybody };
  }
  const children = tree.type === 'exclusion' ? [tree.include, tree.exclude] : tree.children;
  return { ...of, op: tree.type, children: children.map(shortOf) };
}

describe("the checker's evaluator", () => {
  test('decides and lists as the reference does', () => {
    fc.assert(
      fc.property(contents, modelNumbers, fc.constantFrom(...USERS), (stored, model, user) => {
        const values = reference(stored, model).values({ kind: 'user', userId: user });
        for (const { namespace, objectId, relation } of REFS) {
          const query = { kind: 'check', namespace, object: objectId, relation, user } as const;
          const expected = values.get(`${namespace}:${objectId}#${relation}`) === 'true';
          expect(evaluator.answer(stored, model, query, NOW_MS)).toBe(expected ? '1' : '0');
        }
        for (const [namespace, relation] of [
          ['doc', 'viewer'],
          ['group', 'member'],
          ['lease', 'held'],
        ] as const) {
          const expected = (OBJECTS[namespace] ?? []).filter(
            (object) => values.get(`${namespace}:${object}#${relation}`) === 'true',
          );
          const query = { kind: 'list', namespace, relation, user } as const;
          expect(evaluator.answer(stored, model, query, NOW_MS)).toBe(expected.join(','));
        }
      }),
      { numRuns: byLength(15, 150) },
    );
  });

  test('decides about usersets and objects as the reference does, members too and exactly', () => {
    const sets = [
      ...GROUPS.map((group) => ['group', group, 'member'] as const),
      ...['f0', 'f1'].map((folder) => ['folder', folder, 'viewer'] as const),
      ...['f0', 'f1'].map((folder) => ['folder', folder, ''] as const),
    ];
    let allowed = 0;
    fc.assert(
      fc.property(contents, modelNumbers, fc.constantFrom(...sets), (stored, model, set) => {
        const slow = reference(stored, model);
        const [namespace, objectId, relation] = set;
        const subject: Subject = { kind: 'set', namespace, objectId, relation };
        const known = new Map<string, ReturnType<typeof slow.values>>();
        const valuesOf = (target: ReferenceTarget): ReturnType<typeof slow.values> => {
          const key = JSON.stringify(target);
          const values = known.get(key) ?? slow.values(target);
          known.set(key, values);
          return values;
        };
        for (const ref of REFS) {
          for (const isExact of [true, false]) {
            const wanted = slow.check(ref, subject, valuesOf, isExact);
            const of = { namespace: ref.namespace, object: ref.objectId, relation: ref.relation };
            const query: Query = { kind: 'set', ...of, set, isExact };
            expect(evaluator.answer(stored, model, query, NOW_MS)).toBe(wanted ? '1' : '0');
            if (wanted) allowed++;
          }
        }
      }),
      { numRuns: byLength(10, 60) },
    );
    expect(allowed).toBeGreaterThan(50);
  }, 120_000);

  test('expands as the reference does', () => {
    fc.assert(
      fc.property(contents, modelNumbers, (stored, model) => {
        const slow = reference(stored, model);
        for (const ref of REFS) {
          const { namespace, objectId: object, relation } = ref;
          const query = { kind: 'expand', namespace, object, relation } as const;
          const tree = JSON.parse(evaluator.answer(stored, model, query, NOW_MS)) as unknown;
          expect(tree).toEqual(shortOf(slow.expand(ref, DEPTH_MAX)));
        }
      }),
      { numRuns: byLength(15, 150) },
    );
  });

  test('what a query does not depend on does not change its answer', () => {
    const dependencies = new Dependencies(universe);
    const queries: readonly Query[] = [
      { kind: 'check', namespace: 'doc', object: 'd1', relation: 'viewer', user: 'u2' },
      { kind: 'list', namespace: 'doc', relation: 'viewer', user: 'u1' },
      {
        kind: 'batch',
        items: [
          ['mark', 'm1', 'at', 'marker'],
          ['group', 'g0', 'member', 'u3'],
        ],
      },
      { kind: 'expand', namespace: 'doc', object: 'd0', relation: 'viewer' },
      { kind: 'tuples', namespace: 'folder', object: '', relation: '', user: '' },
      ...[true, false].map((isExact): Query => {
        const set = ['group', 'g1', 'member'] as const;
        return {
          kind: 'set',
          namespace: 'doc',
          object: 'd0',
          relation: 'viewer',
          set,
          isExact,
        };
      }),
    ];
    const changes = new Set<string>();
    fc.assert(
      fc.property(
        contents,
        modelNumbers,
        fc.nat(universe.tuples.length - 1),
        (stored, model, at) => {
          const other = stored.with(at, stored[at] === 0 ? 1 : 0);
          for (const [index, query] of queries.entries()) {
            const [before, after] = [stored, other].map((one) =>
              evaluator.answer(one, model, query, NOW_MS),
            );
            if (before === after) continue;
            changes.add(`${index} ${at}`);
            expect([...dependencies.of(query)]).toContain(at);
          }
        },
      ),
      { numRuns: byLength(800, 2_000) },
    );
    // Much of what is said to matter does, somewhere.
    const named = queries.reduce((sum, query) => sum + dependencies.of(query).size, 0);
    expect(changes.size).toBeGreaterThan(named * 0.3);
  });
});

test('a query that names a version is answered by it, whichever is in force', () => {
  const stored = universe.tuples.map((_, index) => index % 2);
  const asked = { namespace: 'doc', relation: 'viewer', user: 'u1' } as const;
  for (const object of DOCS) {
    for (const model of models.keys()) {
      const plain = evaluator.answer(stored, model, { kind: 'check', object, ...asked }, NOW_MS);
      const named: Query = { kind: 'named', model, object, ...asked };
      for (const inForce of models.keys()) {
        expect(evaluator.answer(stored, inForce, named, NOW_MS)).toBe(plain);
      }
    }
  }
});
