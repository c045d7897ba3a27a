import type { UsersetRef } from '../../model/expand-tree.ts';
import { EMPTY_NAME, type TupleReader, typedWildcardOf } from '../../model/tuple-reader.ts';
import type { EvaluationTask } from '../bound/evaluator-api.ts';
import {
  FALSE,
  NO_ENTITY,
  type Scope,
  type Target,
  TRUE,
  UNDETERMINED,
  type Value,
} from '../bound/scope.ts';
import { CheckRun } from './check-run.ts';
import { type MemberScan, MemberSearch } from './member-search.ts';

const STEPS_PER_CLOCK_READ = 32;

/** A userset by the ids of the index. */
export type UsersetIds = { readonly entity: number; readonly relation: number };
/** A userset, or an object itself (relation 0), that is asked about: as in `Target`. */
export type SubjectIds = UsersetIds & { readonly wildcardEntity?: number | undefined };

/**
 * Ids of a userset or an object itself; undefined where no tuple can hold it: none mentions its object, and no typed
 * wildcard includes it.
 */
export function subjectIdsOf(reader: TupleReader, subject: UsersetRef): SubjectIds | undefined {
  const relation = reader.nameId(subject.relation);
  if (relation < 0) return undefined;
  const namespace = reader.nameId(subject.namespace);
  const known = namespace > 0 ? reader.entityId(namespace, subject.objectId) : 0;
  const wildcardEntity = relation === EMPTY_NAME ? typedWildcardOf(reader, subject.namespace) : 0;
  if (known === 0 && wildcardEntity === 0) return undefined;
  return { entity: known === 0 ? NO_ENTITY : known, relation, wildcardEntity };
}

/** The target of an exact query: what is granted to the userset or object itself. */
export function exactTargetOf({ entity, relation, wildcardEntity }: SubjectIds): Target {
  return {
    userNode: 0,
    setEntity: entity,
    setRelation: relation,
    wildcardEntity,
    isExact: true,
  };
}

/**
 * Whether the userset `subject` holds `object`: structurally included, or some concrete user stored
 * below it is a member of it and holds `object`. The candidates of both sides are intersected, and
 * only what both hold is confirmed by evaluation.
 *
 * A deny is FALSE at once, unless `reportsUndecided`: then it is UNDETERMINED where something that could not be decided might
 * have made it an allow. That takes a second search, which the read budget ends with UNDETERMINED: the deny itself is certain.
 */
export class SubjectSetRun implements EvaluationTask<Value> {
  readonly #scope: Scope;
  readonly #object: UsersetIds;
  readonly #subject: SubjectIds;
  readonly #structural: CheckRun;
  readonly #reportsUndecided: boolean;
  #members: MemberSearch | undefined;
  #holders: MemberSearch | undefined;
  #nextMember = 0;
  #confirmation: CheckRun | undefined;
  #confirmsObject = false;
  #phase: 'structural' | 'members' | 'holders' | 'sure' | 'confirm' | 'done' = 'structural';
  /** The second search: whether the deny is undecided. */
  #isOfDeny = false;
  #value: Value = FALSE;
  #witness = 0;

