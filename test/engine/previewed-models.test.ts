import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { OverlayReader } from '../../src/engine/overlay/overlay-reader.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { weighTuples } from '../reference/reference-decision.ts';
import { keyOf, ReferenceEvaluator } from '../reference/reference-evaluator.ts';
import { ALL_REFS, CONTEXTS, NOW_MS, USERS, type World, worlds } from '../reference/worlds.ts';
import { byLength } from '../support/test-length.ts';
import { checkBoth, createIndex, finish } from './support.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(0.34, 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const READS = 1_000_000;
const OPTIONS = { depthMax: 256, membershipBytesMax: 1 << 20 };

type Answer = (question: {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject: { readonly kind: 'user'; readonly userId: string };
  readonly contextJson: string;
}) => boolean;

type Wanted = { readonly question: Parameters<Answer>[0]; readonly wanted: boolean };

/** All users on all usersets, in every context, as the reference decides them under a model. */
function wantedOf(world: World, modelJson: string): readonly Wanted[] {
  const all: Wanted[] = [];
  for (const contextJson of CONTEXTS) {
    const weighed = weighTuples(world.tuples, contextJson);
    const reference = new ReferenceEvaluator(parseModel(modelJson), weighed, ALL_REFS);
    for (const userId of USERS) {
      const values = reference.values({ kind: 'user', userId });
      for (const ref of ALL_REFS) {
        const question = { ...ref, subject: { kind: 'user' as const, userId }, contextJson };
        const wanted = values.get(keyOf(ref, false)) === 'true';
        all.push({ question, wanted });
      }
    }
  }
  return all;
}

function compare(decisions: readonly Wanted[], answer: Answer): void {
  for (const { question, wanted } of decisions) {
    if (answer(question) === wanted) continue;
    throw new Error(`${JSON.stringify(question)} should be ${wanted}`);
  }
}

describe(`a previewed model (SEED=${seed})`, () => {
  test('decides as the reference does, and the model in force before, between and after it', () => {
    fc.assert(
      fc.property(worlds, worlds, (world, { modelJson: previewed }) => {
        const index = createIndex();
        for (const tuple of world.tuples) index.insert(tuple);
        const { reader } = index;
        const inForce = new Evaluator(reader, parseModel(world.modelJson), OPTIONS, systemClock);
        const asItIs: Answer = (question) => checkBoth(inForce, reader, question, NOW_MS, READS);
        const under = () => inForce.under(parseModel(previewed), new OverlayReader(reader, []));
        const asItWouldBe =
          (evaluator = under()): Answer =>
          (question) =>
            finish(evaluator.startCheck(question, NOW_MS, READS));
        const wanted = wantedOf(world, world.modelJson);
        const wantedUnder = wantedOf(world, previewed);
        compare(wantedUnder, asItWouldBe());
        compare(wanted, asItIs);
        compare(wantedUnder, asItWouldBe());
        compare(wanted, asItIs);
      }),
      { numRuns: Math.ceil(12 * FUZZ_RUNS), seed },
    );
  });

  test('leaves nothing in the index: no name, no entity, no byte', () => {
    const reader = new TupleIndex();
    reader.applyChange('insert', {
      namespace: 'doc',
      objectId: 'a',
      relation: 'editor',
      subject: { kind: 'user', userId: 'u' },
    });
    const inForce = new Evaluator(reader, parseModel(''), OPTIONS, systemClock);
    const held = () => [reader.bytes, reader.nodeCount, reader.tupleCount, reader.partBytes()];
    const before = held();
    const relations = Object.fromEntries(
      Array.from({ length: 200 }, (_, i) => [
        `strange${i}`,
        { union: [{}, { computed: 'editor' }] },
      ]),
    );
    const modelJson = JSON.stringify({
      namespaces: { doc: { relations: { ...relations, editor: {} } } },
    });
    const evaluator = inForce.under(parseModel(modelJson), new OverlayReader(reader, []));
    const question = {
      namespace: 'doc',
      objectId: 'a',
      relation: 'strange7',
      subject: { kind: 'user', userId: 'u' },
      contextJson: '',
    } as const;
    expect(finish(evaluator.startCheck(question, NOW_MS, READS))).toBe(true);
    expect(reader.nameId('strange7')).toBe(-1);
    expect(held()).toEqual(before);
    expect(finish(inForce.startCheck(question, NOW_MS, READS))).toBe(false);
  });

  test('decides its conditions by its own declarations', () => {
    const model = (expression: string) =>
      parseModel(
        JSON.stringify({
          conditions: { ok: { parameters: { age: 'int' }, expression } },
          namespaces: { doc: { relations: { viewer: {} } } },
        }),
      );
    const index = createIndex();
    index.insert({
      namespace: 'doc',
      objectId: 'a',
      relation: 'viewer',
      subject: { kind: 'user', userId: 'u' },
      conditionName: 'ok',
    });
    const { reader } = index;
    const inForce = new Evaluator(reader, model('age >= 18'), OPTIONS, systemClock);
    const question = {
      namespace: 'doc',
      objectId: 'a',
      relation: 'viewer',
      subject: { kind: 'user', userId: 'u' },
      contextJson: '{"age":17}',
    } as const;
    const evaluator = inForce.under(model('age >= 16'), new OverlayReader(reader, []));
    const answers = [inForce, evaluator, inForce].map((one) =>
      finish(one.startCheck(question, NOW_MS, READS)),
    );
    expect(answers).toEqual([false, true, false]);
  });
});
