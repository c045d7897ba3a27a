import fc from 'fast-check';
import { describe, test } from 'vitest';
import { BoundModel } from '../../src/engine/bound/bound-model.ts';
import { BACKSTOP_DEPTH } from '../../src/engine/bound/evaluator-api.ts';
import {
  ConditionCache,
  UNDETERMINED,
  FALSE,
  Scope,
  type Target,
  TRUE,
} from '../../src/engine/bound/scope.ts';
import { CheckRun } from '../../src/engine/general/check-run.ts';
import { type Outcome, solveComponent } from '../../src/engine/general/component-solver.ts';
import type { UsersetRef } from '../../src/model/expand-tree.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple } from '../../src/model/relation-tuple.ts';
import { EMPTY_NAME, type TupleReader } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import {
  keyOf,
  ReferenceEvaluator,
  type ReferenceTarget,
  type WeighedTuple,
} from '../reference/reference-evaluator.ts';
import { ALL_REFS, knots, NOW_MS, type World, worlds } from '../reference/worlds.ts';
import { byLength } from '../support/test-length.ts';
import { createIndex } from './support.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(0.3, 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const DEPTH = 256;
const VALUE_OF = { true: TRUE, false: FALSE, cut: UNDETERMINED } as const;
const NAME_OF = { [TRUE]: 'true', [FALSE]: 'false', [UNDETERMINED]: 'cut' } as const;

/** Conditions without their input: undecided. */
function weigh(tuples: readonly RelationTuple[]): WeighedTuple[] {
  return tuples
    .filter(({ expiresAtUs }) => expiresAtUs === undefined || BigInt(NOW_MS) * 1000n < expiresAtUs)
    .map((tuple) => ({
      tuple,
      weight: tuple.conditionName === undefined ? 'true' : 'undecided',
    }));
}

function readerOf(world: World): TupleReader {
  const index = createIndex();
  for (const tuple of world.tuples) index.insert(tuple);
  return index.reader;
}

function idsOf(reader: TupleReader, ref: UsersetRef) {
  const namespace = reader.nameId(ref.namespace);
  const entity = namespace > 0 ? reader.entityId(namespace, ref.objectId) : 0;
  return { entity, relation: reader.nameId(ref.relation) };
}

function targetOf(reader: TupleReader, target: ReferenceTarget): Target | undefined {
  if (target.kind === 'user') {
    const user = reader.entityId(EMPTY_NAME, target.userId);
    return { userNode: reader.userNodeOf(user), setEntity: 0, setRelation: 0 };
  }
  const { entity, relation } = idsOf(reader, target.ref);
  if (entity === 0 || relation <= 0) return undefined;
  return { userNode: 0, setEntity: entity, setRelation: relation };
}

type Case = {
  readonly reference: ReferenceEvaluator;
  readonly against: ReferenceTarget;
  readonly target: Target;
  readonly scopeOf: (depthMax?: number) => Scope;
  readonly refs: readonly (UsersetRef & { readonly entity: number; readonly id: number })[];
};

/** Every target of a world that the index knows. */
function casesOf(world: World): Case[] {
  const reader = readerOf(world);
  const rules = parseModel(world.modelJson);
  const model = new BoundModel(rules, reader);
  const reference = new ReferenceEvaluator(rules, weigh(world.tuples), ALL_REFS);
  const conditions = new ConditionCache();
  const scopeOf = (depthMax = DEPTH): Scope =>
    new Scope({
      reader,
      model,
      clock: systemClock,
      conditions,
      depthMax,
      nowMs: NOW_MS,
      readBudget: 1_000_000,
      contextJson: '',
      relationText: 'any',
    });
  const refs = ALL_REFS.flatMap((ref) => {
    const { entity, relation } = idsOf(reader, ref);
    return entity === 0 || relation <= 0 ? [] : [{ ...ref, entity, id: relation }];
  });
  const sets = refs.slice(0, 3).map((ref): ReferenceTarget => ({ kind: 'set', ref }));
  const users = ['u0', 'nobody'].map((userId): ReferenceTarget => ({ kind: 'user', userId }));
  return [...users, ...sets].flatMap((against) => {
    const target = targetOf(reader, against);
    return target === undefined ? [] : [{ reference, against, target, scopeOf, refs }];
  });
}

/** The model with an intersection in the place of each exclusion. */
function bansJoined({ modelJson }: World): string {
  return JSON.stringify(
    JSON.parse(
      modelJson,
      (key, part: { include?: unknown; exclude?: unknown; exclusion?: unknown }) =>
        key === 'exclusion'
          ? [part.include, part.exclude]
          : typeof part === 'object' && part.exclusion !== undefined
            ? { intersection: part.exclusion }
            : part,
    ),
  );
}

