import type { EvaluationTask } from '../bound/evaluator-api.ts';
import type { Scope } from '../bound/scope.ts';
import type { Steps } from '../general/gate-system.ts';

/** Steps between two clock reads; each takes some ten microseconds at most. */
const STEPS_PER_CLOCK_READ = 4;

/** Work that yields after every small piece, as a task that ends at the end of a slice. */
export class StepsTask<T> implements EvaluationTask<T> {
  readonly #scope: Scope;
  readonly #steps: Steps<T>;
  #result: { readonly value: T } | undefined;

  constructor(scope: Scope, steps: Steps<T>) {
    this.#scope = scope;
    this.#steps = steps;
  }

  get backstops(): number {
    return this.#scope.backstops;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    for (let steps = 1; this.#result === undefined; steps++) {
      const step = this.#steps.next();
      if (step.done === true) this.#result = { value: step.value };
      else if (steps % STEPS_PER_CLOCK_READ === 0 && this.#isOver(sliceEndMs)) return 'more';
    }
    return 'done';
  }

  result(): T {
    if (this.#result === undefined) throw new Error('assertion failed: the task is done');
    return this.#result.value;
  }

  #isOver(sliceEndMs: number): boolean {
    return this.#scope.clock.monotonicMs() >= sliceEndMs;
  }
}

/** Runs a task as steps of a larger one. Errors: those of the task. */
export function* stepsOf(task: {
  readonly run: (sliceEndMs: number) => 'done' | 'more';
}): Steps<void> {
  // A slice that is over already: each call does the least that it can.
  while (task.run(0) === 'more') yield;
}
