import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TupleIndex } from '../../src/cache/tuple-index.ts';
import { CHECK_ALLOWED, CHECK_GENERAL } from '../../src/engine/bound/evaluator-api.ts';
import { UNDETERMINED, TRUE } from '../../src/engine/bound/scope.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import type { GeneralEvaluator } from '../../src/engine/general-evaluator.ts';
import { ListObjectsRun } from '../../src/engine/general/list-objects-run.ts';
import { OverlayReader } from '../../src/engine/overlay/overlay-reader.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import {
  type RelationTuple,
  type Subject,
  type TupleChange,
  tupleIdentity,
} from '../../src/model/relation-tuple.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { decisionOf, memoizedValues, weighTuples } from '../reference/reference-decision.ts';
import { keyOf, ReferenceEvaluator } from '../reference/reference-evaluator.ts';
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
import { readerText } from '../support/reader-text.ts';
import { byLength } from '../support/test-length.ts';
import { createIndex, finish } from './support.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(0.12, 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const READS = 1_000_000;
const timeout = 60_000 * Math.max(1, FUZZ_RUNS);
const params = (runs: number) => ({ numRuns: Math.ceil(runs * FUZZ_RUNS), seed });

/** A world and what a request lays over it: some of its tuples away or carrying something else, others added. */
const cases = fc
  .record({
    world: fc.oneof(worlds, worlds, knots),
    removed: fc.array(fc.nat(), { maxLength: 8 }),
    replaced: fc.array(fc.tuple(fc.nat(), tupleArbitrary), { maxLength: 4 }),
    added: fc.array(tupleArbitrary, { maxLength: 12, size: 'max' }),
  })
  .map(({ world, removed, replaced, added }) => {
    const stored = (at: number): readonly RelationTuple[] => {
      const tuple = world.tuples[at % Math.max(1, world.tuples.length)];
      return tuple === undefined ? [] : [tuple];
    };
    const changes: TupleChange[] = [
      ...removed.flatMap(stored).map((tuple) => ({ op: 'delete' as const, tuple })),
      ...replaced.flatMap(([at, { expiresAtUs, conditionName, conditionParams }]) =>
        stored(at).map(({ namespace, objectId, relation, subject }) => {
          const payload = { expiresAtUs, conditionName, conditionParams };
          const tuple = { namespace, objectId, relation, subject, ...payload };
          return { op: 'insert' as const, tuple };
        }),
      ),
      ...added.map((tuple) => ({ op: 'insert' as const, tuple })),
    ];
    return { world, changes };
  });

function tuplesAfter({ tuples }: World, changes: readonly TupleChange[]): RelationTuple[] {
  const left = new Map(tuples.map((tuple) => [tupleIdentity(tuple), tuple]));
  for (const { op, tuple } of changes) {
    if (op === 'insert') left.set(tupleIdentity(tuple), tuple);
    else left.delete(tupleIdentity(tuple));
  }
  return [...left.values()];
}

function evaluatorsOf(world: World, changes: readonly TupleChange[], depthMax = 256) {
  const { reader, insert } = createIndex();
  for (const tuple of world.tuples) insert(tuple);
  const options = { depthMax, membershipBytesMax: 1 << 20 };
  const model = parseModel(world.modelJson);
  const evaluator = new Evaluator(reader, model, options, systemClock);
  const over = evaluator.over(new OverlayReader(reader, changes));
  return { index: reader as TupleIndex, model, evaluator, over };
}

const NAMES = { [TRUE]: 'true', [UNDETERMINED]: 'cut', 0: 'false' } as const;

function decide(
  evaluator: GeneralEvaluator,
  ref: (typeof ALL_REFS)[number],
  subject: Subject,
  contextJson: string,
  isExact = false,
): string {
  const query = { ...ref, subject, contextJson, isExact };
  return NAMES[finish(evaluator.startDecision(query, NOW_MS, READS))];
}

