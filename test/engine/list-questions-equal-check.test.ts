import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EvaluationTask } from '../../src/engine/bound/evaluator-api.ts';
import { UNDETERMINED, FALSE, TRUE, type Value } from '../../src/engine/bound/scope.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import type { GeneralEvaluator } from '../../src/engine/general-evaluator.ts';
import { type ListEnd, listObjects } from '../../src/engine/lists/list-objects.ts';
import { listSubjects } from '../../src/engine/lists/list-subjects.ts';
import { relationsOf } from '../../src/engine/lists/relations-of.ts';
import { StepsTask } from '../../src/engine/lists/steps-task.ts';
import { OverlayReader } from '../../src/engine/overlay/overlay-reader.ts';
import type { UsersetRef } from '../../src/model/expand-tree.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { Subject, TupleChange } from '../../src/model/relation-tuple.ts';
import type { ListPage, SubjectPage } from '../../src/model/subject-list.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { memoizedValues, weighTuples } from '../reference/reference-decision.ts';
import { keyOf, ReferenceEvaluator } from '../reference/reference-evaluator.ts';
import {
  ALL_REFS,
  CONTEXTS,
  knots,
  NAMESPACES,
  NOW_MS,
  OBJECTS,
  RELATIONS,
  subjects,
  USERS,
  type World,
  worlds,
} from '../reference/worlds.ts';
import { byLength } from '../support/test-length.ts';
import { createIndex, createSimpleIndex, finish } from './support.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(0.06, 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const READS = 1_000_000;
const ALL: ListPage = { after: '', idsMax: Infinity };
const VALUE_OF = { true: TRUE, cut: UNDETERMINED, false: FALSE } as const;
let comparisons = 0;

function params(runs: number): { numRuns: number; seed: number } {
  return { numRuns: Math.ceil(runs * FUZZ_RUNS), seed };
}

/** A world on the index that ships, on plain maps, or half of it laid over an index for one request. */
function evaluatorOf(world: World, depthMax: number): GeneralEvaluator {
  const kind = world.tuples.length % 3;
  const index = kind === 0 ? createSimpleIndex() : createIndex();
  const stored = kind === 1 ? world.tuples.filter((_, i) => i % 2 === 0) : world.tuples;
  for (const tuple of stored) index.insert(tuple);
  const options = { depthMax, membershipBytesMax: 1 << 20 };
  const evaluator = new Evaluator(index.reader, parseModel(world.modelJson), options, systemClock);
  if (kind !== 1) return evaluator.over(index.reader);
  const added = world.tuples.filter((_, i) => i % 2 === 1);
  const changes = added.map((tuple): TupleChange => ({ op: 'insert', tuple }));
  return evaluator.over(new OverlayReader(index.reader, changes));
}

function contextsFor(world: World): readonly string[] {
  return world.tuples.some((tuple) => tuple.conditionName !== undefined) ? CONTEXTS : [''];
}

function subjectsOf(
  evaluator: GeneralEvaluator,
  ref: UsersetRef,
  contextJson: string,
  page = ALL,
): SubjectPage {
  const { reader } = evaluator;
  const scope = evaluator.scope('any', contextJson, NOW_MS, READS);
  const name = reader.nameId(ref.namespace);
  const entity = name > 0 ? reader.entityId(name, ref.objectId) : 0;
  const steps = listSubjects(scope, { entity, relation: reader.nameId(ref.relation) }, page);
  return finish(new StepsTask(scope, steps));
}

/** What a list says of a user. */
function valueIn(list: SubjectPage, userId: string): Value {
  const places = [list.userIds, list.undecidedUserIds, list.excludedUserIds];
  const at = places.filter((ids) => ids.includes(userId));
  if (at.length > 1) throw new Error(`${userId} is in several lists: ${JSON.stringify(list)}`);
  if (at[0] === list.userIds) return TRUE;
  if (at[0] === list.undecidedUserIds) return UNDETERMINED;
  if (at[0] === list.excludedUserIds) return FALSE;
  return list.wildcard ? TRUE : list.isWildcardUndecided ? UNDETERMINED : FALSE;
}

