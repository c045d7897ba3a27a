import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple } from '../../src/model/relation-tuple.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf, ReferenceEvaluator, type WeighedTuple } from '../reference/reference-evaluator.ts';
import {
  ALL_REFS,
  knots,
  NAMESPACES,
  NOW_MS,
  RELATIONS,
  USERS,
  type World,
  worlds,
} from '../reference/worlds.ts';
import { byLength } from '../support/test-length.ts';
import { checkBoth, createIndex, createSimpleIndex, finish } from './support.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(0.1, 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const READS = 1_000_000;

type Inputs = { readonly min?: unknown; readonly age?: unknown; readonly ok?: unknown };
type Weight = 'true' | 'undecided' | 'false';

const CONDITIONS = {
  adult: { parameters: { min: 'int', age: 'int' }, expression: 'age >= min' },
  waived: {
    parameters: { min: 'int', age: 'int', ok: 'bool' },
    expression: 'ok || [age].exists(a, a >= min)',
  },
};
const PARAMS = ['', '{}', '{"min":18}', '{"age":30,"min":18}', '{"min":"x"}', '{"minimum":18}'];
const CONTEXTS = ['', '{}', '{"age":17}', '{"age":30,"min":40}', '{"age":"30"}', '{"ok":true}'];

/** The conditions above, decided again. */
function weightOf(name: string, paramsJson: string, contextJson: string): Weight {
  const params = JSON.parse(paramsJson || '{}') as Inputs;
  const isFit = Object.keys(params).every((key) => ['min', 'age', 'ok'].includes(key));
  if (contextJson === '' || !isFit || params.min === 'x') return 'undecided';
  const { min, age, ok } = { ...(JSON.parse(contextJson) as Inputs), ...params };
  if (name === 'waived' && ok === true) return 'true';
  // Neither of these lets the other side decide, but a side that is missing leaves it open.
  if (min === undefined || age === undefined || (name === 'waived' && ok === undefined)) {
    const isOver = min !== undefined && age !== undefined && Number(age) >= Number(min);
    return name === 'waived' && isOver ? 'true' : 'undecided';
  }
  return Number(age) >= Number(min) ? 'true' : 'false';
}

function weigh(tuples: readonly RelationTuple[], contextJson: string): WeighedTuple[] {
  return tuples.flatMap((tuple): WeighedTuple[] => {
    const { expiresAtUs, conditionName, conditionParams = '' } = tuple;
    if (expiresAtUs !== undefined && BigInt(NOW_MS) * 1000n >= expiresAtUs) return [];
    if (conditionName === undefined) return [{ tuple, weight: 'true' }];
    const weight = weightOf(conditionName, conditionParams, contextJson);
    return weight === 'false' ? [] : [{ tuple, weight }];
  });
}

/** A generated world whose conditions are those above; more of its tuples have one. */
const conditional: fc.Arbitrary<World> = fc
  .tuple(
    fc.oneof(worlds, knots),
    fc.array(
      fc.record({
        name: fc.constantFrom('', '', 'adult', 'waived'),
        params: fc.constantFrom(...PARAMS),
      }),
      { minLength: 40, maxLength: 40 },
    ),
  )
  .map(([{ modelJson, tuples }, payloads]) => ({
    modelJson: JSON.stringify({
      ...(JSON.parse(modelJson) as object),
      conditions: CONDITIONS,
    }),
    tuples: tuples.map((generated, index) => {
      const tuple = { ...generated, conditionName: undefined, conditionParams: undefined };
      const { name = '', params = '' } = payloads[index] ?? {};
      if (name === '') return tuple;
      return { ...tuple, conditionName: name, conditionParams: params || undefined };
    }),
  }));

function evaluatorOf(world: World) {
  const index = world.tuples.length % 2 === 0 ? createIndex() : createSimpleIndex();
  for (const tuple of world.tuples) index.insert(tuple);
  const options = { depthMax: 256, membershipBytesMax: 1 << 20 };
  const model = parseModel(world.modelJson);
  return { evaluator: new Evaluator(index.reader, model, options, systemClock), index, model };
}

