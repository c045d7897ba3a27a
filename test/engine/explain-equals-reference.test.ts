import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TRUE } from '../../src/engine/bound/scope.ts';
import type { Explanation } from '../../src/model/explanation.ts';
import { type NamespaceModel, parseModel } from '../../src/model/namespace/namespace-model.ts';
import {
  type CheckQuery,
  type RelationTuple,
  type Subject,
  tupleIdentity,
} from '../../src/model/relation-tuple.ts';
import { AppError } from '../../src/shared/app-error.ts';
import {
  depthOf,
  expiryOf,
  ReferenceDerivations,
  sizeOf,
} from '../reference/reference-derivations.ts';
import {
  excludeKey,
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
  NOW_MS,
  OBJECTS,
  NAMESPACES,
  RELATIONS,
  subjects,
  tuples as tupleArbitrary,
  USERS,
  type World,
  worlds,
} from '../reference/worlds.ts';
import { byLength } from '../support/test-length.ts';
import { explainedWorld, type ExplainedWorld } from './explain-support.ts';
import { finish } from './support.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(0.12, 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const counts = { allows: 0, denies: 0, remedies: 0, excluded: 0, without: 0, truncated: 0 };

function params(runs: number): { numRuns: number; seed: number } {
  return { numRuns: Math.ceil(runs * FUZZ_RUNS), seed };
}

/** What each tuple is worth at a time; the conditions of the generated worlds decided again. */
function weigh(
  tuples: readonly RelationTuple[],
  contextJson: string,
  nowMs = NOW_MS,
): WeighedTuple[] {
  const context = (contextJson === '' ? {} : JSON.parse(contextJson)) as { age?: unknown };
  return tuples.flatMap((tuple): WeighedTuple[] => {
    if (tuple.expiresAtUs !== undefined && nowMs * 1000 >= Number(tuple.expiresAtUs)) return [];
    if (tuple.conditionName === undefined) return [{ tuple, weight: 'true' }];
    const isDecided =
      tuple.conditionName === 'age_at_least' &&
      tuple.conditionParams === '{"min_age":18}' &&
      typeof context.age === 'number';
    if (!isDecided) return [{ tuple, weight: 'undecided' }];
    return (context.age as number) >= 18 ? [{ tuple, weight: 'true' }] : [];
  });
}

/** Longer-lived and shorter-lived tuples, so that derivations of one size hold for different times. */
const anyExpiry = fc.constantFrom(undefined, undefined, 1, 5_000, 9_000_000);
const agedWorlds: fc.Arbitrary<World> = fc
  .tuple(fc.oneof(worlds, knots), fc.array(anyExpiry, { minLength: 40, maxLength: 40 }))
  .map(([world, expiries]) => ({
    ...world,
    tuples: world.tuples.map((tuple, i): RelationTuple => {
      const afterMs = expiries[i];
      if (afterMs === undefined || tuple.expiresAtUs !== undefined) return tuple;
      return { ...tuple, expiresAtUs: BigInt(NOW_MS + afterMs) * 1000n };
    }),
  }));

type Question = {
  readonly ref: number;
  readonly subject: Subject;
  readonly context: number;
  readonly isExact: boolean;
};
const asked: fc.Arbitrary<Question> = fc.record({
  ref: fc.nat(ALL_REFS.length - 1),
  subject: fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('user' as const),
        userId: fc.constantFrom(...USERS),
      }),
    },
    { weight: 2, arbitrary: subjects.filter((subject) => subject.kind === 'set') },
  ),
  context: fc.nat(CONTEXTS.length - 1),
  isExact: fc.boolean(),
});
const questions = fc.array(asked, { minLength: 4, maxLength: 16 });

function queryOf({ ref, subject, context, isExact }: Question): CheckQuery {
  const contextJson = CONTEXTS[context] as string;
  return { ...(ALL_REFS[ref] as (typeof ALL_REFS)[number]), subject, contextJson, isExact };
}

function targetOf({ subject, isExact }: CheckQuery): ReferenceTarget {
  if (subject.kind === 'user') return { kind: 'user', userId: subject.userId };
  if (subject.kind !== 'set') throw new Error('the wildcard is not asked about');
  const { namespace, objectId, relation } = subject;
  const ref = { namespace, objectId, relation };
  return isExact === true ? { kind: 'set', ref, isExact } : { kind: 'set', ref };
}

