import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Engine, parseModel, type Tuple } from '../../src/library/index.ts';
import { parseModel as parseRules } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple, Subject as ModelSubject } from '../../src/model/relation-tuple.ts';
import { decisionOf, memoizedValues, weighTuples } from '../reference/reference-decision.ts';
import { ReferenceEvaluator } from '../reference/reference-evaluator.ts';
import {
  ALL_REFS,
  CONTEXTS,
  identityOf,
  knots,
  NOW_MS,
  tuples,
  USERS,
  worlds,
} from '../reference/worlds.ts';
import { byLength } from '../support/test-length.ts';

/* What the library says of random models and tuples is what the rules say, decided another way. */

const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const numRuns = byLength(25, 250);

function subjectOf(subject: ModelSubject): Tuple['subject'] {
  if (subject.kind === 'user') return subject.userId;
  if (subject.kind === 'wildcard') return { everyone: true };
  if (subject.kind === 'wildcardOf') return { wildcardOf: subject.namespace };
  const { namespace, objectId, relation } = subject;
  return relation === '' ? { namespace, objectId } : { namespace, objectId, relation };
}

function tupleOf({
  subject,
  expiresAtUs,
  conditionName,
  conditionParams,
  ...key
}: RelationTuple): Tuple {
  return {
    ...key,
    subject: subjectOf(subject),
    condition: conditionName,
    conditionParams: conditionParams === undefined ? undefined : JSON.parse(conditionParams),
    expiresAt:
      expiresAtUs === undefined ? undefined : new Date(Math.ceil(Number(expiresAtUs) / 1000)),
  };
}

const VALUES = { true: 'allowed', false: 'denied', cut: 'undecided' } as const;

test(`a decision is the reference's, with and without contextual tuples (SEED=${seed})`, () => {
  let decisions = 0;
  const cases = fc.tuple(fc.oneof(worlds, knots), fc.array(tuples, { maxLength: 4 }));
  const property = fc.property(cases, ([world, drawn]) => {
    const rules = parseRules(world.modelJson);
    const model = modelOf(world.modelJson);
    if (model === undefined) return;
    const engine = new Engine(model, { now: () => NOW_MS, readsMax: 1_000_000 });
    engine.write(world.tuples.map(tupleOf));
    const contextual = [...new Map(drawn.map((tuple) => [identityOf(tuple), tuple])).values()];
    const subjects: ModelSubject[] = [
      ...USERS.map((userId) => ({ kind: 'user', userId }) as const),
      ...world.tuples
        .flatMap(({ subject }) => (subject.kind === 'set' ? [subject] : []))
        .slice(0, 2),
    ];
    for (const over of [[], contextual]) {
      const last = new Map([...world.tuples, ...over].map((tuple) => [identityOf(tuple), tuple]));
      for (const contextJson of CONTEXTS.slice(0, 3)) {
        const weighed = weighTuples([...last.values()], contextJson);
        const reference = new ReferenceEvaluator(rules, weighed, ALL_REFS);
        const valuesOf = memoizedValues((target) => reference.values(target));
        const options = {
          ...(contextJson === '' ? {} : { context: JSON.parse(contextJson) }),
          ...(over.length === 0 ? {} : { contextualTuples: over.map(tupleOf) }),
        };
        const asked = Object.keys(options).length === 0 ? undefined : options;
        for (const subject of subjects) {
          for (const ref of ALL_REFS) {
            decisions += 1;
            const query = { ...ref, subject: subjectOf(subject) as string };
            const { allowed, undecided } = engine.decide(query, asked);
            const value = allowed ? 'allowed' : undecided ? 'undecided' : 'denied';
            const wanted = VALUES[decisionOf(reference, ref, subject, valuesOf)];
            expect([query, asked, value]).toEqual([query, asked, wanted]);
          }
        }
      }
    }
  });
  fc.assert(property, { numRuns, seed });
  expect(decisions).toBeGreaterThan(1_000);
});

/** Undefined for one that would not be taken today: what it says has no effect. */
function modelOf(json: string) {
  try {
    return parseModel(json);
  } catch {
    return undefined; // Drawn at random, it may be none.
  }
}
