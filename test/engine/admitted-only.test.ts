import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ENGINE_CACHES } from '../../src/engine/bound/evaluator-api.ts';
import { TRUE } from '../../src/engine/bound/scope.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import type { GeneralEvaluator } from '../../src/engine/general-evaluator.ts';
import { listObjects } from '../../src/engine/lists/list-objects.ts';
import { listSubjects } from '../../src/engine/lists/list-subjects.ts';
import { StepsTask } from '../../src/engine/lists/steps-task.ts';
import { OverlayReader } from '../../src/engine/overlay/overlay-reader.ts';
import { problemOfTuple } from '../../src/model/namespace/model-admission.ts';
import type { NamespaceModel, SubjectType } from '../../src/model/namespace/model-shape.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { CheckQuery, RelationTuple, Subject } from '../../src/model/relation-tuple.ts';
import type { ListPage } from '../../src/model/subject-list.ts';
import type { TupleReader } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import {
  ALL_REFS,
  CONTEXTS,
  NAMESPACES,
  NOW_MS,
  RELATIONS,
  subjects,
  worlds,
} from '../reference/worlds.ts';
import { byLength } from '../support/test-length.ts';
import { checkBoth, createIndex, exactAnswers, finish, hotAnswers } from './support.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(0.4, 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const READS = 1_000_000;
const ALL: ListPage = { after: '', idsMax: Infinity };
const OPTIONS = { depthMax: 256, membershipBytesMax: 1 << 20 };
const NO_TYPE = { namespace: '', relation: '', condition: '', expires: undefined } as const;

/** One type of subject, with or without a condition or an expiry. */
const subjectTypes: fc.Arbitrary<SubjectType> = fc
  .tuple(
    fc.oneof(
      fc.constant<SubjectType>({ ...NO_TYPE, kind: 'user' }),
      fc.constant<SubjectType>({ ...NO_TYPE, kind: 'wildcard' }),
      fc
        .constantFrom(...NAMESPACES)
        .map((namespace) => ({ ...NO_TYPE, kind: 'object' as const, namespace })),
      fc
        .constantFrom(...NAMESPACES, 'ghost')
        .map((namespace) => ({ ...NO_TYPE, kind: 'wildcardOf' as const, namespace })),
      fc
        .tuple(fc.constantFrom(...NAMESPACES), fc.constantFrom(...RELATIONS))
        .map(([namespace, relation]) => ({
          ...NO_TYPE,
          kind: 'userset' as const,
          namespace,
          relation,
        })),
    ),
    fc.constantFrom('', '', '', 'age_at_least'),
    fc.constantFrom(undefined, undefined, true, false),
  )
  .map(([type, condition, expires]) => ({ ...type, condition, expires }));

/** What the relations of the declared namespaces admit; those left out admit nobody. */
const admissions = fc.record({
  types: fc.array(
    fc.tuple(
      fc.constantFrom('doc', 'group'),
      fc.constantFrom(...RELATIONS),
      fc.array(subjectTypes, { minLength: 1, maxLength: 8 }),
    ),
    { minLength: 4, maxLength: 14 },
  ),
  isOpen: fc.boolean(),
});

type Drawn = typeof admissions extends fc.Arbitrary<infer Value> ? Value : never;

function typed(plain: NamespaceModel, { types, isOpen }: Drawn): NamespaceModel {
  const bySubjects = new Map<string, Map<string, readonly SubjectType[]>>();
  for (const [namespace, relation, list] of types) {
    if (!plain.namespaces.get(namespace)?.has(relation)) continue;
    const relations = bySubjects.get(namespace) ?? new Map<string, readonly SubjectType[]>();
    bySubjects.set(namespace, relations.set(relation, list));
  }
  const open = new Set(isOpen ? ['group'] : []);
  return { ...plain, subjects: bySubjects, open };
}

function indexOf(tuples: readonly RelationTuple[]) {
  const index = createIndex();
  for (const tuple of tuples) index.insert(tuple);
  return index.reader;
}

/** What each of many questions is answered, as texts that can be compared. */
function answers(
  evaluator: Evaluator,
  general: GeneralEvaluator,
  asked: readonly Subject[],
): string[] {
  const found: string[] = [];
  for (const ref of ALL_REFS) {
    const { namespace, objectId, relation } = ref;
    for (const subject of asked) {
      for (const contextJson of CONTEXTS.slice(0, 2)) {
        for (const isExact of [false, true]) {
          const query = { namespace, objectId, relation, subject, contextJson, isExact };
          found.push(String(finish(general.startDecision(query, NOW_MS, READS))));
        }
      }
    }
    const { reader } = general;
    const name = reader.nameId(namespace);
    const entity = name > 0 ? reader.entityId(name, objectId) : 0;
    const scope = general.scope('any', '', NOW_MS, READS);
    const listed = { entity, relation: reader.nameId(relation) };
    const task = new StepsTask(scope, listSubjects(scope, listed, ALL));
    found.push(JSON.stringify(finish(task)));
  }
  for (const namespace of NAMESPACES) {
    for (const relation of RELATIONS) {
      for (const subject of asked.filter(({ kind }) => kind === 'user')) {
        if (subject.kind !== 'user') continue;
        const query = { namespace, relation, userId: subject.userId };
        found.push(JSON.stringify(finish(evaluator.startListObjects(query, NOW_MS, READS))));
        const scope = general.scope('any', '', NOW_MS, READS);
        const objects = { namespace, relation, subject, contextJson: '', page: ALL };
        const steps = listObjects(general, scope, objects, (id) => found.push(id));
        found.push(JSON.stringify(finish(new StepsTask(scope, steps))));
      }
    }
  }
  return found;
}

