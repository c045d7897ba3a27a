import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FALSE, TRUE, UNDETERMINED, type Value } from '../../src/engine/bound/scope.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import type { GeneralEvaluator } from '../../src/engine/general-evaluator.ts';
import { CheckRun } from '../../src/engine/general/check-run.ts';
import { listSubjects } from '../../src/engine/lists/list-subjects.ts';
import { listedKindOf, targetOfKind } from '../../src/engine/lists/listed-kind.ts';
import { StepsTask, stepsOf } from '../../src/engine/lists/steps-task.ts';
import { OverlayReader } from '../../src/engine/overlay/overlay-reader.ts';
import type { UsersetRef } from '../../src/model/expand-tree.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { TupleChange } from '../../src/model/relation-tuple.ts';
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
  type World,
  worlds,
} from '../reference/worlds.ts';
import { byLength } from '../support/test-length.ts';
import { createIndex, createSimpleIndex, finish } from './support.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(0.25, 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const READS = 1_000_000;
const ALL: ListPage = { after: '', idsMax: Number.POSITIVE_INFINITY };
const VALUE_OF = { true: TRUE, cut: UNDETERMINED, false: FALSE } as const;
let comparisons = 0;

type Kind = { readonly namespace: string; readonly relation: string };
const kinds: fc.Arbitrary<Kind> = fc.record({
  namespace: fc.constantFrom(...NAMESPACES, 'ghost'),
  relation: fc.constantFrom('', '', ...RELATIONS),
});
const IDS = ['*', ...OBJECTS, 'never', 'never-named'];
/** Whatever a walk can lead to, objects that hold no tuples among them. */
const REFS = [...NAMESPACES, 'ghost'].flatMap((namespace) =>
  IDS.flatMap((objectId) => RELATIONS.map((relation) => ({ namespace, objectId, relation }))),
);

function params(runs: number): { numRuns: number; seed: number } {
  return { numRuns: Math.ceil(runs * FUZZ_RUNS), seed };
}

/** A world on the index that ships, on plain maps, or half of it laid over an index for one request. */
function evaluatorOf(world: World, depthMax: number): GeneralEvaluator {
  const form = world.tuples.length % 3;
  const index = form === 0 ? createSimpleIndex() : createIndex();
  const stored = form === 1 ? world.tuples.filter((_, i) => i % 2 === 0) : world.tuples;
  for (const tuple of stored) index.insert(tuple);
  const options = { depthMax, membershipBytesMax: 1 << 20 };
  const evaluator = new Evaluator(index.reader, parseModel(world.modelJson), options, systemClock);
  if (form !== 1) return evaluator.over(index.reader);
  const added = world.tuples.filter((_, i) => i % 2 === 1);
  const changes = added.map((tuple): TupleChange => ({ op: 'insert', tuple }));
  return evaluator.over(new OverlayReader(index.reader, changes));
}

function idsOf({ reader }: GeneralEvaluator, ref: UsersetRef) {
  const name = reader.nameId(ref.namespace);
  const entity = name > 0 ? reader.entityId(name, ref.objectId) : 0;
  return { entity, relation: reader.nameId(ref.relation) };
}

function listOf(
  evaluator: GeneralEvaluator,
  ref: UsersetRef,
  of: Kind,
  contextJson: string,
  page = ALL,
): SubjectPage {
  const scope = evaluator.scope('any', contextJson, NOW_MS, READS);
  const kind = listedKindOf(evaluator.reader, of.namespace, of.relation);
  const steps = listSubjects(scope, { ...idsOf(evaluator, ref), kind }, page);
  return finish(new StepsTask(scope, steps));
}

/** What a list says of one, named or not. */
function valueIn(list: SubjectPage, id: string): Value {
  if (list.userIds.includes(id)) return TRUE;
  if (list.undecidedUserIds.includes(id)) return UNDETERMINED;
  if (list.excludedUserIds.includes(id)) return FALSE;
  return list.wildcard ? TRUE : list.isWildcardUndecided ? UNDETERMINED : FALSE;
}

