import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import { UNDETERMINED, FALSE, TRUE, type Value } from '../../engine/bound/scope.ts';
import { guarded } from '../../engine/general-evaluator.ts';
import { relationsOf } from '../../engine/lists/relations-of.ts';
import { StepsTask } from '../../engine/lists/steps-task.ts';
import type { QueryArgs, QueryResults } from '../../protocol/queries.ts';
import { DecideEach } from './decide-each.ts';
import { checkNamed } from './known-relation.ts';
import type { QueryGround, QuerySpec } from './query-spec.ts';

/** Lists the relations that a subject holds on an object: of each the decision of Check. */
export const listRelationsQuery: QuerySpec<'listRelations'> = {
  rpc: 'ListRelations',
  isLong: () => true,
  start: (ground, args) => new ListRelations(ground, args),
};

type Result = QueryResults['listRelations'];

class ListRelations implements EvaluationTask<Result> {
  readonly #ground: QueryGround;
  readonly #args: QueryArgs['listRelations'];
  /** Finds the relations, where the request does not name them. */
  readonly #search: EvaluationTask<ReadonlySet<string>>;
  #decisions: EvaluationTask<Result> | undefined;

  constructor(ground: QueryGround, args: QueryArgs['listRelations']) {
    this.#ground = ground;
    this.#args = args;
    const { evaluator, model, nowMs, readBudget } = ground;
    const { namespace, objectId } = args;
    checkNamed(ground, args.namespace, args.relations);
    const scope = evaluator.scope(`relations of ${namespace}`, '', nowMs, readBudget);
    const steps = relationsOf(scope, model, namespace, objectId);
    this.#search = guarded(scope, new StepsTask(scope, steps));
    if (args.relations.length > 0) this.#decisions = this.#decide(new Set(args.relations));
  }

  get backstops(): number {
    return this.#search.backstops | (this.#decisions?.backstops ?? 0);
  }

  get reads(): number {
    return (this.#search.reads ?? 0) + (this.#decisions?.reads ?? 0);
  }

  result(): Result {
    if (this.#decisions === undefined) throw new Error('assertion failed: the list is complete');
    return this.#decisions.result();
  }

  run(sliceEndMs: number): 'done' | 'more' {
    if (this.#decisions === undefined) {
      if (this.#search.run(sliceEndMs) === 'more') return 'more';
      this.#decisions = this.#decide(this.#search.result());
    }
    return this.#decisions.run(sliceEndMs);
  }

  #decide(relations: ReadonlySet<string>): EvaluationTask<Result> {
    const { decider, nowMs, readBudget } = this.#ground;
    const { namespace, objectId, subject, context: contextJson, isExact } = this.#args;
    const lists: Record<Value, string[]> = { [FALSE]: [], [TRUE]: [], [UNDETERMINED]: [] };
    // Names are ASCII: the order of UTF-16 is that of bytes.
    const sorted = [...relations].sort();
    let position = -1;
    const next = (): EvaluationTask<Value> | undefined => {
      position++;
      const relation = sorted[position];
      if (relation === undefined) return undefined;
      const query = { namespace, objectId, relation, subject, contextJson, isExact };
      return decider.startDecision(query, nowMs, readBudget);
    };
    const decided = (value: Value): void => void lists[value].push(sorted[position] as string);
    return new DecideEach(this.#ground, { next, decided }, () => ({
      relations: lists[TRUE],
      undecidedRelations: lists[UNDETERMINED],
    }));
  }
}
