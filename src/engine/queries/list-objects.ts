import type { Subject } from '../../model/relation-tuple.ts';
import type { ListPage } from '../../model/subject-list.ts';
import { EMPTY_NAME, WILDCARD_NODE } from '../../model/tuple-reader.ts';
import { NO_ENTITY, type Scope, type Target, TRUE } from '../bound/scope.ts';
import type { GeneralEvaluator } from '../general-evaluator.ts';
import type { Steps } from '../general/gate-system.ts';
import { MemberSearch } from '../general/member-search.ts';
import { ObjectCheck } from '../general/object-check.ts';
import { MAYBE, ObjectWalk, SURE } from '../general/object-walk.ts';
import {
  exactTargetOf,
  type SubjectIds,
  SubjectSetRun,
  subjectIdsOf,
  type UsersetIds,
} from '../general/subject-set-run.ts';
import { compareUtf8 } from '../general/utf8-order.ts';
import { InOrder } from './in-order.ts';
import { laterThan } from './later-than.ts';
import { ListCapacity } from './list-capacity.ts';
import { stepsOf } from './steps-task.ts';

/** Which objects are asked for. The caller has validated names and ids. */
export type ObjectQuery = {
  readonly namespace: string;
  readonly relation: string;
  /** Never the wildcard. */
  readonly subject: Subject;
  /** JSON text of the context object; '' when absent. */
  readonly contextJson: string;
  /** Whether usersets are asked about exactly: CheckQuery. */
  readonly isExact?: boolean | undefined;
  readonly page: ListPage;
};

/** Notified of each object in order. */
export type OnObject = (objectId: string) => void;

const WORK_PER_STEP = 64;

/**
 * The objects of a namespace on which Check with the subject allows, reported one by one in UTF-8 byte
 * order of their ids, from after the page's key on. Candidates are found backwards from the subject; those
 * that need a check are checked in order, so that a page checks no more than it lists and refuses.
 * Returns the last id of a full page after which others follow, or ''. `scope` has the query's context.
 * Errors: BUDGET_EXHAUSTED, RESULT_TOO_LARGE.
 */
export function* listObjects(
  evaluator: GeneralEvaluator,
  scope: Scope,
  query: ObjectQuery,
  onObject: OnObject,
): Steps<string> {
  const { reader } = scope;
  const { subject, page, isExact = false } = query;
  const namespace = reader.nameId(query.namespace);
  const relation = reader.nameId(query.relation);
  const set = subject.kind === 'set' ? subjectIdsOf(reader, subject) : undefined;
  if (subject.kind === 'set' && set === undefined) {
    return yield* unstored(evaluator, scope, query, onObject);
  }
  if (namespace <= 0 || relation <= 0) return '';
  const walk = new ObjectWalk(scope, namespace, relation);
  const userNode = subject.kind === 'user' ? userNodeOf(scope, subject.userId) : 0;
  if (set === undefined) {
    if (userNode !== 0) walk.fromSubject(userNode, SURE);
    walk.fromSubject(WILDCARD_NODE, SURE);
  } else {
    yield* beginAtSet(scope, walk, set, isExact);
  }
  while (walk.step()) yield;
  const holds = holdsOf(scope, userNode, set, relation, isExact);
  return yield* inOrder(scope, namespace, walk, page, holds, onObject);
}

function holdsOf(
  scope: Scope,
  userNode: number,
  set: SubjectIds | undefined,
  relation: number,
  isExact: boolean,
): Holds {
  if (set === undefined) {
    return targetCheck(scope, { userNode, setEntity: 0, setRelation: 0 }, relation);
  }
  if (isExact) return targetCheck(scope, exactTargetOf(set), relation);
  return (entity) => setCheck(scope, { entity, relation }, set);
}

/** A userset that no tuple mentions holds what it is part of by the model alone: relations of its own object. */
function* unstored(
  evaluator: GeneralEvaluator,
  scope: Scope,
  { namespace, relation, subject, contextJson, isExact, page }: ObjectQuery,
  onObject: OnObject,
): Steps<string> {
  if (subject.kind !== 'set' || subject.namespace !== namespace) return '';
  const { objectId } = subject;
  if (page.after !== '' && compareUtf8(objectId, page.after) <= 0) return '';
  const input = { namespace, objectId, relation, subject, contextJson, isExact };
  const task = evaluator.startDecision(input, scope.nowMs, Infinity);
  yield* stepsOf(task);
  if (task.result() === TRUE) onObject(objectId);
  return '';
}

function userNodeOf({ reader }: Scope, userId: string): number {
  const entity = reader.entityId(EMPTY_NAME, userId);
  return entity === 0 ? 0 : reader.nodeId(entity, EMPTY_NAME);
}

/** A set holds what it is part of, and unless it is exact what a concrete user whom it contains holds. */
function* beginAtSet(
  scope: Scope,
  walk: ObjectWalk,
  set: SubjectIds,
  isExact: boolean,
): Steps<void> {
  const { entity, relation, wildcardEntity = 0 } = set;
  if (entity !== NO_ENTITY) walk.fromUserset(entity, relation);
  // As Check does, it counts as a userset of the path.
  if (wildcardEntity !== 0) walk.fromUserset(wildcardEntity, EMPTY_NAME);
  // An object itself has no members.
  if (relation === EMPTY_NAME || isExact) return;
  const members = new MemberSearch(scope, set.entity, set.relation, 'mentioned');
  while (members.step()) yield;
  let isAnySure = false;
  for (let index = 0; index < members.users.size; index++) {
    const isSure = members.isSure(index);
    if (isSure) isAnySure = true;
    walk.fromSubject(members.users.firstOf(index), isSure ? SURE : MAYBE);
    if (index % WORK_PER_STEP === 0) yield;
  }
  if (members.users.size > 0) walk.fromSubject(WILDCARD_NODE, isAnySure ? SURE : MAYBE);
}

type Holds = (entity: number) => Steps<boolean>;

function targetCheck(scope: Scope, target: Target, relation: number): Holds {
  const check = new ObjectCheck(scope, target, relation);
  return function* (entity) {
    check.start(entity);
    yield* stepsOf(check);
    return check.isHeld;
  };
}

function* setCheck(scope: Scope, object: UsersetIds, set: SubjectIds): Steps<boolean> {
  const run = new SubjectSetRun(scope, object, set);
  yield* stepsOf(run);
  return run.result() === TRUE;
}

function* inOrder(
  scope: Scope,
  namespace: number,
  walk: ObjectWalk,
  { after, idsMax }: ListPage,
  holds: Holds,
  onObject: OnObject,
): Steps<string> {
  const { reader } = scope;
  const isAfter = laterThan(reader, namespace, after);
  const candidates: number[] = [];
  for (let index = 0; index < walk.count; index++) {
    if (index % WORK_PER_STEP === 0) yield;
    if (isAfter(walk.entityAt(index))) candidates.push(index);
  }
  const compare = (a: number, b: number): number =>
    reader.compareEntityIds(walk.entityAt(a), walk.entityAt(b));
  const order = new InOrder(Uint32Array.from(candidates), compare, idsMax);
  yield* order.prepare();
  const capacity = new ListCapacity();
  let last = '';
  let count = 0;
  let work = 0;
  for (let index = order.take(); index >= 0; index = order.take()) {
    const entity = walk.entityAt(index);
    if (!walk.isSureAt(index) && !(yield* holds(entity))) continue;
    if (count >= idsMax) return last;
    last = reader.entityText(entity);
    capacity.take(last);
    onObject(last);
    count++;
    if (++work % WORK_PER_STEP === 0) yield;
  }
  return '';
}
