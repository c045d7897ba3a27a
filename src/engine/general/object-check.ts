import { BACKSTOP_CYCLE, BACKSTOP_DEPTH } from '../bound/evaluator-api.ts';
import { type Scope, TRUE } from '../bound/scope.ts';
import { CheckRun } from './check-run.ts';

/**
 * Checks of one user on many objects. They share what they find out until the depth bound or a cycle has shown itself: where
 * those decide, what one check found may be more than another one would find from where it begins, and a list
 * must say what Check says of each object alone. From then on each check is one of its own.
 */
export class ObjectCheck {
  readonly #scope: Scope;
  readonly #userNode: number;
  readonly #relation: number;
  #run: CheckRun;
  #entity = 0;
  #isAlone = false;

  /** `userNode` 0: a user whom no tuple names. */
  constructor(scope: Scope, userNode: number, relation: number) {
    this.#scope = scope;
    this.#userNode = userNode;
    this.#relation = relation;
    this.#run = this.#create();
  }

  /** Whether the user holds the object that was started last, once `run` said 'done'. */
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
    const isShown = (this.#scope.backstops & (BACKSTOP_DEPTH | BACKSTOP_CYCLE)) !== 0;
    if (this.#isAlone || !isShown) return 'done';
    this.#isAlone = true;
    this.start(this.#entity);
    return this.#run.run(sliceEndMs);
  }

  #create(): CheckRun {
    return new CheckRun(this.#scope, {
      userNode: this.#userNode,
      setEntity: 0,
      setRelation: 0,
    });
  }
}
