import { BACKSTOP_BUDGET, type EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import type { QueryGround } from './query-spec.ts';

/** Queries that are decided one after the other. */
export interface DecisionSource<Decision> {
  /** Begins the next one; undefined after the last. */
  next(): EvaluationTask<Decision> | undefined;
  /** Called with the decision of the one that began last. */
  decided(decision: Decision): void;
}

/** Decisions between two clock reads, where none of them takes long. */
const DECISIONS_PER_CLOCK_READ = 16;

/**
 * Decides query after query, each within the read budget and all within that of a BatchCheck. A list is complete or
 * an error, so the first query that cannot be decided fails it.
 */
export class DecideEach<Decision, T> implements EvaluationTask<T> {
  backstops = 0;
  readonly #ground: QueryGround;
  readonly #readsMax: number;
  readonly #source: DecisionSource<Decision>;
  readonly #result: () => T;
  #reads = 0;
  #decisions = 0;
  #task: EvaluationTask<Decision> | undefined;

  constructor(ground: QueryGround, source: DecisionSource<Decision>, result: () => T) {
    this.#ground = ground;
    this.#readsMax = ground.readBudget * ground.context.batchBudgetFactor;
    this.#source = source;
    this.#result = result;
  }

  get reads(): number {
    return this.#reads + (this.#task?.reads ?? 0);
  }

  result(): T {
    return this.#result();
  }

  /** Errors: BUDGET_EXHAUSTED. */
  run(sliceEndMs: number): 'done' | 'more' {
    for (;;) {
      this.#task ??= this.#source.next();
      const task = this.#task;
      if (task === undefined) return 'done';
      if (this.#reads >= this.#readsMax) throw this.#exhausted();
      if (this.#run(task, sliceEndMs) === 'more') return 'more';
      this.backstops |= task.backstops;
      this.#reads += task.reads ?? 0;
      this.#task = undefined;
      this.#source.decided(task.result());
      this.#decisions++;
      if (this.#decisions % DECISIONS_PER_CLOCK_READ !== 0) continue;
      if (this.#ground.context.clock.monotonicMs() >= sliceEndMs) return 'more';
    }
  }

  #run(task: EvaluationTask<Decision>, sliceEndMs: number): 'done' | 'more' {
    try {
      return task.run(sliceEndMs);
    } catch (error) {
      this.backstops |= task.backstops;
      throw error;
    }
  }

  #exhausted(): AppError {
    this.backstops |= BACKSTOP_BUDGET;
    const limit = String(this.#readsMax);
    return new AppError<AuthzReason>(
      'BUDGET_EXHAUSTED',
      `${this.#decisions} decisions exceeded the read budget of ${limit} for all of them`,
      { limit },
    );
  }
}
