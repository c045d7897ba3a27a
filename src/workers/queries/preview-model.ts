import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import { TRUE, type Value } from '../../engine/bound/scope.ts';
import type { GeneralEvaluator } from '../../engine/general-evaluator.ts';
import { admittedOnly } from '../../model/namespace/model-references.ts';
import { parseModel } from '../../model/namespace/namespace-model.ts';
import {
  PREVIEW_AFTER,
  PREVIEW_BEFORE,
  PREVIEW_FAILED,
  type QueryArgs,
  type UserQuery,
} from '../../protocol/queries.ts';
import { AppError } from '../../shared/app-error.ts';
import type { QueryGround, QuerySpec } from './query-spec.ts';

/** Queries under two models over one revision. The previewed one lives as long as this query. */
export const previewModel: QuerySpec<'previewModel'> = {
  rpc: 'PreviewModel',
  countsItems: true,
  isLong: () => true,
  start: (ground, args) => new PreviewTask(ground, args),
};

/** Each query under the model in force, then under the other one, with the budget of a Check. */
class PreviewTask implements EvaluationTask<Uint8Array> {
  readonly #ground: QueryGround;
  readonly #queries: readonly UserQuery[];
  readonly #outcomes: Uint8Array;
  readonly #before: GeneralEvaluator;
  readonly #after: GeneralEvaluator;
  readonly #readsMax: number;
  #answered = 0;
  #reads = 0;
  #task: EvaluationTask<Value> | null = null;
  /** The decision of the current query under the model in force; null: not asked yet. */
  #allowedBefore: boolean | null = null;

  constructor(ground: QueryGround, { modelJson, queries }: QueryArgs['previewModel']) {
    this.#ground = ground;
    this.#queries = queries;
    this.#outcomes = new Uint8Array(queries.length);
    this.#before = ground.evaluator;
    // The model as it will be in force: tuples that it does not admit are refused or ignored.
    this.#after = ground.under(admittedOnly(parseModel(modelJson)));
    // Beyond it the shard's other calls have waited long enough: the rest is asked in another call.
    this.#readsMax = ground.readBudget * ground.context.batchBudgetFactor;
  }

  get backstops(): number {
    return 0;
  }

  get reads(): number {
    return this.#reads;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    const { clock } = this.#ground.context;
    for (;;) {
      const query = this.#queries[this.#answered];
      if (query === undefined) return 'done';
      // One query at least, so that whoever asks again gets on.
      if (this.#reads >= this.#readsMax && this.#answered > 0 && this.#task === null) return 'done';
      this.#task ??= this.#start(query);
      const allowed = allowedBy(this.#task, sliceEndMs);
      if (allowed === 'more') return 'more';
      this.#reads += this.#task.reads ?? 0;
      this.#ground.context.stats.evaluated('PreviewModel', this.#task);
      this.#task = null;
      this.#answer(allowed);
      if (clock.monotonicMs() >= sliceEndMs) return 'more';
    }
  }

  result(): Uint8Array {
    return this.#outcomes.slice(0, this.#answered);
  }

  #start({ userId, ...wanted }: UserQuery): EvaluationTask<Value> {
    const { nowMs, readBudget } = this.#ground;
    const query = { ...wanted, subject: { kind: 'user', userId } } as const;
    const evaluator = this.#allowedBefore === null ? this.#before : this.#after;
    return evaluator.startDecision(query, nowMs, readBudget);
  }

  /** One model's answer to the query at hand; null: it has none. */
  #answer(allowed: boolean | null): void {
    if (allowed !== null && this.#allowedBefore === null) {
      this.#allowedBefore = allowed;
      return;
    }
    const bits = (this.#allowedBefore ? PREVIEW_BEFORE : 0) | (allowed ? PREVIEW_AFTER : 0);
    this.#outcomes[this.#answered] = allowed === null ? PREVIEW_FAILED : bits;
    this.#answered += 1;
    this.#allowedBefore = null;
  }
}

/** Continues an evaluation; null if its budget does not suffice. */
function allowedBy(task: EvaluationTask<Value>, sliceEndMs: number): boolean | null | 'more' {
  try {
    return task.run(sliceEndMs) === 'more' ? 'more' : task.result() === TRUE;
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  }
}