describe(`conditions of the model: engine == reference (SEED=${seed})`, () => {
  test('checks, with every context, also when asked again', () => {
    fc.assert(
      fc.property(conditional, (world) => {
        const { evaluator, index, model } = evaluatorOf(world);
        for (const contextJson of CONTEXTS) {
          const reference = new ReferenceEvaluator(
            model,
            weigh(world.tuples, contextJson),
            ALL_REFS,
          );
          for (const userId of USERS) {
            const values = reference.values({ kind: 'user', userId });
            for (const ref of ALL_REFS) {
              const input = { ...ref, subject: { kind: 'user', userId } as const, contextJson };
              const wanted = values.get(keyOf(ref, false)) === 'true';
              const allowed = checkBoth(evaluator, index.reader, input, NOW_MS, READS);
              if (allowed !== wanted)
                throw new Error(`${JSON.stringify(input)} should be ${wanted}`);
            }
          }
        }
      }),
      { seed, numRuns: Math.ceil(60 * FUZZ_RUNS) },
    );
  });

  test('lists and expansions leave out what has a condition', () => {
    fc.assert(
      fc.property(conditional, (world) => {
        const { evaluator, model } = evaluatorOf(world);
        const reference = new ReferenceEvaluator(model, weigh(world.tuples, ''), ALL_REFS);
        for (const ref of ALL_REFS) {
          expect(finish(evaluator.startExpand(ref, NOW_MS, READS))).toEqual(
            reference.expand(ref, 256),
          );
        }
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
              const listed = finish(evaluator.startListObjects(query, NOW_MS, READS));
              expect(listed, JSON.stringify(query)).toEqual(wanted);
            }
          }
        }
      }),
      { seed, numRuns: Math.ceil(30 * FUZZ_RUNS) },
    );
  });
});

describe('the read budget', () => {
  const modelJson = JSON.stringify({
    conditions: {
      listed: { parameters: { l: 'list<string>', s: 'string' }, expression: 's in l' },
      dear: {
        parameters: { l: 'list<string>' },
        expression: 'l.all(i, l.all(j, l.all(k, k != "")))',
      },
      free: { parameters: { ok: 'bool' }, expression: 'ok' },
    },
    namespaces: { doc: { relations: { viewer: {} } } },
  });
  const groups = (count: number, conditionName: string, paramsOf: (i: number) => string) =>
    Array.from({ length: count }, (_, i): RelationTuple => ({
      namespace: 'doc',
      objectId: 'd',
      relation: 'viewer',
      subject: { kind: 'set', namespace: 'group', objectId: `g${i}`, relation: 'member' },
      conditionName,
      conditionParams: paramsOf(i),
    }));
  const run = (tuples: readonly RelationTuple[], context: object, reads: number, off = false) => {
    const index = createIndex();
    for (const tuple of tuples) index.insert(tuple);
    const options = {
      depthMax: 256,
      membershipBytesMax: 1 << 20,
      cachesOff: off ? (['conditions'] as const) : [],
    };
    const evaluator = new Evaluator(index.reader, parseModel(modelJson), options, systemClock);
    const input = {
      namespace: 'doc',
      objectId: 'd',
      relation: 'viewer',
      subject: { kind: 'user', userId: 'u' } as const,
      contextJson: JSON.stringify(context),
    };
    const task = evaluator.startCheck(input, NOW_MS, reads);
    return { allowed: finish(task), reads: task.reads ?? 0 };
  };
  const texts = Array.from({ length: 100 }, (_, i) => `t${i}`);
  const params = (i: number): string => JSON.stringify({ l: [...texts, `own${i}`] });

  test('pays for conditions by what they do, and runs out with them', () => {
    const hundred = run(groups(100, 'listed', params), { s: 'x' }, READS);
    const cheap = run(
      groups(100, 'free', () => '{}'),
      { ok: false },
      READS,
    );
    expect(hundred.reads).toBeGreaterThan(cheap.reads + 500);
    expect(() => run(groups(100, 'listed', params), { s: 'x' }, hundred.reads - 1)).toThrow(
      'exceeded the read budget',
    );
    expect(run(groups(100, 'listed', params), { s: 'x' }, hundred.reads).allowed).toBe(false);
  });

  test('pays once for the same condition with the same parameters, whatever is remembered', () => {
    const same = (count: number, off: boolean): number =>
      run(
        groups(count, 'listed', () => params(0)),
        { s: 'x' },
        READS,
        off,
      ).reads;
    // Lists of up to 63 entries cost the same.
    expect(same(50, false)).toBe(same(2, false));
    expect(same(50, true)).toBe(same(50, false));
    const different = groups(50, 'listed', params);
    expect(run(different, { s: 'x' }, READS, true)).toEqual(run(different, { s: 'x' }, READS));
  });

  test('one that goes beyond its own bound is undecided, one beyond the budget an error', () => {
    const l = JSON.stringify({ l: texts });
    const dear = groups(1, 'dear', () => l);
    const own: RelationTuple[] = [
      { ...(dear[0] as RelationTuple), subject: { kind: 'user', userId: 'u' } },
    ];
    expect(run(own, {}, READS).allowed).toBe(false);
    expect(run(own, {}, READS).reads).toBeGreaterThan(1_000);
    expect(() => run(own, {}, 1_000)).toThrow('exceeded the read budget');
    const plain = run(
      [{ ...(own[0] as RelationTuple), conditionParams: '{"l":["a"]}' }],
      {},
      READS,
    );
    expect(plain.allowed).toBe(true);
  });
});
