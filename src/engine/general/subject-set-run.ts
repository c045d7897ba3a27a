import type { EvaluationTask } from '../bound/evaluator-api.ts';
import { type Scope, TRUE } from '../bound/scope.ts';
import { CheckRun } from './check-run.ts';
import { type MemberScan, MemberSearch } from './member-search.ts';

const STEPS_PER_CLOCK_LOOK = 32;

/** A userset by the ids of the index. */
export type UsersetIds = { readonly entity: number; readonly relation: number };

/**
 * Whether the userset `subject` holds `object`: structurally included, or some concrete user stored
 * below it is a member of it and holds `object`. The candidates of both sides are intersected, and
 * only what both hold is confirmed by evaluation.
 */
export class SubjectSetRun implements EvaluationTask<boolean> {
  readonly #scope: Scope;
  readonly #object: UsersetIds;
  readonly #subject: UsersetIds;
  readonly #structural: CheckRun;
  #members: MemberSearch | undefined;
  #holders: MemberSearch | undefined;
  #nextMember = 0;
  #confirmation: CheckRun | undefined;
  #confirmsObject = false;
  #phase: 'structural' | 'members' | 'holders' | 'sure' | 'confirm' | 'done' = 'structural';
  #isAllowed = false;

  constructor(scope: Scope, object: UsersetIds, subject: UsersetIds) {
    this.#scope = scope;
    this.#object = object;
    this.#subject = subject;
    const { entity, relation } = subject;
    this.#structural = new CheckRun(scope, {
      userNode: 0,
      setEntity: entity,
      setRelation: relation,
    });
    this.#structural.start(object.entity, object.relation);
  }

  get backstops(): number {
    return this.#isAllowed ? 0 : this.#scope.backstops;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    for (let steps = 1; this.#phase !== 'done'; steps++) {
      if (!this.#step(sliceEndMs)) return 'more';
      if (steps % STEPS_PER_CLOCK_LOOK === 0 && this.#scope.clock.monotonicMs() >= sliceEndMs) {
        return 'more';
      }
    }
    return 'done';
  }

  result(): boolean {
    return this.#isAllowed;
  }

  /** One step; false when the slice ended within. */
  #step(sliceEndMs: number): boolean {
    switch (this.#phase) {
      case 'structural':
        if (this.#structural.run(sliceEndMs) === 'more') return false;
        if (this.#structural.outcome.value === TRUE) this.#finish(true);
        else this.#phase = 'members';
        return true;
      case 'members':
        this.#members ??= this.#searchOf(this.#subject, 'mentioned');
        if (this.#members.step()) return true;
        if (this.#members.users.size === 0) this.#finish(false);
        else this.#phase = 'holders';
        return true;
      case 'holders':
        this.#holders ??= this.#searchOf(this.#object, 'necessary');
        if (!this.#holders.step()) this.#phase = 'sure';
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
    return new MemberSearch(this.#scope, userset.entity, userset.relation, scan);
  }

  #finish(isAllowed: boolean): void {
    this.#isAllowed = isAllowed;
    this.#phase = 'done';
  }

  /** First looks for a user who needs no confirmation on either side. */
  #stepSure(): void {
    const members = this.#members as MemberSearch;
    if (this.#nextMember >= members.users.size) {
      this.#nextMember = 0;
      this.#phase = 'confirm';
      return;
    }
    const index = this.#nextMember++;
    if (members.isSure(index) && this.#holds(members.users.firstOf(index)) === 'surely') {
      this.#finish(true);
    }
  }

  #holds(user: number): 'surely' | 'maybe' | 'no' {
    const holders = this.#holders as MemberSearch;
    const index = holders.users.find(user, 0);
    if (holders.isWildcardSure || (index >= 0 && holders.isSure(index))) return 'surely';
    return holders.hasWildcard || index >= 0 ? 'maybe' : 'no';
  }

  #stepConfirm(sliceEndMs: number): boolean {
    const members = this.#members as MemberSearch;
    if (this.#confirmation === undefined) {
      if (this.#nextMember >= members.users.size) {
        this.#finish(false);
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
    const isTrue = this.#confirmation.outcome.value === TRUE;
    if (isTrue && !this.#confirmsObject) {
      this.#confirmsObject = true;
      this.#confirmation.start(this.#object.entity, this.#object.relation);
      return true;
    }
    if (isTrue) this.#finish(true);
    this.#confirmation = undefined;
    this.#nextMember++;
    return true;
  }
}