/** The solution, whether in one step or in many. */
function solved(
  scope: Scope,
  target: Target,
  { entity, id }: { readonly entity: number; readonly id: number },
  isExcluding: boolean,
  levelMax: number,
): Outcome {
  const steps = solveComponent(scope, target, entity, id, isExcluding, levelMax);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Thousands of comparisons a run: `expect` takes most of the time of a test. */
function same(actual: readonly unknown[], wanted: readonly unknown[], what: unknown): void {
  if (actual.every((value, i) => value === wanted[i])) return;
  throw new Error(`${JSON.stringify(what)}: ${actual.join()} should be ${wanted.join()}`);
}

describe(`values == reference, undecided ones and those of bans, too (SEED=${seed})`, () => {
  const anyWorld = fc.oneof(knots, worlds, knots);
  const withoutBans = anyWorld.map((world) => ({ ...world, modelJson: bansJoined(world) }));
  const bound = fc.integer({ min: 1, max: 6 });
  const params = (runs: number) => ({ numRuns: Math.ceil(runs * FUZZ_RUNS), seed });

  test('a userset and all that it depends on, solved at once', () => {
    const property = fc.property(anyWorld, (world) => {
      for (const { reference, against, target, scopeOf, refs } of casesOf(world)) {
        const values = reference.values(against);
        const scope = scopeOf();
        for (const ref of refs) {
          for (const isExcluding of [false, true]) {
            const { value, isDepthExceeded } = solved(scope, target, ref, isExcluding, DEPTH);
            const key = keyOf(ref, isExcluding);
            same([NAME_OF[value], isDepthExceeded], [values.get(key), false], [key, against]);
          }
        }
        same([scope.backstops], [0], against);
      }
    });
    fc.assert(property, params(60));
  });

  test('a userset step by step, with what earlier ones left', () => {
    const property = fc.property(anyWorld, (world) => {
      for (const { reference, against, target, scopeOf, refs } of casesOf(world)) {
        const values = reference.values(against);
        const scope = scopeOf();
        const run = new CheckRun(scope, target);
        for (const ref of refs) {
          run.start(ref.entity, ref.id);
          const state = run.run(Infinity);
          const { value, isDepthExceeded } = run.outcome;
          const key = keyOf(ref, false);
          same([state, NAME_OF[value]], ['done', values.get(key)], [key, against]);
          same([isDepthExceeded], [false], [key, against]);
        }
        same([scope.backstops & BACKSTOP_DEPTH], [0], against);
      }
    });
    fc.assert(property, params(80));
  });

  test('a solution within a bound decides what the bound allows, and tells when it hid something', () => {
    const property = fc.property(anyWorld, bound, (world, levelMax) => {
      for (const { reference, against, target, scopeOf, refs } of casesOf(world)) {
        const values = reference.values(against);
        const within = reference.valuesWithin(against, levelMax);
        for (const ref of refs) {
          const key = keyOf(ref, false);
          const what = [key, against, levelMax];
          const { value, height, isDepthExceeded } = solved(
            scopeOf(),
            target,
            ref,
            false,
            levelMax,
          );
          const [wanted = 'cut', sure = 'cut'] = [values.get(key), within.get(key)];
          const isSure = sure !== 'cut' && against.kind === 'user';
          if (isSure) same([NAME_OF[value]], [sure], what);
          if (value === UNDETERMINED) {
            // What a larger bound could decide must not pass for undecided.
            if (wanted !== 'cut') same([isDepthExceeded], [true], what);
          } else {
            same([value, height > 0, height <= levelMax], [VALUE_OF[wanted], true, true], what);
          }
        }
      }
    });
    fc.assert(property, params(50));
  });

  test('a grant without bans rests on just so many usersets as its solution says', () => {
    const property = fc.property(withoutBans, bound, (world, levelMax) => {
      for (const { reference, against, target, scopeOf, refs } of casesOf(world)) {
        const values = reference.values(against);
        const within = reference.valuesWithin(against, levelMax);
        for (const ref of refs) {
          const outcomeAt = (level: number): Outcome =>
            solved(scopeOf(), target, ref, false, level);
          const { value, height } = outcomeAt(levelMax);
          const key = keyOf(ref, false);
          const what = [key, against, levelMax];
          // The reference does not count a set that is looked for as a node of its own.
          const isWithin = within.get(key) === 'true';
          if (against.kind === 'user') same([value === TRUE], [isWithin], what);
          if (value !== TRUE) continue;
          same([values.get(key)], ['true'], what);
          const least = outcomeAt(height);
          same([least.value, least.height], [TRUE, height], what);
          if (height > 1) same([outcomeAt(height - 1).value], [UNDETERMINED], what);
        }
      }
    });
    fc.assert(property, params(50));
  });
});