function fail(what: string, query: CheckQuery, explanation: Explanation): never {
  const text = JSON.stringify(explanation, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  throw new Error(`${what}: ${JSON.stringify(query)}: ${text}`);
}

const models = new Map<string, NamespaceModel>();
/** One object for one text: the reference names parts of rewrites by the object that they are. */
function modelOf({ modelJson }: World): NamespaceModel {
  let model = models.get(modelJson);
  if (model === undefined) {
    if (models.size > 100) models.clear();
    models.set(modelJson, (model = parseModel(modelJson)));
  }
  return model;
}

/** Of the world looked at last. */
const known = new Map<string, unknown>();
let knownWorld: World | undefined;
function once<T>(world: World, key: string, make: () => T): T {
  if (knownWorld !== world) known.clear();
  knownWorld = world;
  if (!known.has(key)) known.set(key, make());
  return known.get(key) as T;
}

function referenceOf(world: World, contextJson: string, nowMs = NOW_MS): ReferenceEvaluator {
  const make = (): ReferenceEvaluator =>
    new ReferenceEvaluator(modelOf(world), weigh(world.tuples, contextJson, nowMs), ALL_REFS);
  return once(world, `reference ${nowMs} ${contextJson}`, make);
}

function valuesOf(
  world: World,
  contextJson: string,
  target: ReferenceTarget,
  nowMs = NOW_MS,
): Map<string, ReferenceValue> {
  const key = `values ${nowMs} ${contextJson} ${JSON.stringify(target)}`;
  return once(world, key, () => referenceOf(world, contextJson, nowMs).values(target));
}

function derivationsOf(
  world: World,
  contextJson: string,
  target: ReferenceTarget,
  nowMs = NOW_MS,
  isExcluding = false,
): ReferenceDerivations {
  const values = valuesOf(world, contextJson, target, nowMs);
  const tuples = weigh(world.tuples, contextJson, nowMs);
  return new ReferenceDerivations(modelOf(world), tuples, values, target, isExcluding);
}

/** The tree is valid, none is smaller, and none of its size holds longer; it holds as long as is said. */
function checkAllow(world: World, query: CheckQuery, explanation: Explanation): void {
  const { derivation, witness, contextJson } = { ...explanation, ...query };
  if (derivation === undefined) fail('an allow without derivation', query, explanation);
  if (explanation.truncated) fail('an allow that is truncated', query, explanation);
  const target: ReferenceTarget =
    witness === undefined ? targetOf(query) : { kind: 'user', userId: witness.userId };
  const trees = [
    { ref: query as { namespace: string; objectId: string; relation: string }, tree: derivation },
  ];
  if (witness !== undefined) {
    if (query.subject.kind !== 'set' || witness.membership === undefined) {
      fail('a member without a membership', query, explanation);
    }
    trees.push({ ref: query.subject, tree: witness.membership });
  }
  const rules = derivationsOf(world, contextJson, target);
  const shortest = rules.shortest(ALL_REFS);
  const heldMs =
    explanation.holdsUntilUs === undefined ? Infinity : Number(explanation.holdsUntilUs) / 1000;
  let bestMs = Infinity;
  for (const { ref, tree } of trees) {
    const problem = rules.problemOf(ref, tree);
    if (problem !== '') fail(problem, query, explanation);
    const least = shortest.get(keyOf(ref, false));
    // The object itself is a subject, but no userset of the small universe.
    if (least === undefined) continue;
    if (sizeOf(tree) !== least.size) fail(`${least.size} nodes suffice`, query, explanation);
    if (expiryOf(tree) !== least.untilMs)
      fail(`one holds until ${least.untilMs}`, query, explanation);
    bestMs = Math.min(bestMs, least.untilMs);
  }
  if (heldMs > bestMs) fail('holds longer than its tuples', query, explanation);
  for (const instantMs of instantsOf(world)) {
    if (instantMs > heldMs || instantMs > bestMs || (instantMs === bestMs && heldMs === bestMs))
      continue;
    const then = derivationsOf(world, contextJson, target, instantMs);
    const isHeld = trees.every(({ ref, tree }) => then.problemOf(ref, tree) === '');
    if (isHeld !== instantMs < heldMs) fail(`at ${instantMs} it is ${isHeld}`, query, explanation);
  }
}

function instantsOf({ tuples }: World): readonly number[] {
  const all = tuples.map(({ expiresAtUs }) => Number(expiresAtUs ?? 0n) / 1000);
  return [...new Set(all)].filter((ms) => ms > NOW_MS);
}

const UNDECIDED = ['conditionUndecided', 'depth', 'cycle'];

function checkObstacles(world: World, query: CheckQuery, explanation: Explanation): void {
  const { obstacles } = explanation;
  if (obstacles.length === 0) fail('a deny without obstacle', query, explanation);
  const isUndecided = obstacles.some(({ kind }) => UNDECIDED.includes(kind));
  if (explanation.undecided && !isUndecided) fail('nothing undecided is told', query, explanation);
  for (const obstacle of obstacles) {
    const { kind, tuple, derivation } = obstacle;
    if (obstacle.message === '') fail('an obstacle without message', query, explanation);
    const stored = world.tuples.find((one) => tuple && tupleIdentity(one) === tupleIdentity(tuple));
    if (tuple !== undefined && stored === undefined) fail('an unknown tuple', query, explanation);
    const isExpired =
      stored?.expiresAtUs !== undefined && Number(stored.expiresAtUs) <= NOW_MS * 1000;
    if (kind === 'expired' && !isExpired) fail('has not expired', query, explanation);
    if (kind === 'conditionFalse' && (isExpired || stored?.conditionName === undefined)) {
      fail('has no condition', query, explanation);
    }
    if (kind !== 'excluded') continue;
    counts.excluded++;
    if (derivation === undefined) fail('excluded for no reason', query, explanation);
    // The tree is of an operand, so it begins at one of the exclusions of the userset's rewrite.
    const rules = derivationsOf(world, query.contextJson, targetOf(query), NOW_MS, true);
    const rewrite = modelOf(world).namespaces.get(obstacle.namespace)?.get(obstacle.relation);
    const parts: string[] = [];
    const visit = (part: typeof rewrite): void => {
      if (part?.op === 'union' || part?.op === 'intersection') part.children.forEach(visit);
      if (part?.op !== 'exclusion') return;
      const key = excludeKey(keyOf(obstacle, false), part);
      parts.push(rules.problemOf(obstacle, derivation, part.exclude, key));
      visit(part.include);
    };
    visit(rewrite);
    if (!parts.includes('')) fail(parts.join('; '), query, explanation);
  }
}

/** The world with a tuple more. */
function withTuple(world: World, tuple: RelationTuple): World {
  const identity = tupleIdentity(tuple);
  const others = world.tuples.filter((one) => tupleIdentity(one) !== identity);
  return { ...world, tuples: [...others, tuple] };
}

function isAllowedBy(world: World, query: CheckQuery): boolean {
  const { contextJson, subject, isExact } = query;
  const reference = referenceOf(world, contextJson);
  const values = (target: ReferenceTarget) => valuesOf(world, contextJson, target);
  return reference.check(query, subject, values, isExact);
}

/** Each tries every tuple of the small universe, some 2,600. */
let bruteSearchesLeft = 0;

/** Check by the reference with a tuple more, beside what is remembered of the world itself. */
function isMendedBy(world: World, tuple: RelationTuple, query: CheckQuery): boolean {
  const { tuples } = withTuple(world, tuple);
  const weighed = weigh(tuples, query.contextJson);
  // Tuples name objects as parents that have none themselves: a remedy may be the first.
  const { namespace, objectId } = tuple;
  const added = RELATIONS.map((relation) => ({ namespace, objectId, relation }));
  const reference = new ReferenceEvaluator(modelOf(world), weighed, [...ALL_REFS, ...added]);
  const values = (target: ReferenceTarget) => reference.values(target);
  return reference.check(query, query.subject, values, query.isExact);
}

const ANY_SUBJECT: readonly Subject[] = [
  ...USERS.map((userId): Subject => ({ kind: 'user', userId })),
  { kind: 'wildcard' },
  ...ALL_REFS.map((ref): Subject => ({ kind: 'set', ...ref })),
  ...NAMESPACES.flatMap((namespace) =>
    OBJECTS.map((objectId): Subject => ({ kind: 'set', namespace, objectId, relation: '' })),
  ),
];

function checkRemedies(
  world: World,
  explained: ExplainedWorld,
  query: CheckQuery,
  explanation: Explanation,
): void {
  for (const remedy of explanation.remedies) {
    counts.remedies++;
    if (!isMendedBy(world, remedy, query)) {
      fail(`${tupleIdentity(remedy)} does not mend it`, query, explanation);
    }
  }
  if (explanation.remedies.length > 0) return;
  if (explanation.truncated) {
    counts.truncated++;
    return;
  }
  if (bruteSearchesLeft-- <= 0) return;
  counts.without++;
  for (const ref of ALL_REFS) {
    for (const subject of ANY_SUBJECT) {
      const tuple = { ...ref, subject };
      if (!explained.checkWith(tuple, query)) continue;
      if (!isMendedBy(world, tuple, query)) continue;
      fail(`${tupleIdentity(tuple)} would mend it`, query, explanation);
    }
  }
}

/** Some questions that are allowed, of which random ones are few: of users, and of sets that tuples name. */
function allowedQueries(world: World, contextJson: string, from: number): CheckQuery[] {
  const sets = world.tuples.map(({ subject }) => subject).filter(({ kind }) => kind === 'set');
  const ofUsers = USERS.map((userId): Subject => ({ kind: 'user', userId }));
  return [...ofUsers, ...sets.slice(0, 6)].flatMap((subject, i) => {
    const isExact = i % 2 === 0;
    const allowed = ALL_REFS.map((ref): CheckQuery => ({
      ...ref,
      subject,
      contextJson,
      isExact,
    })).filter((query) => isAllowedBy(world, query));
    return allowed.length === 0 ? [] : [allowed[(from + i) % allowed.length] as CheckQuery];
  });
}

function checkExplanations(world: World, list: readonly Question[]): void {
  const explained = explainedWorld(world);
  bruteSearchesLeft = 2;
  const [first] = list;
  const context = CONTEXTS[first?.context ?? 0] as string;
  const allowedOnes = allowedQueries(world, context, first?.ref ?? 0);
  for (const query of [...list.map(queryOf), ...allowedOnes]) {
    const explanation = explained.explain(query);
    const allowed = isAllowedBy(world, query);
    if (explanation.allowed !== allowed) fail(`should be ${allowed}`, query, explanation);
    if (query.subject.kind === 'user') {
      const values = valuesOf(world, query.contextJson, targetOf(query));
      const isCut = values.get(keyOf(query, false)) === 'cut';
      if (explanation.undecided !== isCut) fail(`undecided: ${isCut}`, query, explanation);
    }
    const decision = explained.ground.evaluator.startDecision(query, NOW_MS, 10_000);
    const isUndecided = finish(decision) !== TRUE && decision.result() === 2;
    if (explanation.undecided !== isUndecided) fail('is not what Check says', query, explanation);
    if (allowed) {
      counts.allows++;
      checkAllow(world, query, explanation);
    } else {
      counts.denies++;
      checkObstacles(world, query, explanation);
      checkRemedies(world, explained, query, explanation);
    }
  }
}

describe(`explanations == reference (SEED=${seed})`, () => {
  test('of any world: the answer, the shortest derivation, obstacles and remedies', () => {
    fc.assert(fc.property(agedWorlds, questions, checkExplanations), params(16));
  });

  test('of worlds full of cycles', () => {
    fc.assert(fc.property(knots, questions, checkExplanations), params(24));
  });

  test('at small depth bounds the answer is that of Check, and a derivation keeps to the bound', () => {
    const bound = fc.integer({ min: 1, max: 6 });
    const property = fc.property(
      fc.oneof(worlds, knots),
      questions,
      bound,
      (world, list, depthMax) => {
        const explained = explainedWorld(world, { depthMax });
        for (const question of list) {
          const query = queryOf(question);
          const explanation = explained.explain(query);
          const decision = explained.ground.evaluator.startDecision(query, NOW_MS, 10_000);
          const value = finish(decision);
          const same =
            explanation.allowed === (value === TRUE) && explanation.undecided === (value === 2);
          if (!same) fail(`should be ${value}`, query, explanation);
          if (!explanation.allowed) {
            checkObstacles(world, query, explanation);
            for (const remedy of explanation.remedies) {
              if (!explained.checkWith(remedy, query)) fail('mends nothing', query, explanation);
            }
            continue;
          }
          const { derivation, witness } = explanation;
          if (derivation === undefined) fail('an allow without derivation', query, explanation);
          if (depthOf(derivation) > depthMax) fail('is too deep', query, explanation);
          const target: ReferenceTarget =
            witness === undefined ? targetOf(query) : { kind: 'user', userId: witness.userId };
          const rules = derivationsOf(world, query.contextJson, target);
          const problem = rules.problemOf(query, derivation);
          if (problem !== '') fail(problem, query, explanation);
        }
      },
    );
    fc.assert(property, params(16));
  });

  test('within a small read budget it fails as Check does, or says what it left out', () => {
    const budget = fc.integer({ min: 1, max: 40 });
    const property = fc.property(
      fc.oneof(worlds, knots),
      questions,
      budget,
      (world, list, reads) => {
        const explained = explainedWorld(world, { reads });
        for (const question of list) {
          const query = queryOf(question);
          const ofCheck = attempt(() =>
            finish(explained.ground.evaluator.startDecision(query, NOW_MS, reads)),
          );
          const explanation = attempt(() => explained.explain(query));
          if (ofCheck instanceof AppError || explanation instanceof AppError) {
            expect(explanation).toEqual(ofCheck);
            continue;
          }
          if (explanation.allowed !== (ofCheck === TRUE)) fail('differs', query, explanation);
          if (explanation.undecided !== (ofCheck === 2)) fail('differs', query, explanation);
          const isWhole = explanation.derivation !== undefined || explanation.truncated;
          if (explanation.allowed && !isWhole) fail('left out without a word', query, explanation);
          if (explanation.reads > reads) fail('read too much', query, explanation);
          for (const remedy of explanation.remedies) {
            if (!isMendedBy(world, remedy, query)) fail('mends nothing', query, explanation);
          }
        }
      },
    );
    fc.assert(property, params(20));
  });

  test('contextual tuples count as stored ones, and are told apart', () => {
    const contextual = fc.array(tupleArbitrary, { minLength: 1, maxLength: 6 });
    const property = fc.property(
      fc.oneof(worlds, knots),
      questions,
      contextual,
      (world, list, some) => {
        const tuples = [...new Map(some.map((tuple) => [tupleIdentity(tuple), tuple])).values()];
        const whole = tuples.reduce(withTuple, world);
        const explained = explainedWorld(world, { contextual: tuples });
        const carried = new Set(tuples.map(tupleIdentity));
        for (const question of list) {
          const query = queryOf(question);
          const explanation = explained.explain(query);
          const allowed = isAllowedBy(whole, query);
          if (explanation.allowed !== allowed) fail(`should be ${allowed}`, query, explanation);
          for (const remedy of explanation.remedies) {
            if (carried.has(tupleIdentity(remedy))) fail('is carried already', query, explanation);
            if (!isMendedBy(whole, remedy, query)) fail('mends nothing', query, explanation);
          }
          if (!allowed) continue;
          checkAllow(whole, query, explanation);
          const visit = ({
            tuple,
            contextual: isSaid,
            children,
          }: NonNullable<Explanation['derivation']>): void => {
            const isCarried = tuple !== undefined && carried.has(tupleIdentity(tuple));
            if (isSaid !== isCarried) fail('is not told apart', query, explanation);
            children.forEach(visit);
          };
          if (explanation.derivation !== undefined) visit(explanation.derivation);
        }
      },
    );
    fc.assert(property, params(16));
  });

  test('enough was compared', () => {
    if (FUZZ_RUNS > 1 || process.env['SHOW'] !== undefined)
      process.stdout.write(`${JSON.stringify(counts)}\n`);
    const least = Math.min(1, FUZZ_RUNS);
    expect(counts.allows).toBeGreaterThan(50 * least);
    expect(counts.denies).toBeGreaterThan(150 * least);
    expect(counts.remedies).toBeGreaterThan(100 * least);
    expect(counts.without).toBeGreaterThan(0);
    // Few questions may go without a remedy for want of a search.
    expect(counts.truncated).toBeLessThan(counts.denies / 4);
  });
});

function attempt<T>(work: () => T): T | AppError {
  try {
    return work();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}