function decide(
  evaluator: GeneralEvaluator,
  ref: UsersetRef,
  subject: Subject,
  contextJson = '',
  isExact = false,
) {
  const query = { ...ref, subject, contextJson, isExact };
  return finish(evaluator.startDecision(query, NOW_MS, READS));
}

/** Every user of the world, and one whom nobody ever named, by the list and by `valueOf`. */
function compareSubjects(
  list: SubjectPage,
  ref: UsersetRef,
  valueOf: (userId: string) => Value,
): void {
  for (const userId of [...USERS, 'never-named']) {
    comparisons++;
    const [listed, wanted] = [valueIn(list, userId), valueOf(userId)];
    if (listed === wanted) continue;
    throw new Error(`${JSON.stringify({ ref, userId, list })}: ${listed} should be ${wanted}`);
  }
  for (const ids of [list.userIds, list.excludedUserIds, list.undecidedUserIds]) {
    expect(ids).toEqual([...new Set(ids)].sort());
  }
}

function objectsOf(
  evaluator: GeneralEvaluator,
  query: {
    readonly namespace: string;
    readonly relation: string;
    readonly subject: Subject;
    readonly contextJson: string;
    readonly isExact: boolean;
  },
  page = ALL,
): { readonly ids: string[] } & ListEnd {
  const scope = evaluator.scope('any', query.contextJson, NOW_MS, READS);
  const ids: string[] = [];
  const steps = listObjects(evaluator, scope, { ...query, page }, (id) => ids.push(id));
  const task: EvaluationTask<ListEnd> = new StepsTask(scope, steps);
  return { ...finish(task), ids };
}

describe(`lists of subjects (SEED=${seed})`, () => {
  test('are what the reference says of every user, undecided ones apart', () => {
    fc.assert(
      fc.property(fc.oneof(worlds, knots), (world) => {
        const evaluator = evaluatorOf(world, 256);
        const model = parseModel(world.modelJson);
        for (const contextJson of contextsFor(world)) {
          const weighed = weighTuples(world.tuples, contextJson);
          const reference = new ReferenceEvaluator(model, weighed, ALL_REFS);
          const valuesOf = memoizedValues((target) => reference.values(target));
          for (const ref of ALL_REFS) {
            const list = subjectsOf(evaluator, ref, contextJson);
            compareSubjects(list, ref, (userId) => {
              const value = valuesOf({ kind: 'user', userId }).get(keyOf(ref, false));
              return VALUE_OF[value ?? 'false'];
            });
          }
        }
      }),
      params(80),
    );
  });

  test('are what Check says of every user, also at a small depth bound', () => {
    fc.assert(
      fc.property(fc.oneof(worlds, knots), fc.integer({ min: 1, max: 12 }), (world, depthMax) => {
        const evaluator = evaluatorOf(world, depthMax);
        for (const contextJson of contextsFor(world)) {
          for (const ref of ALL_REFS) {
            const list = subjectsOf(evaluator, ref, contextJson);
            compareSubjects(list, ref, (userId) =>
              decide(evaluator, ref, { kind: 'user', userId }, contextJson),
            );
          }
        }
      }),
      params(150),
    );
  });

  test('are undecided where Check is, on a cycle through a union beside an intersection', () => {
    const walk = (tupleset: string) => ({ tuple_to_userset: { tupleset, computed: 'r0' } });
    const r0 = { union: [walk('parent'), { intersection: [walk('r0'), {}] }] };
    const subject: Subject = { kind: 'set', namespace: 'doc', objectId: 'a', relation: 'r0' };
    const tuple = { namespace: 'doc', objectId: 'a', relation: 'parent', subject };
    const ref = { namespace: 'doc', objectId: 'a', relation: 'r0' };
    for (let depthMax = 1; depthMax < 12; depthMax++) {
      const modelJson = JSON.stringify({ namespaces: { doc: { relations: { r0 } } } });
      const evaluator = evaluatorOf({ modelJson, tuples: [tuple, tuple] }, depthMax);
      compareSubjects(subjectsOf(evaluator, ref, ''), ref, (userId) =>
        decide(evaluator, ref, { kind: 'user', userId }),
      );
    }
  });

  test('are the pages put together', () => {
    fc.assert(
      fc.property(
        fc.oneof(worlds, knots),
        fc.integer({ min: 1, max: 3 }),
        fc.constantFrom(3, 256),
        (world, idsMax, depthMax) => {
          const evaluator = evaluatorOf(world, depthMax);
          for (const ref of ALL_REFS) {
            const whole = subjectsOf(evaluator, ref, '');
            const parts: SubjectPage[] = [];
            let after = '';
            do {
              const part = subjectsOf(evaluator, ref, '', { after, idsMax });
              parts.push(part);
              after = part.next;
            } while (after !== '');
            const joined = {
              ...whole,
              userIds: parts.flatMap((part) => part.userIds),
              excludedUserIds: parts.flatMap((part) => part.excludedUserIds),
              undecidedUserIds: parts.flatMap((part) => part.undecidedUserIds),
            };
            expect(joined).toEqual(whole);
            for (const part of parts) {
              const { userIds, excludedUserIds, undecidedUserIds } = part;
              const count = userIds.length + excludedUserIds.length + undecidedUserIds.length;
              expect(count === idsMax || part === parts.at(-1)).toBe(true);
              expect(part.wildcard).toBe(whole.wildcard);
            }
          }
        },
      ),
      params(60),
    );
  });
});

