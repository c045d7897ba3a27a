import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import { ExplainRun } from '../../engine/explain/explain-run.ts';
import type { QueryArgs, QueryResults } from '../../protocol/queries.ts';
import { isUnknown } from './known-relation.ts';
import type { QueryGround, QuerySpec } from './query-spec.ts';

/** Why Check answers as it does. */
export const explainQuery: QuerySpec<'explain'> = {
  rpc: 'Explain',
  // A deny reads every tuple that could have granted, and evaluates each remedy.
  isLong: () => true,
  start: startExplainQuery,
};

function startExplainQuery(
  ground: QueryGround,
  { query: wanted, contextual, context: contextJson, isExact, remediesMax }: QueryArgs['explain'],
): EvaluationTask<QueryResults['explain']> {
  const { namespace, objectId, relation, subject } = wanted;
  const unknownRelation = isUnknown(ground, 'question.', namespace, relation);
  const query = { namespace, objectId, relation, subject, contextJson, isExact };
  const { evaluator, model, nowMs, readBudget, context } = ground;
  const held = contextual.map((tuple) => ({ op: 'insert' as const, tuple }));
  const explained = {
    evaluator,
    // The request's tuples take precedence over what is stored, so a remedy counts only where they allow it.
    withTuple: (tuple: (typeof contextual)[number]) =>
      ground.over([{ op: 'insert', tuple }, ...held]),
    model,
    contextual,
    nowMs,
    readBudget,
  };
  const run = new ExplainRun(explained, query, remediesMax, context.clock);
  return new ExplainTask(run, unknownRelation);
}

class ExplainTask implements EvaluationTask<QueryResults['explain']> {
  readonly #run: ExplainRun;
  readonly #unknownRelation: boolean;

  constructor(run: ExplainRun, unknownRelation: boolean) {
    this.#run = run;
    this.#unknownRelation = unknownRelation;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    return this.#run.run(sliceEndMs);
  }

  result(): QueryResults['explain'] {
    return { ...this.#run.result(), unknownRelation: this.#unknownRelation };
  }

  get backstops(): number {
    return this.#run.backstops;
  }

  get reads(): number {
    return this.#run.reads;
  }
}