  constructor(scope: Scope, object: UsersetIds, subject: SubjectIds, reportsUndecided = false) {
    this.#scope = scope;
    this.#object = object;
    this.#subject = subject;
    this.#reportsUndecided = reportsUndecided;
    const { entity, relation, wildcardEntity } = subject;
    this.#structural = new CheckRun(scope, {
      userNode: 0,
      setEntity: entity,
      setRelation: relation,
      wildcardEntity,
    });
    this.#structural.start(object.entity, object.relation);
  }

  get backstops(): number {
    return this.#value === TRUE ? 0 : this.#scope.backstops;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    try {
      return this.#run(sliceEndMs);
    } catch (error) {
      if (!this.#isOfDeny || !this.#scope.isExhausted) throw error;
      this.#finish(UNDETERMINED);
      return 'done';
    }
  }

  result(): Value {
    return this.#value;
  }

  /** The member (node of a user) through whom an allowed set holds the object; 0 if it is included itself. */
  get witness(): number {
    return this.#witness;
  }

  #run(sliceEndMs: number): 'done' | 'more' {
    for (let steps = 1; this.#phase !== 'done'; steps++) {
      if (!this.#step(sliceEndMs)) return 'more';
      if (steps % STEPS_PER_CLOCK_READ === 0 && this.#scope.clock.monotonicMs() >= sliceEndMs) {
        return 'more';
      }
    }
    return 'done';
  }

  /** One step; false when the slice ended within. */
  #step(sliceEndMs: number): boolean {
    switch (this.#phase) {
      case 'structural':
        if (this.#structural.run(sliceEndMs) === 'more') return false;
        if (this.#structural.outcome.value === TRUE) this.#finish(TRUE);
        // An object itself has no members.
        else if (this.#subject.relation === EMPTY_NAME) this.#finish(this.#structuralDeny());
        else this.#phase = 'members';
        return true;
      case 'members':
        this.#members ??= this.#searchOf(this.#subject, 'mentioned');
        if (this.#members.step()) return true;
        if (this.#members.users.size === 0) this.#denied();
        else this.#phase = 'holders';
        return true;
      case 'holders':
        this.#holders ??= this.#searchOf(this.#object, 'necessary');
        if (!this.#holders.step()) this.#phase = this.#isOfDeny ? 'confirm' : 'sure';
        return true;
      case 'sure':
        this.#stepSure();
        return true;
      case 'confirm':
        return this.#stepConfirm(sliceEndMs);
      case 'done':
        return true;
    }
  }

  #searchOf(userset: UsersetIds, scan: MemberScan): MemberSearch {
    const { entity, relation } = userset;
    return new MemberSearch(this.#scope, entity, relation, scan, this.#isOfDeny);
  }

  #finish(value: Value): void {
    this.#value = value;
    this.#phase = 'done';
  }

  #structuralDeny(): Value {
    return this.#reportsUndecided ? this.#structural.outcome.value : FALSE;
  }

  /** No candidate is left. */
  #denied(): void {
    if (!this.#reportsUndecided || this.#isOfDeny) return this.#finish(FALSE);
    if (this.#structuralDeny() === UNDETERMINED) return this.#finish(UNDETERMINED);
    this.#isOfDeny = true;
    this.#members = undefined;
    this.#holders = undefined;
    this.#nextMember = 0;
    this.#phase = 'members';
  }

  /** First searches for a user who needs no confirmation on either side. */
  #stepSure(): void {
    const members = this.#members as MemberSearch;
    if (this.#nextMember >= members.users.size) {
      this.#nextMember = 0;
      this.#phase = 'confirm';
      return;
    }
    const index = this.#nextMember++;
    if (members.isSure(index) && this.#holds(members.users.firstOf(index)) === 'surely') {
      this.#witness = members.users.firstOf(index);
      this.#finish(TRUE);
    }
  }

  #holds(user: number): 'surely' | 'maybe' | 'no' {
    const holders = this.#holders as MemberSearch;
    const index = holders.users.indexOf(user, 0);
    if (holders.isWildcardSure || (index >= 0 && holders.isSure(index))) return 'surely';
    // Beyond the depth bound of the object nobody's value is decided.
    const isOpen = holders.hasWildcard || (this.#isOfDeny && holders.isDeep);
    return isOpen || index >= 0 ? 'maybe' : 'no';
  }

  #stepConfirm(sliceEndMs: number): boolean {
    const members = this.#members as MemberSearch;
    if (this.#confirmation === undefined) {
      if (this.#nextMember >= members.users.size) {
        this.#denied();
        return true;
      }
      const user = members.users.firstOf(this.#nextMember);
      if (this.#holds(user) === 'no') {
        this.#nextMember++;
        return true;
      }
      this.#confirmation = new CheckRun(this.#scope, {
        userNode: user,
        setEntity: 0,
        setRelation: 0,
      });
      this.#confirmation.start(this.#subject.entity, this.#subject.relation);
      this.#confirmsObject = false;
    }
    if (this.#confirmation.run(sliceEndMs) === 'more') return false;
    const { value } = this.#confirmation.outcome;
    if (!this.#confirmsObject && this.#mayHold(value)) {
      this.#confirmsObject = true;
      this.#confirmation.start(this.#object.entity, this.#object.relation);
      return true;
    }
    if (this.#confirmsObject && this.#mayHold(value)) {
      this.#witness = members.users.firstOf(this.#nextMember);
      // The second search meets users by tuples that do not count: whatever it finds, Check denies.
      this.#finish(this.#isOfDeny ? UNDETERMINED : TRUE);
    }
    this.#confirmation = undefined;
    this.#nextMember++;
    return true;
  }

  /** Whether a candidate of this value matters: of a deny also one that could not be decided. */
  #mayHold(value: Value): boolean {
    return value === TRUE || (this.#isOfDeny && value !== FALSE);
  }
}
