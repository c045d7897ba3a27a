import type { Subject } from '../../model/relation-tuple.ts';
import type { ListPage } from '../../model/subject-list.ts';
import { compareUtf8 } from '../../shared/text/utf8-order.ts';
import { type Scope, TRUE, UNDETERMINED } from '../bound/scope.ts';
import type { GeneralEvaluator } from '../general-evaluator.ts';
import type { Steps } from '../general/gate-system.ts';
import { CHECKS_ADVICE, WALK_ADVICE } from '../general/list-objects-run.ts';
import { ObjectWalk } from '../general/object-walk.ts';
import { type AskedSubject, askedSubjectOf } from './asked-subject.ts';
import { InOrder } from './in-order.ts';
import { laterThan, ListCapacity } from './list-capacity.ts';
import { stepsOf } from './steps-task.ts';
import { anyUndecided } from './undecided-objects.ts';

/** Query for objects. The caller has validated names and ids. */
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

/** End of a list of objects. */
export type ListEnd = {
  /** The last id of a page after which others may follow, or ''. */
  readonly next: string;
  /** Whether Check could not decide some object up to there, or the budget did not suffice to rule that out. */
  readonly isUndecided: boolean;
};

/** Called with each object in order. */
export type OnObject = (objectId: string) => void;

const WORK_PER_STEP = 64;
const NOTHING: ListEnd = { next: '', isUndecided: false };

/**
 * The objects of a namespace on which Check with the subject allows, passed on one by one in UTF-8 byte
 * order of their ids, after the page's key. Candidates are found backwards from the subject. Those that
 * need a check are checked in order, so that a page checks only what it lists and refuses. If the budget
 * ends within a page that holds an object, the page ends there. `scope` has the query's context. Errors:
 * BUDGET_EXHAUSTED, RESULT_TOO_LARGE.
 */
export function* listObjects(
  evaluator: GeneralEvaluator,
  scope: Scope,
  query: ObjectQuery,
  onObject: OnObject,
): Steps<ListEnd> {
  const { reader } = scope;
  const namespace = reader.nameId(query.namespace);
  const relation = reader.nameId(query.relation);
  const walk = new ObjectWalk(scope, namespace, relation, true);
  const asked = askedSubjectOf(scope, walk, query.subject, relation, query.isExact === true);
  if (asked === undefined) return yield* unstored(evaluator, scope, query, onObject);
  if (namespace <= 0 || relation <= 0) return NOTHING;
  scope.budgetAdvice = WALK_ADVICE;
  yield* asked.begin();
  while (walk.step()) yield;
  scope.budgetAdvice = CHECKS_ADVICE;
  const isAfter = laterThan(reader, namespace, query.page.after);
  const list = new ListedPage(scope, walk, asked, query.page, onObject);
  yield* list.fill(isAfter);
  const last = list.isCut ? list.lastEntity : 0;
  const isInRange = (entity: number): boolean =>
    isAfter(entity) && (last === 0 || reader.compareEntityIds(entity, last) <= 0);
  const isUndecided =
    list.isUndecided || (yield* anyUndecided(scope, walk, asked, isInRange, list.denied));
  return { next: list.isCut ? list.last : '', isUndecided };
}

/** A userset that no tuple mentions holds what it is part of by the model alone: relations of its own object. */
function* unstored(
  evaluator: GeneralEvaluator,
  scope: Scope,
  { namespace, relation, subject, contextJson, isExact, page }: ObjectQuery,
  onObject: OnObject,
): Steps<ListEnd> {
  if (subject.kind !== 'set' || subject.namespace !== namespace) return NOTHING;
  const { objectId } = subject;
  if (page.after !== '' && compareUtf8(objectId, page.after) <= 0) return NOTHING;
  const input = { namespace, objectId, relation, subject, contextJson, isExact };
  const task = evaluator.startDecision(input, scope.nowMs, Infinity);
  yield* stepsOf(task);
  if (task.result() === TRUE) onObject(objectId);
  return { next: '', isUndecided: task.result() === UNDETERMINED };
}

/** The objects of a page, found in order among those that a walk reached. */
class ListedPage {
  /** Others may follow the last object. */
  isCut = false;
  last = '';
  lastEntity = 0;
  isUndecided = false;
  /** Objects up to the last one that are denied, where only a second search shows whether that is certain. */
  readonly denied: number[] = [];
  readonly #scope: Scope;
  readonly #walk: ObjectWalk;
  readonly #asked: AskedSubject;
  readonly #page: ListPage;
  readonly #onObject: OnObject;
  readonly #capacity = new ListCapacity();
  #count = 0;

  constructor(
    scope: Scope,
    walk: ObjectWalk,
    asked: AskedSubject,
    page: ListPage,
    onObject: OnObject,
  ) {
    this.#scope = scope;
    this.#walk = walk;
    this.#asked = asked;
    this.#page = page;
    this.#onObject = onObject;
  }

  /** Errors: BUDGET_EXHAUSTED where the page has no object yet, or is to have all of them; RESULT_TOO_LARGE. */
  *fill(isAfter: (entity: number) => boolean): Steps<void> {
    const order = yield* this.#inOrder(isAfter);
    let work = 0;
    // Undecided, or denied, since the last object: of the next page where this one ends before.
    let isUndecided = false;
    let denied: number[] = [];
    for (let index = order.next(); index >= 0; index = order.next()) {
      const entity = this.#walk.entityAt(index);
      const value = this.#walk.isSureAt(index) ? TRUE : yield* this.#decided(entity);
      if (value === undefined) return;
      if (value === UNDETERMINED) isUndecided = true;
      else if (value !== TRUE && this.#asked.isSecondSearchNeeded) denied.push(entity);
      if (value !== TRUE) continue;
      if (this.#count >= this.#page.idsMax) {
        this.isCut = true;
        return;
      }
      this.#add(entity);
      if (isUndecided) this.isUndecided = true;
      for (const one of denied) this.denied.push(one);
      denied = [];
      if (++work % WORK_PER_STEP === 0) yield;
    }
    if (isUndecided) this.isUndecided = true;
    for (const one of denied) this.denied.push(one);
  }

  /** Check's decision on an object; undefined: the budget ends the page. */
  *#decided(entity: number): Steps<number | undefined> {
    try {
      return yield* this.#asked.decide(entity);
    } catch (error) {
      const isShort = this.#count > 0 && this.#page.idsMax !== Infinity;
      if (!this.#scope.isExhausted || !isShort) throw error;
      this.isCut = true;
      return undefined;
    }
  }

  #add(entity: number): void {
    const id = this.#scope.reader.entityText(entity);
    this.#capacity.charge(id);
    this.#onObject(id);
    this.last = id;
    this.lastEntity = entity;
    this.#count++;
  }

  *#inOrder(isAfter: (entity: number) => boolean): Steps<InOrder> {
    const walk = this.#walk;
    const { reader } = this.#scope;
    const candidates: number[] = [];
    for (let index = 0; index < walk.count; index++) {
      if (index % WORK_PER_STEP === 0) yield;
      if (isAfter(walk.entityAt(index))) candidates.push(index);
    }
    const compare = (a: number, b: number): number =>
      reader.compareEntityIds(walk.entityAt(a), walk.entityAt(b));
    const order = new InOrder(Uint32Array.from(candidates), compare, this.#page.idsMax);
    yield* order.prepare();
    return order;
  }
}
