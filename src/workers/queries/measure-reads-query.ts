import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import { guarded } from '../../engine/general-evaluator.ts';
import { ExpandRun } from '../../engine/general/expand.ts';
import { ListEntitiesRun } from '../../engine/general/list-objects-run.ts';
import { EMPTY_NAME } from '../../model/tuple-reader.ts';
import type { ReadsMeasured } from '../../protocol/queries.ts';
import type { RefusedQuery } from '../../protocol/read-figures.ts';
import { AppError } from '../../shared/app-error.ts';
import type { QueryGround, QuerySpec } from './query-spec.ts';

/**
 * How many reads a query takes where nothing is remembered of those before it: the general evaluation reads no cached
 * memberships. Counted nowhere, as an operator asks and no caller of the project.
 */
export const measureReadsQuery: QuerySpec<'measureReads'> = {
  isLong: () => true,
  start: (ground, { asked }) => new MeasureTask(startAsked(ground, asked)),
};

class MeasureTask implements EvaluationTask<ReadsMeasured> {
  readonly backstops = 0;
  readonly #task: EvaluationTask<unknown>;
  #isExhausted = false;

  constructor(task: EvaluationTask<unknown>) {
    this.#task = task;
  }

  /** Errors: those of the query but BUDGET_EXHAUSTED, which is a result here. */
  run(sliceEndMs: number): 'done' | 'more' {
    try {
      return this.#task.run(sliceEndMs);
    } catch (error) {
      if (!(error instanceof AppError) || error.reason !== 'BUDGET_EXHAUSTED') throw error;
      this.#isExhausted = true;
      return 'done';
    }
  }

  result(): ReadsMeasured {
    return { reads: this.#task.reads ?? 0, isExhausted: this.#isExhausted };
  }
}

function startAsked(ground: QueryGround, asked: RefusedQuery): EvaluationTask<unknown> {
  const { evaluator, model, nowMs, readBudget } = ground;
  if (asked.kind === 'check') return evaluator.startCheck(asked, nowMs, readBudget);
  const { namespace, relation } = asked;
  const scope = evaluator.scope(`${namespace}#${relation}`, '', nowMs, readBudget);
  if (asked.kind === 'expand') return guarded(scope, new ExpandRun(scope, model, asked));
  const { reader } = evaluator;
  const userEntity = reader.entityId(EMPTY_NAME, asked.userId);
  const user = userEntity === 0 ? 0 : reader.nodeId(userEntity, EMPTY_NAME);
  const names = [reader.nameId(namespace), reader.nameId(relation)] as const;
  return guarded(scope, new ListEntitiesRun(scope, ...names, user));
}
