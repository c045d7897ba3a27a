import { expect, test } from 'vitest';
import { tupleFromText } from '../../src/assertions/tuple-text.ts';
import { TRUE } from '../../src/engine/bound/scope.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { OverlayReader } from '../../src/engine/overlay/overlay-reader.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { TupleChange, TupleKey } from '../../src/model/relation-tuple.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { memoizedValues } from '../reference/reference-decision.ts';
import { ReferenceEvaluator } from '../reference/reference-evaluator.ts';
import { createIndex, createSimpleIndex, finish } from './support.ts';

/*
 * What systems say where the subject of a question is a userset or an object itself, and not a user. `exact` is what
 * OpenFGA 1.22.1 says, and what SpiceDB says; `membersToo` is the contract of workspace.v1.
 */
const MODEL = JSON.stringify({
  namespaces: {
    group: { relations: { member: {}, lead: {}, staff: { union: [{}, { computed: 'lead' }] } } },
    doc: {
      relations: {
        editor: {},
        banned: {},
        viewer: { union: [{}, { computed: 'editor' }] },
        reader: { exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'banned' } } },
        both: { intersection: [{ computed: 'viewer' }, {}] },
      },
    },
  },
});

type Case = {
  readonly tuples: readonly string[];
  readonly question: string;
  readonly openfga: boolean;
  readonly spicedb: boolean;
  readonly exact: boolean;
  readonly membersToo: boolean;
};

const ENG = 'group:eng#member';
const ALL = 'group:all#member';
const ANN = `${ENG}@user:ann`;
/** What OpenFGA, SpiceDB, and this service exactly and with members say. */
type Says = readonly [openfga: boolean, spicedb: boolean, exact: boolean, membersToo: boolean];
const caseOf = (
  tuples: readonly string[],
  question: string,
  [openfga, spicedb, exact, membersToo]: Says,
): Case => ({ tuples, question, openfga, spicedb, exact, membersToo });

const CASES: Readonly<Record<string, Case>> = {
  'the set is granted': caseOf([`doc:d#viewer@${ENG}`], `doc:d#viewer@${ENG}`, [
    true,
    true,
    true,
    true,
  ]),
  'the set is granted and empty': caseOf(
    [`doc:d#viewer@${ENG}`, 'group:eng#lead@user:bob'],
    `doc:d#viewer@${ENG}`,
    [true, true, true, true],
  ),
  'a set that contains it is granted': caseOf(
    [`doc:d#viewer@${ALL}`, `${ALL}@${ENG}`],
    `doc:d#viewer@${ENG}`,
    [true, true, true, true],
  ),
  'a set that it contains is granted': caseOf(
    [`doc:d#viewer@${ALL}`, `${ENG}@${ALL}`],
    `doc:d#viewer@${ENG}`,
    [false, false, false, false],
  ),
  'that set has a member': caseOf(
    [`doc:d#viewer@${ALL}`, `${ENG}@${ALL}`, `${ALL}@user:ann`],
    `doc:d#viewer@${ENG}`,
    [false, false, false, true],
  ),
  'a member is granted': caseOf([ANN, 'doc:d#viewer@user:ann'], `doc:d#viewer@${ENG}`, [
    false,
    false,
    false,
    true,
  ]),
  'every user is granted': caseOf(
    ['doc:d#viewer@user:*', `doc:x#viewer@${ENG}`],
    `doc:d#viewer@${ENG}`,
    [false, false, false, false],
  ),
  'every user is granted, and it has a member': caseOf(
    ['doc:d#viewer@user:*', ANN],
    `doc:d#viewer@${ENG}`,
    [false, false, false, true],
  ),
  'every object of its namespace is granted': caseOf(
    ['doc:d#viewer@group:*', ANN],
    `doc:d#viewer@${ENG}`,
    [false, false, false, false],
  ),
  'its object is granted': caseOf(['doc:d#viewer@group:eng', ANN], `doc:d#viewer@${ENG}`, [
    false,
    false,
    false,
    false,
  ]),
  'every user is in it, one of whom is granted': caseOf(
    [`${ENG}@user:*`, 'doc:d#viewer@user:ann'],
    `doc:d#viewer@${ENG}`,
    [false, false, false, false],
  ),
  'every user is in it, and it is granted': caseOf(
    [`${ENG}@user:*`, `doc:d#viewer@${ENG}`],
    `doc:d#viewer@${ENG}`,
    [true, true, true, true],
  ),
  'the set itself': caseOf([], `${ENG}@${ENG}`, [true, true, true, true]),
  'another relation of its object contains it': caseOf([], 'group:eng#staff@group:eng#lead', [
    true,
    true,
    true,
    true,
  ]),
  'and is contained in it': caseOf([], 'group:eng#lead@group:eng#staff', [
    false,
    false,
    false,
    false,
  ]),
  'a relation of the document is computed from it': caseOf(
    ['doc:d#banned@user:bob'],
    'doc:d#viewer@doc:d#editor',
    [true, true, true, true],
  ),
  'it is granted and not banned': caseOf(
    [`doc:d#viewer@${ENG}`, 'doc:x#banned@user:bob'],
    `doc:d#reader@${ENG}`,
    [true, true, true, true],
  ),
  'it is granted and banned': caseOf(
    [`doc:d#viewer@${ENG}`, `doc:d#banned@${ENG}`],
    `doc:d#reader@${ENG}`,
    [false, false, false, false],
  ),
  'it is granted, and a set that contains it is banned': caseOf(
    [`doc:d#viewer@${ENG}`, `doc:d#banned@${ALL}`, `${ALL}@${ENG}`],
    `doc:d#reader@${ENG}`,
    [false, false, false, false],
  ),
  'it is granted, and its member is banned': caseOf(
    [`doc:d#viewer@${ENG}`, ANN, 'doc:d#banned@user:ann'],
    `doc:d#reader@${ENG}`,
    [true, true, true, true],
  ),
  'it is granted, and every user is banned': caseOf(
    [`doc:d#viewer@${ENG}`, 'doc:d#banned@user:*'],
    `doc:d#reader@${ENG}`,
    [true, true, true, false],
  ),
  'it is granted, and every object of its namespace is banned': caseOf(
    [`doc:d#viewer@${ENG}`, 'doc:d#banned@group:*'],
    `doc:d#reader@${ENG}`,
    [true, true, true, false],
  ),
  'both operands name it': caseOf(
    [`doc:d#viewer@${ENG}`, `doc:d#both@${ENG}`],
    `doc:d#both@${ENG}`,
    [true, true, true, true],
  ),
  'one operand names it, the other its member': caseOf(
    [`doc:d#viewer@${ENG}`, ANN, 'doc:d#both@user:ann'],
    `doc:d#both@${ENG}`,
    [false, false, false, true],
  ),
  'an object, which is granted': caseOf(['doc:d#viewer@group:eng'], 'doc:d#viewer@group:eng', [
    true,
    true,
    true,
    true,
  ]),
  'an object, of whose namespace every one is': caseOf(
    ['doc:d#viewer@group:*'],
    'doc:d#viewer@group:eng',
    [true, true, true, true],
  ),
  'an object, where every user is': caseOf(
    ['doc:d#viewer@user:*', 'doc:x#viewer@group:eng'],
    'doc:d#viewer@group:eng',
    [false, false, false, false],
  ),
  'an object, of which a userset is': caseOf([`doc:d#viewer@${ENG}`], 'doc:d#viewer@group:eng', [
    false,
    false,
    false,
    false,
  ]),
  'an object that is granted, where its namespace is banned': caseOf(
    ['doc:d#viewer@group:eng', 'doc:d#banned@group:*'],
    'doc:d#reader@group:eng',
    [false, false, false, false],
  ),
  'an object that is granted, where every user is banned': caseOf(
    ['doc:d#viewer@group:eng', 'doc:d#banned@user:*'],
    'doc:d#reader@group:eng',
    [true, true, true, false],
  ),
  'an object that is granted with another id': caseOf(
    ['doc:d#viewer@group:*#'],
    'doc:d#viewer@group:eng',
    [false, false, false, false],
  ),
};