test(`an evaluation of admitted tuples only is that of a store that never had others (SEED=${seed})`, () => {
  let left = 0;
  let allowed = 0;
  fc.assert(
    fc.property(
      worlds,
      admissions,
      fc.array(subjects, { minLength: 2, maxLength: 3 }),
      fc.boolean(),
      (world, drawn, drawnSubjects, isLaidOver) => {
        const asked = drawnSubjects.filter(({ kind }) => kind === 'user' || kind === 'set');
        const plain = parseModel(world.modelJson);
        const model = typed(plain, drawn);
        const fits = (tuple: RelationTuple): boolean => problemOfTuple(model, tuple) === undefined;
        const kept = world.tuples.filter(fits);
        left += world.tuples.length - kept.length;
        const all = indexOf(world.tuples);
        const some = indexOf(kept);
        const admitting = new Evaluator(
          all,
          { ...model, admittedOnly: true },
          OPTIONS,
          systemClock,
        );
        const counting = new Evaluator(some, plain, OPTIONS, systemClock);
        const changes = isLaidOver
          ? world.tuples.slice(0, 5).map((tuple) => ({ op: 'delete' as const, tuple }))
          : [];
        const over = (evaluator: Evaluator, reader: typeof all): GeneralEvaluator =>
          changes.length === 0
            ? evaluator.general
            : evaluator.over(new OverlayReader(reader, changes));
        const expected = answers(counting, over(counting, some), asked);
        const actual = answers(admitting, over(admitting, all), asked);
        allowed += expected.filter((answer) => answer === String(TRUE)).length;
        expect(actual).toEqual(expected);
        // The same by a model that is laid over the store of another one, as previews and named versions are.
        const under = admitting.under(
          { ...model, admittedOnly: true },
          new OverlayReader(all, changes),
        );
        expect(answers(admitting, under, asked)).toEqual(expected);
      },
    ),
    { numRuns: Math.ceil(30 * FUZZ_RUNS), seed },
  );
  // Worlds in which nothing was passed over, or nothing held, would show nothing.
  expect(left).toBeGreaterThan(byLength(50, 100));
  expect(allowed).toBeGreaterThan(0);
});

/** How many questions are allowed; each is answered by the general evaluation and, where it can, by the hot path. */
function countAllowed(
  evaluator: Evaluator,
  reader: TupleReader,
  asked: readonly Subject[],
  expected: (query: CheckQuery) => boolean,
): number {
  let allowed = 0;
  for (const { namespace, objectId, relation } of ALL_REFS) {
    for (const subject of asked) {
      for (const contextJson of CONTEXTS.slice(0, 2)) {
        for (const isExact of [false, true]) {
          const query = { namespace, objectId, relation, subject, contextJson, isExact };
          const answer = checkBoth(evaluator, reader, query, NOW_MS, READS);
          if (answer !== expected(query)) expect.fail(`${answer}: ${JSON.stringify(query)}`);
          allowed += Number(answer);
        }
      }
    }
  }
  return allowed;
}

test(`the hot path ignores what is not admitted, and forgets what changed (SEED=${seed})`, () => {
  const before = { ...hotAnswers };
  const beforeExact = { ...exactAnswers };
  let ignored = 0;
  let allowed = 0;
  fc.assert(
    fc.property(
      worlds,
      admissions,
      fc.array(subjects, { minLength: 2, maxLength: 3 }),
      fc.constantFrom([], ENGINE_CACHES),
      (world, drawn, drawnSubjects, cachesOff) => {
        const asked = drawnSubjects.filter(({ kind }) => kind === 'user' || kind === 'set');
        const plain = parseModel(world.modelJson);
        const model = typed(plain, drawn);
        const index = createIndex();
        const options = { ...OPTIONS, cachesOff };
        const admitting = new Evaluator(
          index.reader,
          { ...model, admittedOnly: true },
          options,
          systemClock,
        );
        const { tuples } = world;
        const steps = [
          { inserted: tuples.filter((_, i) => i % 2 === 0), deleted: [] },
          { inserted: tuples.filter((_, i) => i % 2 === 1), deleted: [] },
          { inserted: [], deleted: tuples.filter((_, i) => i % 3 === 0) },
        ];
        const stored = new Set<RelationTuple>();
        for (const { inserted, deleted } of steps) {
          for (const tuple of inserted) {
            index.insert(tuple);
            stored.add(tuple);
          }
          for (const tuple of deleted) {
            index.remove(tuple);
            stored.delete(tuple);
          }
          const kept = [...stored].filter((tuple) => problemOfTuple(model, tuple) === undefined);
          const counting = new Evaluator(indexOf(kept), plain, OPTIONS, systemClock);
          const all = new Evaluator(indexOf([...stored]), plain, OPTIONS, systemClock);
          allowed += countAllowed(admitting, index.reader, asked, (query) => {
            const expected = finish(counting.general.startCheck(query, NOW_MS, READS));
            if (finish(all.general.startCheck(query, NOW_MS, READS)) && !expected) ignored += 1;
            return expected;
          });
        }
      },
    ),
    { numRuns: Math.ceil(30 * FUZZ_RUNS), seed },
  );
  expect(allowed).toBeGreaterThan(0);
  // Questions that the ignored tuples alone would allow, and a hot path that decides most.
  expect(ignored).toBeGreaterThan(byLength(20, 50));
  const hot = hotAnswers.hot - before.hot;
  expect(hot).toBeGreaterThan(hotAnswers.general - before.general);
  expect(exactAnswers.hot - beforeExact.hot).toBeGreaterThan(0);
});