describe(`an overlay == the reference over what it amounts to (SEED=${seed})`, { timeout }, () => {
  test('users and usersets, three-valued, in every context', () => {
    let decisions = 0;
    const asked = fc.array(subjects, { maxLength: 4 });
    const property = fc.property(cases, asked, ({ world, changes }, list) => {
      const { model, over } = evaluatorsOf(world, changes);
      const left = tuplesAfter(world, changes);
      const sets = [...list, ...left.map((tuple) => tuple.subject).slice(0, 4)].filter(
        (subject) => subject.kind === 'set',
      );
      const users = USERS.map((userId): Subject => ({ kind: 'user', userId }));
      const isConditional = left.some((tuple) => tuple.conditionName !== undefined);
      for (const contextJson of isConditional ? CONTEXTS : ['']) {
        const weighed = weighTuples(left, contextJson);
        const reference = new ReferenceEvaluator(model, weighed, ALL_REFS);
        const valuesOf = memoizedValues((target) => reference.values(target));
        for (const subject of [...users, ...sets]) {
          for (const ref of ALL_REFS) {
            for (const isExact of subject.kind === 'set' ? [false, true] : [false]) {
              decisions++;
              const wanted = decisionOf(reference, ref, subject, valuesOf, isExact);
              const value = decide(over, ref, subject, contextJson, isExact);
              if (value === wanted) continue;
              const what = JSON.stringify({ ref, subject, contextJson, isExact });
              throw new Error(`${what} is ${value} and should be ${wanted}`);
            }
          }
        }
      }
    });
    fc.assert(property, params(25));
    expect(decisions).toBeGreaterThan(1_000);
  });

  test('lists of objects', () => {
    const property = fc.property(cases, ({ world, changes }) => {
      const { model, over } = evaluatorsOf(world, changes);
      const weighed = weighTuples(tuplesAfter(world, changes), '');
      const reference = new ReferenceEvaluator(model, weighed, ALL_REFS);
      const { reader } = over;
      for (const userId of USERS) {
        const values = reference.values({ kind: 'user', userId });
        const user = reader.userNodeOf(reader.entityId(EMPTY_NAME, userId));
        for (const namespace of NAMESPACES) {
          for (const relation of RELATIONS) {
            const scope = over.scope(relation, '', NOW_MS, READS);
            const [space, name] = [reader.nameId(namespace), reader.nameId(relation)];
            const wanted = ALL_REFS.filter(
              (ref) =>
                ref.namespace === namespace &&
                ref.relation === relation &&
                values.get(keyOf(ref, false)) === 'true',
            ).map((ref) => ref.objectId);
            expect(finish(new ListObjectsRun(scope, space, name, user))).toEqual(wanted);
          }
        }
      }
    });
    fc.assert(property, params(30));
  });

  test('plain Checks, the hot path and the index are what they were, before and after', () => {
    const property = fc.property(cases, ({ world, changes }) => {
      const { index, evaluator, over } = evaluatorsOf(world, changes);
      const users = USERS.map((userId): Subject => ({ kind: 'user', userId }));
      const plainAnswers = (): string =>
        users
          .flatMap((subject) =>
            ALL_REFS.map((ref) => {
              const user = index.entityId(
                EMPTY_NAME,
                subject.kind === 'user' ? subject.userId : '',
              );
              const namespace = index.nameId(ref.namespace);
              const entity = namespace > 0 ? index.entityId(namespace, ref.objectId) : 0;
              const relation = index.nameId(ref.relation);
              const hot = evaluator.checkUser(entity, relation, user, NOW_MS, READS);
              const query = { ...ref, subject, contextJson: '' };
              const general = finish(evaluator.startCheck(query, NOW_MS, READS));
              if (hot !== CHECK_GENERAL) expect(hot === CHECK_ALLOWED).toBe(general);
              return `${hot}${String(general)}`;
            }),
          )
          .join();
      // Until every cache is as warm as it gets: what is remembered may decide what was left to the general path before.
      let answers = plainAnswers();
      for (let before = ''; before !== answers;) {
        before = answers;
        answers = plainAnswers();
      }
      const stateOf = (): unknown => [
        evaluator.cacheBytes,
        index.bytes,
        index.revision,
        index.parts.dictionary.count,
        index.parts.names.top,
        readerText(index, ['', ...NAMESPACES], 8),
      ];
      const state = stateOf();
      for (const subject of users) {
        for (const ref of ALL_REFS) decide(over, ref, subject, '{"age":30}');
      }
      expect(stateOf()).toEqual(state);
      expect(plainAnswers()).toBe(answers);
      expect(stateOf()).toEqual(state);
    });
    fc.assert(property, params(30));
  });

  test('under a small depth bound no allow that the unbounded rules deny, and no lost sure one', () => {
    const depths = fc.integer({ min: 1, max: 6 });
    const property = fc.property(cases, depths, ({ world, changes }, depthMax) => {
      const { model, over } = evaluatorsOf(world, changes, depthMax);
      const weighed = weighTuples(tuplesAfter(world, changes), '');
      const reference = new ReferenceEvaluator(model, weighed, ALL_REFS);
      for (const userId of USERS) {
        const bounded = reference.valuesWithin({ kind: 'user', userId }, depthMax);
        const values = reference.values({ kind: 'user', userId });
        for (const ref of ALL_REFS) {
          const value = decide(over, ref, { kind: 'user', userId }, '');
          const [sure, final] = [bounded.get(keyOf(ref, false)), values.get(keyOf(ref, false))];
          const isWrong =
            (value === 'true' && final !== 'true') ||
            (value === 'false' && final !== 'false') ||
            (value === 'cut' && sure !== undefined && sure !== 'cut');
          if (isWrong) throw new Error(`${JSON.stringify(ref)} is ${value}: ${sure}, ${final}`);
        }
      }
    });
    fc.assert(property, params(30));
  });
});