describe(`lists of relations (SEED=${seed})`, () => {
  test('name every relation that Check could allow', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const evaluator = evaluatorOf(world, 256);
        const model = parseModel(world.modelJson);
        for (const namespace of NAMESPACES) {
          for (const objectId of OBJECTS) {
            const scope = evaluator.scope('any', '', NOW_MS, READS);
            const steps = relationsOf(scope, model, namespace, objectId);
            const named = finish(new StepsTask(scope, steps));
            for (const relation of RELATIONS) {
              const ref = { namespace, objectId, relation };
              const isHeld = USERS.some(
                (userId) => decide(evaluator, ref, { kind: 'user', userId }) !== FALSE,
              );
              comparisons++;
              expect(named.has(relation) || !isHeld).toBe(true);
            }
          }
        }
      }),
      params(40),
    );
  });
});

describe(`lists of objects (SEED=${seed})`, () => {
  test('of a user are what Check says of every object, with every context, in pages too', () => {
    fc.assert(
      fc.property(
        fc.oneof(worlds, knots),
        fc.constantFrom(2, 4, 256),
        fc.integer({ min: 1, max: 3 }),
        (world, depthMax, idsMax) => {
          const evaluator = evaluatorOf(world, depthMax);
          for (const contextJson of contextsFor(world)) {
            for (const userId of USERS) {
              compareObjects(evaluator, { kind: 'user', userId }, contextJson, idsMax);
            }
          }
        },
      ),
      params(60),
    );
  });

  test('also where one check would find out more than the next one may, on a cycle at the depth bound', () => {
    const r0 = { computed: 'r0' };
    const walk = (to: string) => ({ tuple_to_userset: { tupleset: 'parent', computed: to } });
    const exclusion = (include: object, exclude: object) => ({ exclusion: { include, exclude } });
    const relations = {
      r0: exclusion(walk('r1'), {}),
      r1: { intersection: [r0, { union: [{}, r0] }] },
      r2: { union: [{}, exclusion(r0, {})] },
      parent: exclusion({ union: [{}, walk('parent')] }, r0),
    };
    const set = (relation: string): Subject => ({
      kind: 'set',
      namespace: 'doc',
      objectId: 'a',
      relation,
    });
    const tuple = (objectId: string, relation: string, subject: Subject) => ({
      namespace: 'doc',
      objectId,
      relation,
      subject,
    });
    const user: Subject = { kind: 'user', userId: 'u0' };
    const tuples = [
      tuple('a', 'r2', user),
      tuple('b', 'parent', set('r0')),
      tuple('a', 'parent', set('r2')),
    ];
    const modelJson = JSON.stringify({ namespaces: { doc: { relations } } });
    for (let depthMax = 1; depthMax < 10; depthMax++) {
      const index = createIndex();
      for (const one of tuples) index.insert(one);
      const options = { depthMax, membershipBytesMax: 1 << 20 };
      const evaluator = new Evaluator(index.reader, parseModel(modelJson), options, systemClock);
      compareObjects(evaluator.general, user, '', 1);
      const query = { namespace: 'doc', relation: 'parent' };
      const list = finish(evaluator.startListObjects({ ...query, userId: 'u0' }, NOW_MS, READS));
      const wanted = OBJECTS.filter(
        (objectId) => decide(evaluator.general, { ...query, objectId }, user) === TRUE,
      );
      expect([depthMax, list]).toEqual([depthMax, wanted]);
    }
  });

  test('of a set, too, and exactly', () => {
    fc.assert(
      fc.property(
        fc.oneof(worlds, knots),
        fc.array(subjects, { maxLength: 4 }),
        fc.constantFrom(3, 256),
        fc.integer({ min: 1, max: 3 }),
        (world, list, depthMax, idsMax) => {
          const evaluator = evaluatorOf(world, depthMax);
          const stored = world.tuples.map((tuple) => tuple.subject);
          for (const subject of [...list, ...stored.slice(0, 4)]) {
            if (subject.kind !== 'set') continue;
            for (const contextJson of contextsFor(world)) {
              compareObjects(evaluator, subject, contextJson, idsMax);
              compareObjects(evaluator, subject, contextJson, idsMax, true);
            }
          }
        },
      ),
      params(60),
    );
  });
});

