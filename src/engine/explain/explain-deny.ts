import { readsOfCost } from '../../model/cel/cel-meter.ts';
import { whyUndecided } from '../../model/conditions/undecided-condition.ts';
import type { UsersetRef } from '../../model/expand-tree.ts';
import type { Derivation, Obstacle, ObstacleKind } from '../../model/explanation.ts';
import { type RelationTuple, subjectText } from '../../model/relation-tuple.ts';
import { OP_EXCLUSION, OP_INTERSECTION, OP_LEAF, type Op } from '../bound/bound-model.ts';
import { acquireTable, releaseTable } from '../bound/pair-table.ts';
import type { Steps } from '../general/gate-system.ts';
import { DenialGraph } from './denial-graph.ts';
import { type DenialCause, DenialWalk } from './denial-walk.ts';
import { findProof } from './explain-allow.ts';
import type { ExplainContext } from './explain-ground.ts';
import { RemedySearch } from './remedy-search.ts';
import { tupleOfEdge } from './tuple-of-edge.ts';

const OBSTACLES_MAX = 100;
/** Derivations of excluded subjects, each a search of its own. */
const EXCLUDED_DERIVATIONS_MAX = 10;
/** Undecided conditions whose reason is searched for even when the reads of the explanation are spent. */
const REASONS_UNPAID_MAX = 10;

/** Why a query is denied, and what would mend it. */
export type DenyReason = {
  readonly obstacles: readonly Obstacle[];
  readonly remedies: readonly RelationTuple[];
  readonly isTruncated: boolean;
};

/** Finds why a query that Check denies is denied. */
export function* explainDeny(
  context: ExplainContext,
  isUndecided: boolean,
  remediesMax: number,
): Steps<DenyReason> {
  const scope = context.scope();
  const keys = acquireTable();
  const graph = new DenialGraph(scope, context.target, context.mention, keys);
  let root: number;
  try {
    root = yield* graph.build(context.entity, context.relation);
  } finally {
    releaseTable(keys);
  }
  context.spend(scope.reads);
  const report = yield* new DenialWalk(graph, OBSTACLES_MAX).report(root);
  const obstacles: Obstacle[] = [];
  let isTruncated = report.isTruncated || graph.isExhausted;
  let derivations = 0;
  let reasons = 0;
  for (const cause of report.causes) {
    if (cause.kind !== 'excluded') {
      const isReasoned = !context.isSpent || reasons < REASONS_UNPAID_MAX;
      if (cause.kind === 'conditionUndecided') reasons++;
      if (cause.kind === 'conditionUndecided' && !isReasoned) isTruncated = true;
      obstacles.push(obstacleOfCause(context, graph, cause, isReasoned));
      // Finding the missing parameters takes an evaluation of the condition.
      yield;
      continue;
    }
    const isReported = derivations++ < EXCLUDED_DERIVATIONS_MAX && !context.isSpent;
    const derivation = isReported ? yield* derivationOfExcluded(context, graph, cause) : undefined;
    if (derivation === undefined) isTruncated = true;
    obstacles.push(excludedObstacle(context, cause, derivation));
  }
  if (report.isWithoutGrant) obstacles.push(noGrant(context));
  if (graph.isExhausted) obstacles.push(outOfBudget(context));
  if (isUndecided && !obstacles.some(isOfUndecided)) {
    obstacles.push(undecidedElsewhere(context, graph));
  }
  const remedies = yield* new RemedySearch(context, graph).search(root, remediesMax);
  const isCut = isTruncated || remedies.isTruncated;
  return { obstacles, remedies: remedies.tuples, isTruncated: isCut };
}

const UNDECIDED_KINDS: readonly string[] = ['conditionUndecided', 'depth', 'cycle'];

function isOfUndecided({ kind }: Obstacle): boolean {
  return UNDECIDED_KINDS.includes(kind);
}

function obstacleOfCause(
  context: ExplainContext,
  graph: DenialGraph,
  cause: DenialCause,
  isReasoned: boolean,
): Obstacle {
  const userset = context.refOf(cause.entity, cause.relation);
  const where = usersetText(userset);
  if (cause.tuple !== null) {
    const tuple = tupleOfEdge(context.reader, cause.tuple);
    if (cause.kind === 'conditionUndecided') {
      return undecidedObstacle(context, userset, tuple, isReasoned);
    }
    if (tuple.expiresAtUs !== undefined && tuple.expiresAtUs <= context.nowUs) {
      return obstacleOf('expired', userset, { tuple, message: `${tupleText(tuple)} has expired` });
    }
    const message = `the condition "${tuple.conditionName}" of ${tupleText(tuple)} is false`;
    return obstacleOf('conditionFalse', userset, { tuple, message });
  }
  switch (cause.kind) {
    case 'intersection': {
      const operands = graph.at(cause.vertex).op?.children ?? [];
      const operand = operands[cause.operand];
      const name = operand === undefined ? '' : ` (${operandText(context, operand)})`;
      const count = `${cause.operand + 1} of ${operands.length}`;
      const lacks = `operand ${count}${name} of the intersection does not hold`;
      return obstacleOf('intersection', userset, { message: `${where}: ${lacks}` });
    }
    case 'cycle':
      return obstacleOf('cycle', userset, {
        message: `what ${where} excludes depends on ${where} itself, so it cannot be decided`,
      });
    default:
      return obstacleOf('depth', userset, {
        message: `${where} lies beyond the depth bound of ${context.evaluator.depthMax} usersets`,
      });
  }
}