function keyOf(text: string): TupleKey {
  const tuple = tupleFromText(text);
  if ('problem' in tuple) throw new Error(`${text}: ${tuple.problem}`);
  return tuple;
}

/** The answer of every way to decide: both indexes, tuples of the request, the hot path twice, the reference. */
function answersOf(tuples: readonly string[], question: string, isExact: boolean): boolean[] {
  const model = parseModel(MODEL);
  const query = { ...keyOf(question), contextJson: '', isExact };
  const options = { depthMax: 256, membershipBytesMax: 1 << 16 };
  const changes = tuples.map((text): TupleChange => ({ op: 'insert', tuple: keyOf(text) }));
  const answers: boolean[] = [];
  for (const index of [createIndex(), createSimpleIndex()]) {
    const empty = new Evaluator(index.reader, model, options, systemClock);
    const laid = empty.over(new OverlayReader(index.reader, changes));
    answers.push(finish(laid.startCheck(query, 0, 10_000)));
    for (const { tuple } of changes) index.insert(tuple);
    const evaluator = new Evaluator(index.reader, model, options, systemClock);
    answers.push(finish(evaluator.general.startDecision(query, 0, 10_000)) === TRUE);
    for (let times = 0; times < 2; times++) {
      answers.push(finish(evaluator.startDecision(query, 0, 10_000)) === TRUE);
    }
  }
  const refs = changes.map(({ tuple }) => tuple);
  const { subject } = query;
  const all = [query, ...refs, ...refs.map((one) => one.subject), subject].flatMap((one) => {
    if (!('namespace' in one) || !('objectId' in one)) return [];
    const { namespace, objectId } = one;
    const relations = [...(model.namespaces.get(namespace)?.keys() ?? [])];
    return relations.map((relation) => ({ namespace, objectId, relation }));
  });
  const weighed = refs.map((tuple) => ({ tuple, weight: 'true' as const }));
  const reference = new ReferenceEvaluator(model, weighed, all);
  const valuesOf = memoizedValues((target) => reference.values(target));
  const isSame = JSON.stringify([subject]) === JSON.stringify([{ kind: 'set', ...refOf(query) }]);
  answers.push(isSame || reference.check(query, subject, valuesOf, isExact));
  return answers;
}

function refOf({ namespace, objectId, relation }: TupleKey) {
  return { namespace, objectId, relation };
}

test.each(Object.entries(CASES))('%s', (_, one) => {
  const { tuples, question, openfga, spicedb, exact, membersToo } = one;
  expect([openfga, spicedb], 'an exact question is theirs').toEqual([exact, exact]);
  const exactly = answersOf(tuples, question, true);
  expect(exactly).toEqual(exactly.map(() => exact));
  const withMembers = answersOf(tuples, question, false);
  expect(withMembers).toEqual(withMembers.map(() => membersToo));
});
