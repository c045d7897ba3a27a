import { BACKSTOP_DEPTH } from '../bound/evaluator-api.ts';
import { type Scope, type Target, TRUE } from '../bound/scope.ts';
import { CheckRun } from './check-run.ts';

/**
 * Checks of one target on many objects. They share what they find out until the depth bound has shown itself, or a cycle
 * of so many usersets that it may have decided: where it does, what one check found may be more than another one would
 * find from where it begins, and a list must say what Check says of each object alone. From then on each check is one of its own.
 */
export class ObjectCheck {
  readonly #scope: Scope;
  readonly #target: Target;
  readonly #relation: number;
  #run: CheckRun;
  #entity = 0;
  #isAlone = false;

  constructor(scope: Scope, target: Target, relation: number) {
    this.#scope = scope;
    this.#target = target;
    this.#relation = relation;
    this.#run = this.#create();
  }

  /** Whether the target holds the object that was started last, once `run` said 'done'. */
  get isHeld(): boolean {
    return this.#run.outcome.value === TRUE;
  }

  start(entity: number): void {
    this.#entity = entity;
    if (this.#isAlone) this.#run = this.#create();
    this.#run.start(entity, this.#relation);
  }

  /** As `EvaluationTask.run`. Errors: BUDGET_EXHAUSTED. */
  run(sliceEndMs: number): 'done' | 'more' {
    if (this.#run.run(sliceEndMs) === 'more') return 'more';
    const { backstops, hasDeepCycle } = this.#scope;
    const isShown = hasDeepCycle || (backstops & BACKSTOP_DEPTH) !== 0;
    if (this.#isAlone || !isShown) return 'done';
    this.#isAlone = true;
    this.start(this.#entity);
    return this.#run.run(sliceEndMs);
  }

  #create(): CheckRun {
    return new CheckRun(this.#scope, this.#target);
  }
}
