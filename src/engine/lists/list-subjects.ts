import type { ListPage, SubjectPage } from '../../model/subject-list.ts';
import { BACKSTOP_CYCLE } from '../bound/evaluator-api.ts';
import { FALSE, type Scope, type Target, TRUE, UNDETERMINED, type Value } from '../bound/scope.ts';
import { CheckRun } from '../general/check-run.ts';
import type { Steps } from '../general/gate-system.ts';
import { planOf } from './graph-plan.ts';
import { InOrder } from './in-order.ts';
import { ListCapacity } from './list-capacity.ts';
import { type ListedKind, targetOfKind, USERS } from './listed-kind.ts';
import { solveSubjects } from './solve-subjects.ts';
import { stepsOf } from './steps-task.ts';
import { SubjectGraph } from './subject-graph.ts';

/** Values of subjects by index, and last of everybody else; or how to find each. */
type Values = { readonly solved: Uint8Array | undefined; readonly others: Value };

const TEXTS_PER_STEP = 64;

/** Ids of the listed relation. `entity` and `relation` may be 0 and -1. */
export type ListedRelation = {
  readonly entity: number;
  readonly relation: number;
  /** Absent: users. */
  readonly kind?: ListedKind | undefined;
};

/**
 * The subjects of one kind that hold a relation on an object: users as Check decides them, usersets as
 * Check decides them exactly. The graph below the relation is read once and solved for all of them
 * together. If Check's answer may depend on the depth bound, each is checked by itself instead; a page
 * checks only its own. Errors: BUDGET_EXHAUSTED, RESULT_TOO_LARGE. Cost: a read for each userset below and
 * one for 64 entries of a list, O(subjects × log2 of a page) comparisons, and texts of a page.
 */
export function* listSubjects(
  scope: Scope,
  { entity, relation, kind = USERS }: ListedRelation,
  page: ListPage,
): Steps<SubjectPage> {
  const collected = new Collected();
  // Every grant starts at a tuple of the object itself.
  if (entity === 0 || relation <= 0) return collected.list(FALSE, '');
  const graph = new SubjectGraph(scope, kind, page.after);
  yield* graph.build(entity, relation);
  const holds = (subject: number): Steps<Value> =>
    checked(scope, targetOfKind(scope.reader, kind, subject), entity, relation);
  const values = yield* valuesOf(scope, graph, kind, holds);
  const order = yield* inOrder(scope, graph, values, page.idsMax);
  const { reader } = scope;
  const capacity = new ListCapacity();
  let last = '';
  for (let index = order.next(); index >= 0; index = order.next()) {
    const subject = graph.subjects.firstOf(index);
    const value =
      values.solved === undefined ? yield* holds(subject) : (values.solved[index] as Value);
    const list = collected.listOf(value, values.others, graph.isNamed[index] === true);
    if (list === undefined) continue;
    if (collected.count >= page.idsMax) return collected.list(values.others, last);
    last = reader.entityText(subject);
    capacity.charge(last);
    list.push(last);
    collected.count++;
    if (collected.count % TEXTS_PER_STEP === 0) yield;
  }
  return collected.list(values.others, '');
}

function* valuesOf(
  scope: Scope,
  graph: SubjectGraph,
  kind: ListedKind,
  holds: (subject: number) => Steps<Value>,
): Steps<Values> {
  const plan = yield* planOf(graph);
  if (plan.hasOperatorCycle) scope.backstops |= BACKSTOP_CYCLE;
  // Without operators and undecided ways Check visits each userset where it is nearest, as the graph does.
  const isPlain = !graph.hasOperators && !graph.hasWeakEdges;
  // Check meets a subject that is no user one level below the userset that names it.
  const depthNeeded = plan.depthNeeded + (kind === USERS ? 0 : 1);
  const isWithin = !graph.isTruncated && depthNeeded <= scope.depthMax;
  if (isPlain || isWithin) {
    const solved = yield* solveSubjects(graph, plan);
    return { solved, others: solved[graph.subjects.size] as Value };
  }
  return { solved: undefined, others: yield* holds(0) };
}

function* checked(scope: Scope, target: Target, entity: number, relation: number): Steps<Value> {
  const run = new CheckRun(scope, target);
  run.start(entity, relation);
  yield* stepsOf(run);
  return run.outcome.value;
}

/** The subjects that are in a list, or may be, by id. */
function* inOrder(
  scope: Scope,
  graph: SubjectGraph,
  { solved, others }: Values,
  idsMax: number,
): Steps<InOrder> {
  const { reader } = scope;
  const { subjects, isNamed } = graph;
  const listed: number[] = [];
  for (let index = 0; index < subjects.size; index++) {
    if (index % TEXTS_PER_STEP === 0) yield;
    const isListed =
      solved === undefined ||
      kindOf(solved[index] as Value, others, isNamed[index] === true) !== undefined;
    if (isListed) listed.push(index);
  }
  const compare = (a: number, b: number): number =>
    reader.compareEntityIds(subjects.firstOf(a), subjects.firstOf(b));
  const order = new InOrder(Uint32Array.from(listed), compare, idsMax);
  yield* order.prepare();
  return order;
}

type ListName = 'userIds' | 'excludedUserIds' | 'undecidedUserIds';

/** In which list a subject is, given what everybody else has. */
function kindOf(value: Value, others: Value, isNamed: boolean): ListName | undefined {
  if (value === TRUE) return others !== TRUE || isNamed ? 'userIds' : undefined;
  if (value === UNDETERMINED)
    return others !== UNDETERMINED || isNamed ? 'undecidedUserIds' : undefined;
  return others === FALSE ? undefined : 'excludedUserIds';
}

class Collected {
  count = 0;
  readonly #lists = {
    userIds: [] as string[],
    excludedUserIds: [] as string[],
    undecidedUserIds: [] as string[],
  };

  listOf(value: Value, others: Value, isNamed: boolean): string[] | undefined {
    const kind = kindOf(value, others, isNamed);
    return kind === undefined ? undefined : this.#lists[kind];
  }

  list(others: Value, next: string): SubjectPage {
    return {
      ...this.#lists,
      wildcard: others === TRUE,
      isWildcardUndecided: others === UNDETERMINED,
      next,
    };
  }
}
