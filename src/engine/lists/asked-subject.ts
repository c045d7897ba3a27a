import type { Subject } from '../../model/relation-tuple.ts';
import { EMPTY_NAME, WILDCARD_NODE } from '../../model/tuple-reader.ts';
import { NO_ENTITY, type Scope, type Target, type Value } from '../bound/scope.ts';
import type { Steps } from '../general/gate-system.ts';
import { MemberSearch } from '../general/member-search.ts';
import { ObjectCheck } from '../general/object-check.ts';
import type { ObjectWalk } from '../general/object-walk.ts';
import {
  exactTargetOf,
  type SubjectIds,
  SubjectSetRun,
  subjectIdsOf,
} from '../general/subject-set-run.ts';
import { stepsOf } from './steps-task.ts';

const WORK_PER_STEP = 64;

/** Subject of a list of objects: the start of the walk, and Check's decision on an object that it reached. */
export interface AskedSubject {
  /** Whether a deny of `decide` may be uncertain, so that `decideAgain` is needed. */
  readonly isSecondSearchNeeded: boolean;
  begin(): Steps<void>;
  decide(entity: number): Steps<Value>;
  /** Begins again, at what could not be decided: after `ObjectWalk.followUndecided`. */
  beginAgain(): Steps<void>;
  /** UNDETERMINED where the deny is not certain, or the budget ended. */
  decideAgain(entity: number): Steps<Value>;
}

/** The subject of a list of `relation`, for its walk; undefined for a userset that no tuple mentions. */
export function askedSubjectOf(
  scope: Scope,
  walk: ObjectWalk,
  subject: Subject,
  relation: number,
  isExact: boolean,
): AskedSubject | undefined {
  const { reader } = scope;
  if (subject.kind !== 'set') {
    const entity = subject.kind === 'user' ? reader.entityId(EMPTY_NAME, subject.userId) : 0;
    const userNode = entity === 0 ? 0 : reader.nodeId(entity, EMPTY_NAME);
    return new AskedTarget(scope, walk, { userNode, setEntity: 0, setRelation: 0 }, relation);
  }
  const set = subjectIdsOf(reader, subject);
  if (set === undefined) return undefined;
  if (isExact) return new AskedTarget(scope, walk, exactTargetOf(set), relation);
  return new AskedMembers(scope, walk, set, relation);
}

/** A set holds what it is part of. */
function beginAtSet(walk: ObjectWalk, { entity, relation, wildcardEntity = 0 }: SubjectIds): void {
  if (entity !== NO_ENTITY) walk.fromUserset(entity, relation);
  // Counts as a userset of the path, as in Check.
  if (wildcardEntity !== 0) walk.fromUserset(wildcardEntity, EMPTY_NAME);
}

/** A user, or an exact userset. */
class AskedTarget implements AskedSubject {
  readonly isSecondSearchNeeded = false;
  readonly #walk: ObjectWalk;
  readonly #target: Target;
  readonly #check: ObjectCheck;

  constructor(scope: Scope, walk: ObjectWalk, target: Target, relation: number) {
    this.#walk = walk;
    this.#target = target;
    this.#check = new ObjectCheck(scope, target, relation, walk);
  }

  *begin(): Steps<void> {
    const { setEntity, setRelation, wildcardEntity, userNode } = this.#target;
    if (setEntity !== 0) {
      beginAtSet(this.#walk, { entity: setEntity, relation: setRelation, wildcardEntity });
      return;
    }
    if (userNode !== 0) this.#walk.fromSubject(userNode, true);
    this.#walk.fromSubject(WILDCARD_NODE, true);
    yield;
  }

  *decide(entity: number): Steps<Value> {
    this.#check.start(entity);
    yield* stepsOf(this.#check);
    return this.#check.value;
  }

  /** All that it begins with is certain. */
  *beginAgain(): Steps<void> {}

  decideAgain(entity: number): Steps<Value> {
    return this.decide(entity);
  }
}

/** A userset that holds what one of its members holds, too. */
class AskedMembers implements AskedSubject {
  readonly isSecondSearchNeeded = true;
  readonly #scope: Scope;
  readonly #walk: ObjectWalk;
  readonly #set: SubjectIds;
  readonly #relation: number;

  constructor(scope: Scope, walk: ObjectWalk, set: SubjectIds, relation: number) {
    this.#scope = scope;
    this.#walk = walk;
    this.#set = set;
    this.#relation = relation;
  }

  *begin(): Steps<void> {
    beginAtSet(this.#walk, this.#set);
    yield* this.#beginAtMembers(false);
  }

  beginAgain(): Steps<void> {
    return this.#beginAtMembers(true);
  }

  *#beginAtMembers(withUndecided: boolean): Steps<void> {
    const { entity, relation } = this.#set;
    // An object itself has no members.
    if (relation === EMPTY_NAME) return;
    const members = new MemberSearch(this.#scope, entity, relation, 'mentioned', withUndecided);
    while (members.step()) yield;
    let isAnySure = false;
    for (let index = 0; index < members.users.size; index++) {
      const isSure = !withUndecided && members.isSure(index);
      if (isSure) isAnySure = true;
      this.#walk.fromSubject(members.users.firstOf(index), isSure);
      if (index % WORK_PER_STEP === 0) yield;
    }
    if (members.users.size > 0) this.#walk.fromSubject(WILDCARD_NODE, isAnySure);
  }

  decide(entity: number): Steps<Value> {
    return this.#decide(entity, false);
  }

  decideAgain(entity: number): Steps<Value> {
    return this.#decide(entity, true);
  }

  *#decide(entity: number, reportsUndecided: boolean): Steps<Value> {
    const object = { entity, relation: this.#relation };
    const run = new SubjectSetRun(this.#scope, object, this.#set, reportsUndecided);
    yield* stepsOf(run);
    return run.result();
  }
}
