import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { GeneralEvaluator } from '../../engine/general-evaluator.ts';
import { OverlayReader } from '../../engine/overlay/overlay-reader.ts';
import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import type { TupleChange } from '../../model/relation-tuple.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import type { ScopeEntry } from '../../protocol/messages.ts';
import type { QueryArgs, QueryKind, QueryResults } from '../../protocol/queries.ts';
import type { DecisionStats } from '../counts/decision-stats.ts';
import type { BoundEngine } from '../jobs/bound-engine.ts';
import { type Asked, runCounted } from '../jobs/evaluation-job.ts';
import type { JobContext } from '../jobs/job-context.ts';
import { contextualChanges } from '../queries/contextual-changes.ts';
import type { QuerySpec } from '../queries/query-spec.ts';

/** Begins to evaluate a query over an index. Errors: TUPLE_NOT_ADMITTED, those of the kind. */
export function startQuery<K extends QueryKind>(
  context: JobContext,
  { readBudget, refusesUnknown }: ScopeEntry,
  spec: QuerySpec<K>,
  args: QueryArgs[K],
  bound: BoundEngine,
  reader: TupleReader,
): EvaluationTask<QueryResults[K]> {
  const over = (changes: readonly TupleChange[]): GeneralEvaluator =>
    changes.length === 0
      ? bound.evaluator.general
      : bound.evaluator.over(new OverlayReader(reader, changes));
  const evaluator = over(contextualChanges(bound.model, args.contextual));
  const ground = {
    evaluator,
    stored: bound.evaluator,
    decider: evaluator === bound.evaluator.general ? bound.evaluator : evaluator,
    model: bound.model,
    refusesUnknown: refusesUnknown === true,
    nowMs: context.clock.nowMs(),
    readBudget,
    context,
    over,
    under: (model: NamespaceModel) => bound.evaluator.under(model, new OverlayReader(reader, [])),
  };
  return spec.start(ground, args);
}

/** Runs the task of a query, and counts it where its kind is counted as a whole. Errors: those of the task. */
export function runQuery<K extends QueryKind>(
  stats: DecisionStats,
  { rpc, countsItems }: QuerySpec<K>,
  task: EvaluationTask<QueryResults[K]>,
  sliceEndMs: number,
  asked: Asked,
): 'done' | 'more' {
  return rpc === undefined || countsItems === true
    ? task.run(sliceEndMs)
    : runCounted(stats, rpc, task, sliceEndMs, asked);
}
