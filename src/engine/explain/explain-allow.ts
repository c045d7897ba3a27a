import type { Derivation, Witness } from '../../model/explanation.ts';
import { EMPTY_NAME } from '../../model/tuple-reader.ts';
import { acquireTable, releaseTable } from '../bound/pair-table.ts';
import { FALSE, type Target } from '../bound/scope.ts';
import { CheckRun } from '../general/check-run.ts';
import type { Steps } from '../general/gate-system.ts';
import { SubjectSetRun } from '../general/subject-set-run.ts';
import { DerivationSearch, type SearchRoot } from './derivation-search.ts';
import type { ExplainContext } from './explain-ground.ts';
import type { Proof } from './proof.ts';
import { toMicroseconds } from './tuple-of-edge.ts';

/** Instants at which a refutation is checked again; at the last one it counts as ending. */
const INSTANTS_MAX = 32;

/** Why a query is allowed. */
export type AllowReason = {
  readonly derivation: Derivation | undefined;
  readonly witness: Witness | undefined;
  readonly holdsUntilUs: bigint | undefined;
  /** The read budget ended before the smallest derivation was certain. */
  readonly isTruncated: boolean;
};

type Found = {
  readonly proof: Proof | undefined;
  readonly isCut: boolean;
  readonly untilMs: number;
};

/** Finds why a query that Check allows is allowed. */
export function* explainAllow(context: ExplainContext): Steps<AllowReason> {
  const { entity, relation, target } = context;
  const root = { entity, relation, isExcluding: false, levelMax: context.evaluator.depthMax };
  const found = yield* findProof(context, target, root);
  const hasMembers = target.setEntity !== 0 && target.isExact !== true;
  if (found.proof !== undefined || !hasMembers || found.isCut) {
    return reasonOf(context, found, undefined);
  }
  const member = yield* findMember(context);
  if (member === 0) return { ...reasonOf(context, found, undefined), isTruncated: true };
  const user = { userNode: member, setEntity: 0, setRelation: 0 };
  const held = yield* findProof(context, user, root);
  const { setEntity, setRelation } = target;
  const set = { ...root, entity: setEntity, relation: setRelation };
  const membership = yield* findProof(context, user, set);
  const untilMs = Math.min(held.untilMs, membership.untilMs);
  const isCut = held.isCut || membership.isCut;
  const userId = context.reader.entityText(context.reader.entityOf(member));
  const why = membership.proof && context.derivationOf(membership.proof);
  return reasonOf(context, { ...held, untilMs, isCut }, { userId, membership: why });
}

function reasonOf(
  context: ExplainContext,
  { proof, isCut, untilMs }: Found,
  witness: Witness | undefined,
): AllowReason {
  return {
    derivation: proof && context.derivationOf(proof),
    witness,
    holdsUntilUs: Number.isFinite(untilMs) ? toMicroseconds(untilMs) : undefined,
    isTruncated: isCut || proof === undefined,
  };
}

/** The smallest proof and until when it holds; `isCut` where the read budget ended first. */
export function* findProof(
  context: ExplainContext,
  target: Target,
  root: SearchRoot,
): Steps<Found> {
  if (context.isSpent) return { proof: undefined, isCut: true, untilMs: Number.POSITIVE_INFINITY };
  const scope = context.scope();
  const keys = acquireTable();
  const search = new DerivationSearch(scope, target, root, keys);
  let isCut = false;
  try {
    yield* search.search();
  } catch (error) {
    if (!scope.isExhausted) throw error;
    isCut = true;
  } finally {
    releaseTable(keys);
  }
  context.spend(scope.reads);
  const proof = search.best;
  if (proof === undefined) return { proof, isCut, untilMs: Number.POSITIVE_INFINITY };
  if (search.refutationExpiries.size === 0) return { proof, isCut, untilMs: proof.holdsUntilMs };
  const instants = [...search.refutationExpiries]
    .filter((ms) => ms < proof.holdsUntilMs)
    .sort((a, b) => a - b);
  const untilMs = yield* refutedUntil(context, target, proof, root, instants);
  return { proof, isCut, untilMs };
}

/**
 * When the first of these tuples expires on which a refutation in the proof rests; the proof's own
 * expiry if there is none.
 */
function* refutedUntil(
  context: ExplainContext,
  target: Target,
  proof: Proof,
  root: SearchRoot,
  instants: readonly number[],
): Steps<number> {
  for (const [index, instant] of instants.entries()) {
    if (index === INSTANTS_MAX || context.isSpent) return instant;
    const scope = context.scope(instant);
    const run = new CheckRun(scope, target);
    let holds = true;
    try {
      holds = yield* areRefuted(run, proof, root.levelMax);
    } catch (error) {
      if (!scope.isExhausted) throw error;
      holds = false;
    }
    context.spend(scope.reads);
    if (!holds) return instant;
  }
  return proof.holdsUntilMs;
}

/** Whether everything that a proof excludes is still refuted. */
function* areRefuted(run: CheckRun, proof: Proof, levelMax: number): Steps<boolean> {
  const { refuted, entity, relation, step } = proof;
  if (refuted !== null) {
    run.startOperand({ entity, relation }, refuted, true, levelMax);
    while (run.run(0) === 'more') yield;
    if (run.outcome.value !== FALSE) return false;
  }
  // The operands of an operator are of the same userset.
  const isOperator = step === 'exclusion' || step === 'intersection';
  for (const child of proof.children) {
    if (!(yield* areRefuted(run, child, isOperator ? levelMax : levelMax - 1))) return false;
  }
  return true;
}

/** The member through whom a userset holds the object; 0 if the read budget ended first. */
function* findMember(context: ExplainContext): Steps<number> {
  if (context.isSpent) return 0;
  const { entity, relation, target } = context;
  const scope = context.scope();
  const set = { entity: target.setEntity, relation: target.setRelation };
  const run = new SubjectSetRun(scope, { entity, relation }, set);
  try {
    while (run.run(0) === 'more') yield;
  } catch (error) {
    if (!scope.isExhausted) throw error;
    context.spend(scope.reads);
    return 0;
  }
  context.spend(scope.reads);
  const member = run.witness;
  return context.reader.namespaceOf(context.reader.entityOf(member)) === EMPTY_NAME ? member : 0;
}