/** Finds the reason of an undecided condition, if it is to be found; what that costs counts as reads. */
function undecidedObstacle(
  context: ExplainContext,
  userset: Parameters<typeof obstacleOf>[1],
  tuple: RelationTuple,
  isReasoned: boolean,
): Obstacle {
  if (!isReasoned) {
    const message = undecidedText(tuple, 'the reads of the explanation ended before its reason');
    return obstacleOf('conditionUndecided', userset, { tuple, message });
  }
  const { ground, query } = context;
  const why = whyUndecided(ground.model.conditions, tuple, query.contextJson);
  context.spend(readsOfCost(why?.cost ?? 0));
  const message = undecidedText(tuple, why?.reason ?? 'the request does not say enough');
  return obstacleOf('conditionUndecided', userset, {
    tuple,
    missingInputs: why?.missingInputs,
    message,
  });
}

/** A rewrite in a few words. */
function operandText({ reader }: ExplainContext, op: Op): string {
  if (op.kind !== OP_LEAF) {
    return op.kind === OP_INTERSECTION
      ? 'an intersection'
      : op.kind === OP_EXCLUSION
        ? 'an exclusion'
        : 'a union';
  }
  const parts = op.hasThis ? ['its own tuples'] : [];
  for (const relation of op.computed) parts.push(reader.nameText(relation));
  for (let i = 0; i < op.walks.length; i += 2) {
    const [tupleset, relation] = [op.walks[i] as number, op.walks[i + 1] as number];
    parts.push(`${reader.nameText(relation)} from ${reader.nameText(tupleset)}`);
  }
  return parts.join(' or ');
}

function* derivationOfExcluded(
  context: ExplainContext,
  graph: DenialGraph,
  { entity, relation, vertex }: DenialCause,
): Steps<Derivation | undefined> {
  const exclude = graph.at(vertex).op?.children[1];
  const levelMax = context.evaluator.depthMax;
  const root = { entity, relation, op: exclude, isExcluding: true, levelMax };
  const { proof } = yield* findProof(context, context.target, root);
  return proof && context.derivationOf(proof);
}

function excludedObstacle(
  context: ExplainContext,
  { entity, relation }: DenialCause,
  derivation: Derivation | undefined,
): Obstacle {
  const userset = context.refOf(entity, relation);
  const message = `${subjectText(context.query.subject)} is excluded from ${usersetText(userset)}`;
  const tuple = derivation && firstTupleOf(derivation);
  return obstacleOf('excluded', userset, { derivation, tuple, message });
}

/** The tuple nearest to the root. */
function firstTupleOf(derivation: Derivation): RelationTuple | undefined {
  let level: readonly Derivation[] = [derivation];
  while (level.length > 0) {
    const node = level.find(({ tuple }) => tuple !== undefined);
    if (node !== undefined) return node.tuple;
    level = level.flatMap(({ children }) => children);
  }
  return undefined;
}

function noGrant({ query }: ExplainContext): Obstacle {
  const message = `no tuple leads from ${usersetText(query)} to ${subjectText(query.subject)}`;
  return obstacleOf('noGrant', query, { message });
}

function outOfBudget({ query }: ExplainContext): Obstacle {
  const message = 'the read budget ended before everything that could grant was looked at';
  return obstacleOf('budget', query, { message });
}

/** Obstacle of a value that is undecided off the way to the object: a member of a set, or a bound between two ways. */
function undecidedElsewhere({ query }: ExplainContext, graph: DenialGraph): Obstacle {
  const where = usersetText(query);
  if (query.subject.kind === 'user' || query.isExact === true || graph.gates.isTruncated) {
    return obstacleOf('depth', query, {
      message: `${where} is not decided within the depth bound`,
    });
  }
  const of = subjectText(query.subject);
  const message = `whether a member of ${of} holds ${where} could not be decided`;
  return obstacleOf('conditionUndecided', query, { message });
}

/** `doc:1#viewer`. */
export function usersetText({ namespace, objectId, relation }: UsersetRef): string {
  return `${namespace}:${objectId}#${relation}`;
}

/** `doc:1#viewer@user:alice`. */
export function tupleText(tuple: RelationTuple): string {
  return `${usersetText(tuple)}@${subjectText(tuple.subject)}`;
}

/** Fields of an obstacle beyond its kind and its userset. */
export type ObstacleDetail = {
  readonly tuple?: RelationTuple | undefined;
  readonly derivation?: Obstacle['derivation'];
  readonly missingInputs?: readonly string[] | undefined;
  readonly message: string;
};

/** An obstacle; what it does not have is empty. */
export function obstacleOf(
  kind: ObstacleKind,
  userset: UsersetRef,
  detail: ObstacleDetail,
): Obstacle {
  const { namespace, objectId, relation } = userset;
  const { tuple, derivation, missingInputs = [], message } = detail;
  return { kind, namespace, objectId, relation, tuple, derivation, missingInputs, message };
}

/** That a conditional tuple could not be decided, and why. */
export function undecidedText(tuple: RelationTuple, reason: string): string {
  return `the condition "${tuple.conditionName}" of ${tupleText(tuple)} could not be decided: ${reason}`;
}
