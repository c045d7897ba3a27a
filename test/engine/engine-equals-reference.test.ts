import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple } from '../../src/model/relation-tuple.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import {
  keyOf,
  ReferenceEvaluator,
  type ReferenceTarget,
  type ReferenceValue,
  type WeighedTuple,
} from '../reference/reference-evaluator.ts';
import {
  ALL_REFS,
  CONTEXTS,
  knots,
  NAMESPACES,
  NOW_MS,
  RELATIONS,
  subjects,
  tuples as tupleArbitrary,
  USERS,
  type World,
  worlds,
} from '../reference/worlds.ts';
import { byLength } from '../support/test-length.ts';
import {
  checkBoth,
  createIndex,
  createSimpleIndex,
  exactAnswers,
  finish,
  type WritableReader,
} from './support.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(0.06, 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const READS = 1_000_000;
let evaluations = 0;

function params(runs: number): { numRuns: number; seed: number } {
  return { numRuns: Math.ceil(runs * FUZZ_RUNS), seed };
}

/** The contract's five conditions, as far as the generated worlds use them, decided again. */
function weigh(tuples: readonly RelationTuple[], contextJson: string): WeighedTuple[] {
  const context = (contextJson === '' ? {} : JSON.parse(contextJson)) as { age?: unknown };
  return tuples.flatMap((tuple): WeighedTuple[] => {
    if (tuple.expiresAtUs !== undefined && BigInt(NOW_MS) * 1000n >= tuple.expiresAtUs) return [];
    if (tuple.conditionName === undefined) return [{ tuple, weight: 'true' }];
    const isDecided =
      tuple.conditionName === 'age_at_least' &&
      tuple.conditionParams === '{"min_age":18}' &&
      typeof context.age === 'number';
    if (!isDecided) return [{ tuple, weight: 'undecided' }];
    return (context.age as number) >= 18 ? [{ tuple, weight: 'true' }] : [];
  });
}

function evaluatorOf(world: World, depthMax: number): [Evaluator, WritableReader] {
  // Half of the worlds on the index that ships, half on plain maps: the engine knows only the port.
  const index = world.tuples.length % 2 === 0 ? createIndex() : createSimpleIndex();
  for (const tuple of world.tuples) index.insert(tuple);
  const options = { depthMax, membershipBytesMax: 1 << 20 };
  return [new Evaluator(index.reader, parseModel(world.modelJson), options, systemClock), index];
}

function memoized(
  valuesOf: (target: ReferenceTarget) => Map<string, ReferenceValue>,
): (target: ReferenceTarget) => Map<string, ReferenceValue> {
  const known = new Map<string, Map<string, ReferenceValue>>();
  return (target) => {
    const key = JSON.stringify(target);
    let values = known.get(key);
    if (values === undefined) known.set(key, (values = valuesOf(target)));
    return values;
  };
}

function contextsFor(world: World): readonly string[] {
  return world.tuples.some((tuple) => tuple.conditionName !== undefined) ? CONTEXTS : [''];
}

/** All users, and some exact usersets, on all usersets, in every context. */
function compareChecks(world: World, evaluator: Evaluator, { reader }: WritableReader): void {
  const model = parseModel(world.modelJson);
  for (const contextJson of contextsFor(world)) {
    const reference = new ReferenceEvaluator(model, weigh(world.tuples, contextJson), ALL_REFS);
    for (const userId of USERS) {
      const values = reference.values({ kind: 'user', userId });
      for (const ref of ALL_REFS) {
        const input = { ...ref, subject: { kind: 'user', userId } as const, contextJson };
        const wanted = values.get(keyOf(ref, false)) === 'true';
        evaluations++;
        if (checkBoth(evaluator, reader, input, NOW_MS, READS) !== wanted) {
          throw new Error(`${JSON.stringify(input)} should be ${wanted}`);
        }
      }
    }
    for (const set of world.tuples.slice(-3).map(({ subject }) => subject)) {
      if (set.kind !== 'set') continue;
      const { kind: _, ...ref } = set;
      const values = reference.values({ kind: 'set', ref, isExact: true });
      for (const object of ALL_REFS) {
        const input = { ...object, subject: set, contextJson, isExact: true };
        const isSame = keyOf(ref, false) === keyOf(object, false);
        const wanted = isSame || values.get(keyOf(object, false)) === 'true';
        evaluations++;
        if (checkBoth(evaluator, reader, input, NOW_MS, READS) !== wanted) {
          throw new Error(`${JSON.stringify(input)} should be ${wanted}`);
        }
      }
    }
  }
}

function compareLists(world: World, evaluator: Evaluator): void {
  const reference = new ReferenceEvaluator(
    parseModel(world.modelJson),
    weigh(world.tuples, ''),
    ALL_REFS,
  );
  for (const userId of USERS) {
    const values = reference.values({ kind: 'user', userId });
    for (const namespace of NAMESPACES) {
      for (const relation of RELATIONS) {
        const wanted = ALL_REFS.filter(
          (ref) =>
            ref.namespace === namespace &&
            ref.relation === relation &&
            values.get(keyOf(ref, false)) === 'true',
        ).map((ref) => ref.objectId);
        const query = { namespace, relation, userId };
        evaluations++;
        expect(
          finish(evaluator.startListObjects(query, NOW_MS, READS)),
          JSON.stringify(query),
        ).toEqual(wanted);
      }
    }
  }
}

