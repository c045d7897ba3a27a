import { BACKSTOP_DEPTH } from '../bound/evaluator-api.ts';
import { type Scope, type Target, type Value } from '../bound/scope.ts';
import { CheckRun } from './check-run.ts';
import type { ObjectWalk } from './object-walk.ts';
import { SharedValues, UNCLEAR } from './shared-values.ts';

/** Usersets that are visited between two clock reads: some ten microseconds. */
const STEPS_PER_CLOCK_READ = 16;

/**
 * Checks of one target on many objects, which share the values that they rest on (`SharedValues`). The rest is checked
 * object by object. Such checks share their values, too, until the depth bound has shown itself, or a cycle of so many
 * usersets that it may have decided. Then one check may have found more than another one would find from its own
 * start, and a list must match Check on each object alone. So each later check is independent.
 */
export class ObjectCheck {
  readonly #scope: Scope;
  readonly #target: Target;
  readonly #relation: number;
  readonly #shared: SharedValues;
  #run: CheckRun | undefined;
  #entity = 0;
  #steps = 0;
  #isShared = true;
  #isAlone = false;

  /** `walk` began at the target, which is a user or exact, and has ended. */
  constructor(scope: Scope, target: Target, relation: number, walk: ObjectWalk) {
    this.#scope = scope;
    this.#target = target;
    this.#relation = relation;
    this.#shared = new SharedValues(scope, target, walk);
  }

  /** Check's decision on the object that was started last, once `run` returned 'done'. */
  get value(): Value {
    const { value } = this.#shared;
    if (this.#isShared && value !== UNCLEAR) return value;
    if (this.#run === undefined) throw new Error('assertion failed: an object was checked');
    return this.#run.outcome.value;
  }

  start(entity: number): void {
    this.#entity = entity;
    this.#isShared = true;
    this.#shared.start(entity, this.#relation);
  }

  /** Runs like `EvaluationTask.run`. Errors: BUDGET_EXHAUSTED. */
  run(sliceEndMs: number): 'done' | 'more' {
    if (this.#isShared) {
      if (this.#runShared(sliceEndMs) === 'more') return 'more';
      if (this.#shared.value !== UNCLEAR) return 'done';
      this.#isShared = false;
      this.#startOwn();
    }
    return this.#runOwn(sliceEndMs);
  }

  #runShared(sliceEndMs: number): 'done' | 'more' {
    for (;;) {
      const isMore = this.#shared.step();
      // Counted over all objects: most take a step or two.
      this.#steps++;
      if (this.#steps % STEPS_PER_CLOCK_READ === 0) {
        if (this.#scope.clock.monotonicMs() >= sliceEndMs) return 'more';
      }
      if (!isMore) return 'done';
    }
  }

  #startOwn(): void {
    if (this.#run === undefined || this.#isAlone) {
      this.#run = new CheckRun(this.#scope, this.#target);
    }
    this.#run.start(this.#entity, this.#relation);
  }

  #runOwn(sliceEndMs: number): 'done' | 'more' {
    if (this.#run?.run(sliceEndMs) === 'more') return 'more';
    const { backstops, hasDeepCycle } = this.#scope;
    const isShown = hasDeepCycle || (backstops & BACKSTOP_DEPTH) !== 0;
    if (this.#isAlone || !isShown) return 'done';
    this.#isAlone = true;
    this.#startOwn();
    return this.#runOwn(sliceEndMs);
  }
}
