import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import { TRUE, UNDETERMINED, type Value } from '../../engine/bound/scope.ts';
import type { Decision, QueryArgs } from '../../protocol/queries.ts';
import type { PairCounter } from '../counts/unknown-counts.ts';
import { countedUnknown } from './known-relation.ts';
import type { QueryGround, QuerySpec } from './query-spec.ts';

/** Check with contextual tuples, and whether a deny is undecided. */
export const checkQuery: QuerySpec<'check'> = {
  rpc: 'QueryCheck',
  isLong: () => false,
  refusedQuery: ({ query, contextual, context, isExact }) =>
    contextual.length === 0 ? { kind: 'check', ...query, contextJson: context, isExact } : null,
  start: startCheckQuery,
};

function startCheckQuery(
  ground: QueryGround,
  { query: wanted, context: contextJson, isExact }: QueryArgs['check'],
): EvaluationTask<Decision> {
  const { decider, model, nowMs, readBudget, context } = ground;
  const { namespace, objectId, relation, subject } = wanted;
  const query = { namespace, objectId, relation, subject, contextJson, isExact };
  const counter = context.stats.counter(model, namespace, relation);
  const unknownRelation = countedUnknown(ground, counter, 'question.', namespace, relation);
  const task = decider.startDecision(query, nowMs, readBudget);
  return new CheckDecision(task, counter, unknownRelation);
}

class CheckDecision implements EvaluationTask<Decision> {
  readonly #task: EvaluationTask<Value>;
  readonly #counter: PairCounter;
  readonly #unknownRelation: boolean;

  constructor(task: EvaluationTask<Value>, counter: PairCounter, unknownRelation: boolean) {
    this.#task = task;
    this.#counter = counter;
    this.#unknownRelation = unknownRelation;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    const counter = this.#counter;
    try {
      if (this.#task.run(sliceEndMs) === 'more') return 'more';
    } catch (error) {
      counter.error += 1;
      throw error;
    }
    if (this.#task.result() === TRUE) counter.allowed += 1;
    else counter.denied += 1;
    return 'done';
  }

  result(): Decision {
    const value = this.#task.result();
    const unknownRelation = this.#unknownRelation;
    return { allowed: value === TRUE, undecided: value === UNDETERMINED, unknownRelation };
  }

  get backstops(): number {
    return this.#task.backstops;
  }

  get reads(): number | undefined {
    return this.#task.reads;
  }
}
