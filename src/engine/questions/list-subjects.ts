import type { ListPage, SubjectList } from '../../model/subject-list.ts';
import { BACKSTOP_CYCLE } from '../bound/evaluator-api.ts';
import { CUT, FALSE, type Scope, TRUE, type Value } from '../bound/scope.ts';
import { CheckRun } from '../general/check-run.ts';
import type { Steps } from '../general/gate-system.ts';
import { planOf } from './graph-plan.ts';
import { InOrder } from './in-order.ts';
import { ListRoom } from './list-room.ts';
import { solveSubjects } from './solve-subjects.ts';
import { stepsOf } from './steps-task.ts';
import { SubjectGraph } from './subject-graph.ts';

/** Values of users by index, and last of everybody else; or how to find each. */
type Values = { readonly solved: Uint8Array | undefined; readonly others: Value };

const TEXTS_PER_STEP = 64;

/**
 * The users who hold a relation on an object: says of every user what Check says. The graph below
 * the relation is read once and solved for all users together; where Check's answer may depend on
 * the depth bound, each user is checked by itself instead, on a page those of the page only.
 * `entity` and `relation` may be 0 and -1. Errors: BUDGET_EXHAUSTED, RESULT_TOO_LARGE. Cost: a read for each userset below and one
 * for 64 entries of a list, O(users × log2 of a page) comparisons, and texts of a page.
 */
export function* listSubjects(
  scope: Scope,
  entity: number,
  relation: number,
  page: ListPage,
): Steps<SubjectList> {
  const collected = new Collected();
  // Every grant starts at a tuple of the object itself.
  if (entity === 0 || relation <= 0) return collected.list(FALSE, '');
  const graph = new SubjectGraph(scope, page.after);
  yield* graph.build(entity, relation);
  const values = yield* valuesOf(scope, graph, entity, relation);
  const order = yield* inOrder(scope, graph, values, page.idsMax);
  const { reader } = scope;
  const room = new ListRoom();
  let last = '';
  for (let index = order.take(); index >= 0; index = order.take()) {
    const user = graph.users.firstOf(index);
    const value =
      values.solved === undefined
        ? yield* checked(scope, user, entity, relation)
        : (values.solved[index] as Value);
    const list = collected.listOf(value, values.others, graph.isNamed[index] === true);
    if (list === undefined) continue;
    if (collected.count >= page.idsMax) return collected.list(values.others, last);
    last = reader.entityText(reader.entityOf(user));
    room.take(last);
    list.push(last);
    collected.count++;
    if (collected.count % TEXTS_PER_STEP === 0) yield;
  }
  return collected.list(values.others, '');
}

function* valuesOf(
  scope: Scope,
  graph: SubjectGraph,
  entity: number,
  relation: number,
): Steps<Values> {
  const plan = yield* planOf(graph);
  if (plan.hasOperatorCycle) scope.backstops |= BACKSTOP_CYCLE;
  // Without operators and undecided ways Check looks at each userset where it is nearest, as the graph does.
  const isPlain = !graph.hasOperators && !graph.hasWeakEdges;
  const isWithin = !graph.isTruncated && plan.depthNeeded <= scope.depthMax;
  if (isPlain || isWithin) {
    const solved = yield* solveSubjects(graph, plan);
    return { solved, others: solved[graph.users.size] as Value };
  }
  return { solved: undefined, others: yield* checked(scope, 0, entity, relation) };
}

/** Check of one user; 0 is one whom no tuple names. */
function* checked(scope: Scope, userNode: number, entity: number, relation: number): Steps<Value> {
  const run = new CheckRun(scope, { userNode, setEntity: 0, setRelation: 0 });
  run.start(entity, relation);
  yield* stepsOf(run);
  return run.outcome.value;
}

/** The users who are in a list, or may be, by id. */
function* inOrder(
  scope: Scope,
  graph: SubjectGraph,
  { solved, others }: Values,
  idsMax: number,
): Steps<InOrder> {
  const { reader } = scope;
  const { users, isNamed } = graph;
  const listed: number[] = [];
  const entities = new Uint32Array(users.size);
  for (let index = 0; index < users.size; index++) {
    if (index % TEXTS_PER_STEP === 0) yield;
    entities[index] = reader.entityOf(users.firstOf(index));
    const isListed =
      solved === undefined ||
      kindOf(solved[index] as Value, others, isNamed[index] === true) !== undefined;
    if (isListed) listed.push(index);
  }
  const compare = (a: number, b: number): number =>
    reader.compareEntityIds(entities[a] as number, entities[b] as number);
  const order = new InOrder(Uint32Array.from(listed), compare, idsMax);
  yield* order.prepare();
  return order;
}

type ListName = 'userIds' | 'excludedUserIds' | 'undecidedUserIds';

/** In which list a user is, given what everybody else has. */
function kindOf(value: Value, others: Value, isNamed: boolean): ListName | undefined {
  if (value === TRUE) return others !== TRUE || isNamed ? 'userIds' : undefined;
  if (value === CUT) return others !== CUT || isNamed ? 'undecidedUserIds' : undefined;
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

  list(others: Value, next: string): SubjectList {
    return {
      ...this.#lists,
      wildcard: others === TRUE,
      isWildcardUndecided: others === CUT,
      next,
    };
  }
}