describe(`engine == reference (SEED=${seed})`, () => {
  test('checks of users, with every context', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        compareChecks(world, ...evaluatorOf(world, 256));
      }),
      params(40),
    );
  });

  test('checks in worlds full of cycles', () => {
    fc.assert(
      fc.property(knots, (world) => {
        compareChecks(world, ...evaluatorOf(world, 256));
      }),
      params(150),
    );
  });

  test('checks of subject sets, members too and exactly', () => {
    fc.assert(
      fc.property(fc.oneof(worlds, knots), fc.array(subjects, { maxLength: 6 }), (world, list) => {
        const [evaluator, { reader }] = evaluatorOf(world, 256);
        const model = parseModel(world.modelJson);
        const stored = world.tuples.map((tuple) => tuple.subject);
        for (const contextJson of contextsFor(world)) {
          const reference = new ReferenceEvaluator(
            model,
            weigh(world.tuples, contextJson),
            ALL_REFS,
          );
          const valuesOf = memoized((target) => reference.values(target));
          for (const subject of [...list, ...stored.slice(0, 6)]) {
            if (subject.kind !== 'set') continue;
            for (const ref of ALL_REFS) {
              for (const isExact of [false, true]) {
                const wanted = reference.check(ref, subject, valuesOf, isExact);
                const input = { ...ref, subject, contextJson, isExact };
                evaluations++;
                if (checkBoth(evaluator, reader, input, NOW_MS, READS) !== wanted) {
                  throw new Error(`${JSON.stringify(input)} should be ${wanted}`);
                }
              }
            }
          }
        }
      }),
      params(40),
    );
  });

  test('lists of objects', () => {
    fc.assert(
      fc.property(fc.oneof(worlds, knots), (world) => {
        compareLists(world, evaluatorOf(world, 256)[0]);
      }),
      params(60),
    );
  });

  test('expansions, also at a small depth bound', () => {
    fc.assert(
      fc.property(fc.oneof(worlds, knots), fc.constantFrom(2, 3, 4), (world, depthMax) => {
        const [evaluator] = evaluatorOf(world, depthMax);
        const model = parseModel(world.modelJson);
        const reference = new ReferenceEvaluator(model, weigh(world.tuples, ''), ALL_REFS);
        for (const ref of ALL_REFS) {
          const wanted = reference.expand(ref, depthMax);
          evaluations++;
          expect(finish(evaluator.startExpand(ref, NOW_MS, READS))).toEqual(wanted);
        }
      }),
      params(40),
    );
  });

  test('small depth bounds: exact without exclusions, between the two semantics with them', () => {
    fc.assert(
      fc.property(fc.oneof(worlds, knots), fc.integer({ min: 1, max: 8 }), (world, depthMax) => {
        const [evaluator, { reader }] = evaluatorOf(world, depthMax);
        const model = parseModel(world.modelJson);
        const reference = new ReferenceEvaluator(model, weigh(world.tuples, ''), ALL_REFS);
        const isExact = !world.modelJson.includes('exclusion');
        for (const userId of USERS) {
          const bounded = reference.valuesWithin({ kind: 'user', userId }, depthMax);
          const unbounded = reference.values({ kind: 'user', userId });
          const listed = new Map<string, readonly string[]>();
          for (const ref of ALL_REFS) {
            const input = { ...ref, subject: { kind: 'user', userId } as const, contextJson: '' };
            const allowed = checkBoth(evaluator, reader, input, NOW_MS, READS);
            const isSure = bounded.get(keyOf(ref, false)) === 'true';
            const isPossible = unbounded.get(keyOf(ref, false)) === 'true';
            evaluations++;
            if (isExact ? allowed !== isSure : (allowed && !isPossible) || (isSure && !allowed)) {
              throw new Error(`${JSON.stringify(input)}: ${allowed}, ${isSure}, ${isPossible}`);
            }
            const listKey = `${ref.namespace}#${ref.relation}`;
            let list = listed.get(listKey);
            if (list === undefined) {
              const query = { ...ref, userId };
              list = finish(evaluator.startListObjects(query, NOW_MS, READS));
              listed.set(listKey, list);
            }
            if (list.includes(ref.objectId) !== allowed) {
              throw new Error(`list differs: ${JSON.stringify(input)}: check ${allowed}`);
            }
          }
        }
      }),
      params(60),
    );
  });

  test('after random changes, with the same evaluator', () => {
    fc.assert(
      fc.property(
        worlds,
        fc.array(tupleArbitrary, { minLength: 1, maxLength: 8 }),
        (world, changes) => {
          const [evaluator, index] = evaluatorOf(world, 256);
          let tuples = world.tuples;
          for (const change of changes) {
            const same = (tuple: RelationTuple): boolean =>
              JSON.stringify([tuple.namespace, tuple.objectId, tuple.relation, tuple.subject]) ===
              JSON.stringify([change.namespace, change.objectId, change.relation, change.subject]);
            const isStored = tuples.some(same);
            tuples = tuples.filter((tuple) => !same(tuple));
            if (isStored && change.expiresAtUs === undefined) {
              index.remove(change);
            } else {
              index.insert(change);
              tuples = [...tuples, change];
            }
            // Caches meet one change, or several at once.
            if (changes.indexOf(change) % 3 === 2) continue;
            const changed = { ...world, tuples };
            compareChecks(changed, evaluator, index);
            compareLists(changed, evaluator);
          }
        },
      ),
      params(8),
    );
  });

  test('enough was compared', () => {
    expect(exactAnswers.hot).toBeGreaterThan(exactAnswers.general / 4);
    if (FUZZ_RUNS > 1) process.stdout.write(`${evaluations} evaluations compared\n`);
    expect(evaluations).toBeGreaterThan(10_000 * Math.min(1, FUZZ_RUNS));
  });
});
