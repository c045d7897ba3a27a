import type { PeerModel, PeerTuple } from '../../src/language/peers/peer-model.ts';
import type { PeerAnswer } from './openfga-server.ts';
import { PlainPeer } from './plain-peer.ts';
import {
  admits,
  type PeerQuestion,
  type QuestionBatch,
  type StoreVersion,
  tupleKey,
} from './random-store.ts';

/** What OpenFGA answered, and what was answered here. */
export type Answers = { readonly there: PeerAnswer; readonly here: PeerAnswer };

/** A question whose answers differ. */
export type Difference = {
  readonly versions: readonly StoreVersion[];
  readonly batch: QuestionBatch;
  readonly question: PeerQuestion;
  readonly answers: Answers;
};

/** What OpenFGA does otherwise, each shown by the plain rules of both systems. */
const CAUSES = {
  contextual: 'contextual: it counts a stored tuple beside the contextual one of its key',
  cycle:
    'cycle: it denies an exclusion where what is taken away leads back to itself, of an intersection at times only',
  input: 'input: it ends with an error where one is missing that nothing rests on',
  pair: 'pair: of two grants, to everybody and to somebody, one of them conditional or not admitted, it sees one alone',
  unknown:
    'unknown: it ends with an error where the subject names a relation that the version does not have',
  undecided: 'undecided: it allows where an input is missing, which denies here',
  unfounded:
    'unfounded: it allows where the plain rules of both systems find nobody who holds the relation',
} as const;

/**
 * Why an allow differs; undefined: the answer here is not that of plain rules, or nothing known explains the one there.
 */
export function causeByRules({
  versions,
  batch,
  question,
  answers,
}: Difference): string | undefined {
  const { there, here } = answers;
  const { contextual, context, version } = batch;
  const model = versions[version]?.model as PeerModel;
  const stored = versions.flatMap(({ tuples }) => tuples);
  const keys = new Set(contextual.map(tupleKey));
  const replaced = [...stored.filter((tuple) => !keys.has(tupleKey(tuple))), ...contextual];
  const valueOf = (
    rules: 'here' | 'there',
    tuples: readonly PeerTuple[],
    areCyclesFirst = false,
  ): boolean | 'error' =>
    new PlainPeer({ model, tuples, context, rules, areCyclesFirst }).answer(question).value;
  // The importer declares such a relation, where another names it: the set itself then holds itself.
  if (/relation '.*' not found/.test(there.error)) return CAUSES.unknown;
  const plain = valueOf('here', replaced);
  if ((plain === true) !== here.allowed) return undefined;
  if (/missing context parameters/.test(there.error)) return CAUSES.input;
  if (there.error !== '') return undefined;
  for (const areCyclesFirst of [false, true]) {
    if (valueOf('there', replaced, areCyclesFirst) === there.allowed) return CAUSES.cycle;
  }
  const both = [...stored, ...contextual];
  if (replaced.length < both.length) {
    const values = [valueOf('there', both), valueOf('here', both)];
    if (values.includes(there.allowed)) return CAUSES.contextual;
  }
  if (there.allowed && plain === 'error') return CAUSES.undecided;
  const seen = (['somebody', 'everybody'] as const).flatMap((dropped) => {
    const left = withoutPairs(model, replaced, dropped);
    return left.length === replaced.length ? [] : [valueOf('here', left), valueOf('there', left)];
  });
  if (seen.some((value) => (value === true) === there.allowed)) return CAUSES.pair;
  // Nothing is excused that is allowed here.
  return there.allowed && plain === false ? CAUSES.unfounded : undefined;
}

/**
 * The tuples without one side of each pair of grants on the same object and relation, to everybody of a type and to somebody
 * of it, of which one has a condition or is not admitted.
 */
function withoutPairs(
  model: PeerModel,
  tuples: readonly PeerTuple[],
  dropped: 'everybody' | 'somebody',
): readonly PeerTuple[] {
  const known = new Map(tuples.map((tuple) => [tupleKey(tuple), tuple]));
  const hidden = new Set<PeerTuple>();
  for (const tuple of tuples) {
    const { subject } = tuple;
    if (subject.id === '*' || subject.relation !== '') continue;
    const everybody = known.get(tupleKey({ ...tuple, subject: { ...subject, id: '*' } }));
    if (everybody === undefined) continue;
    const isPlain = (one: PeerTuple): boolean => one.condition === undefined && admits(model, one);
    if (isPlain(tuple) && isPlain(everybody)) continue;
    hidden.add(dropped === 'somebody' ? tuple : everybody);
  }
  return tuples.filter((tuple) => !hidden.has(tuple));
}