function compare(list: SubjectPage, of: object, valueOf: (id: string) => Value): void {
  for (const id of IDS) {
    comparisons++;
    const [listed, wanted] = [valueIn(list, id), valueOf(id)];
    if (listed === wanted) continue;
    throw new Error(`${JSON.stringify({ ...of, id, list })}: ${listed} should be ${wanted}`);
  }
  const { userIds, excludedUserIds, undecidedUserIds } = list;
  for (const ids of [userIds, excludedUserIds, undecidedUserIds]) {
    expect(ids).toEqual([...new Set(ids)].sort());
  }
  const all = [...userIds, ...excludedUserIds, ...undecidedUserIds];
  expect(new Set(all).size).toBe(all.length);
}

function contextsFor(world: World): readonly string[] {
  return world.tuples.some((tuple) => tuple.conditionName !== undefined) ? CONTEXTS : [''];
}

describe(`lists of subjects of one type (SEED=${seed})`, () => {
  test('are what the reference says of each exactly, undecided ones apart', () => {
    fc.assert(
      fc.property(fc.oneof(worlds, knots), fc.array(kinds, { maxLength: 4 }), (world, some) => {
        const evaluator = evaluatorOf(world, 256);
        const model = parseModel(world.modelJson);
        for (const contextJson of contextsFor(world)) {
          const weighed = weighTuples(world.tuples, contextJson);
          const reference = new ReferenceEvaluator(model, weighed, REFS);
          const valuesOf = memoizedValues((target) => reference.values(target));
          for (const kind of some) {
            for (const ref of ALL_REFS) {
              // An object or a relation that no tuple names is for the query, which asks Check of it.
              const { entity, relation } = idsOf(evaluator, ref);
              if ((entity === 0 || relation <= 0) && kind.relation !== '') continue;
              const list = listOf(evaluator, ref, kind, contextJson);
              if (kind.relation !== '') expect(list.wildcard).toBe(false);
              compare(list, { ref, kind }, (objectId) => {
                const asked = { ...kind, objectId };
                const values = valuesOf({ kind: 'set', ref: asked, isExact: true });
                return VALUE_OF[values.get(keyOf(ref, false)) ?? 'false'];
              });
            }
          }
        }
      }),
      params(30),
    );
  });

  test('are what an exact Check says of each, also at a small depth bound, and on pages', () => {
    const depths = fc.integer({ min: 1, max: 8 });
    const sizes = fc.integer({ min: 1, max: 3 });
    fc.assert(
      fc.property(fc.oneof(worlds, knots), depths, kinds, sizes, (world, depthMax, of, idsMax) => {
        const evaluator = evaluatorOf(world, depthMax);
        const { reader } = evaluator;
        const kind = listedKindOf(reader, of.namespace, of.relation);
        for (const ref of ALL_REFS) {
          const { entity, relation } = idsOf(evaluator, ref);
          if (entity === 0 || relation <= 0) continue;
          const whole = listOf(evaluator, ref, of, '');
          compare(whole, { ref, of, depthMax }, (id) => {
            const scope = evaluator.scope('any', '', NOW_MS, READS);
            const subject = kind.namespace > 0 ? reader.entityId(kind.namespace, id) : 0;
            const run = new CheckRun(scope, targetOfKind(reader, kind, subject));
            run.start(entity, relation);
            finish(new StepsTask(scope, stepsOf(run)));
            return run.outcome.value;
          });
          const joined = { userIds: [], excludedUserIds: [], undecidedUserIds: [] } as Record<
            'userIds' | 'excludedUserIds' | 'undecidedUserIds',
            string[]
          >;
          for (let page: ListPage = { after: '', idsMax }; ;) {
            const part = listOf(evaluator, ref, of, '', page);
            joined.userIds.push(...part.userIds);
            joined.excludedUserIds.push(...part.excludedUserIds);
            joined.undecidedUserIds.push(...part.undecidedUserIds);
            expect(part.wildcard).toBe(whole.wildcard);
            if (part.next === '') break;
            page = { after: part.next, idsMax };
          }
          const { userIds, excludedUserIds, undecidedUserIds } = whole;
          expect(joined).toEqual({ userIds, excludedUserIds, undecidedUserIds });
        }
      }),
      params(150),
    );
  });

  test('enough was compared', () => {
    expect(comparisons).toBeGreaterThan(10_000 * Math.min(1, FUZZ_RUNS));
  });
});