/** Whether a list says that something was undecided: what Check says of one of its objects. */
function anyUndecided(values: ReadonlyMap<string, Value>, from = '', to = '~'): boolean {
  return [...values].some(([id, value]) => value === UNDETERMINED && id > from && id <= to);
}

function compareObjects(
  evaluator: GeneralEvaluator,
  subject: Subject,
  contextJson: string,
  idsMax: number,
  isExact = false,
): void {
  for (const namespace of NAMESPACES) {
    for (const relation of RELATIONS) {
      const query = { namespace, relation, subject, contextJson, isExact };
      const values = new Map(
        OBJECTS.map((objectId) => [
          objectId,
          decide(evaluator, { ...query, objectId }, subject, contextJson, isExact),
        ]),
      );
      const wanted = OBJECTS.filter((objectId) => values.get(objectId) === TRUE);
      comparisons += OBJECTS.length;
      const { isUndecided, ...whole } = objectsOf(evaluator, query);
      expect(whole, JSON.stringify(query)).toEqual({ ids: wanted, next: '' });
      expectUndecided(evaluator, isUndecided, anyUndecided(values), query);
      const joined: string[] = [];
      let after = '';
      do {
        const part = objectsOf(evaluator, query, { after, idsMax });
        expect(part.ids.length <= idsMax && (part.next === '' || part.ids.length > 0)).toBe(true);
        const isWanted = anyUndecided(values, after, part.next === '' ? '~' : part.next);
        expectUndecided(evaluator, part.isUndecided, isWanted, query);
        joined.push(...part.ids);
        after = part.next;
      } while (after !== '');
      expect(joined).toEqual(wanted);
    }
  }
}

/** Objects that the depth bound alone makes undecided are left out where no way leads to them: no such way is looked for. */
function expectUndecided(
  { depthMax }: GeneralEvaluator,
  found: boolean,
  wanted: boolean,
  query: object,
): void {
  const [place, isDeep] = [JSON.stringify({ ...query, depthMax }), depthMax === 256];
  if (isDeep || found) expect([place, found]).toEqual([place, wanted]);
}

test('enough was compared', () => {
  if (FUZZ_RUNS > 1) process.stdout.write(`${comparisons} comparisons\n`);
  expect(comparisons).toBeGreaterThan(10_000 * Math.min(1, FUZZ_RUNS));
});
