import { BACKSTOP_BUDGET, type EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import { UNDETERMINED, TRUE, type Value } from '../../engine/bound/scope.ts';
import { missingPart } from '../../model/namespace/unknown-relation.ts';
import type { BatchedQuery, ItemDecision, QueryRpc } from '../../protocol/queries.ts';
import { AppError } from '../../shared/app-error.ts';
import { countRefusal } from '../jobs/evaluation-job.ts';
import { isUnknown } from './known-relation.ts';
import type { Decider, QueryGround } from './query-spec.ts';

/** Items between two clock reads: each reads it itself where it takes long. */
const ITEMS_PER_CLOCK_READ = 8;

/** Queries that are decided together. */
export type ManyQueries = {
  /** Under which reads, backstops and errors of items are counted. */
  readonly rpc: QueryRpc;
  readonly items: readonly BatchedQuery[];
  /** Context of items without one of their own. */
  readonly contextJson: string;
  /** Whether usersets are asked about exactly: CheckQuery. */
  readonly isExact?: boolean | undefined;
  /** Whether they count as decisions of their namespace and relation. */
  readonly isDecision: boolean;
};

/**
 * The decisions of many queries over one revision and one `now`. Each has a read budget of its own, and all
 * together that of a BatchCheck, after which the items not reached get its error. An item that cannot be decided fails alone.
 */
export class ManyDecisions implements EvaluationTask<readonly ItemDecision[]> {
  readonly #decider: Decider;
  readonly #ground: QueryGround;
  readonly #asked: ManyQueries;
  readonly #readsMax: number;
  readonly #results: ItemDecision[] = [];
  #task: EvaluationTask<Value> | null = null;
  /** Whether the model lacks the relation of the item at work. */
  #isUnknown = false;
  #reads = 0;
  #isExhausted = false;

  constructor(decider: Decider, ground: QueryGround, asked: ManyQueries) {
    this.#decider = decider;
    this.#ground = ground;
    this.#asked = asked;
    this.#readsMax = ground.readBudget * ground.context.batchBudgetFactor;
  }

  /** Each item counts its own. */
  get backstops(): number {
    return 0;
  }

  get reads(): number {
    return this.#reads;
  }

  result(): readonly ItemDecision[] {
    return this.#results;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    const { items } = this.#asked;
    const { clock } = this.#ground.context;
    for (let steps = 1; ; steps++) {
      const item = items[this.#results.length];
      if (item === undefined) return 'done';
      if (this.#task === null && this.#reads >= this.#readsMax) this.#notReached(item);
      else if (!this.#step(item, sliceEndMs)) return 'more';
      if (steps % ITEMS_PER_CLOCK_READ === 0 && clock.monotonicMs() >= sliceEndMs) return 'more';
    }
  }

  /** Continues with an item; false if the slice ended within it. */
  #step(item: BatchedQuery, sliceEndMs: number): boolean {
    try {
      this.#task ??= this.#start(item);
      if (this.#task.run(sliceEndMs) === 'more') return false;
      const value = this.#task.result();
      const unknownRelation = this.#isUnknown;
      const allowed = value === TRUE;
      this.#decided(item, {
        allowed,
        undecided: value === UNDETERMINED,
        error: '',
        errorReason: '',
        unknownRelation,
      });
    } catch (error) {
      // The error that Check would return; an unexpected one fails this item alone.
      const isKnown = error instanceof AppError;
      this.#failed(
        item,
        isKnown ? error.reason : 'INTERNAL',
        isKnown ? error.message : 'internal error',
      );
      // The request's own tuples are not kept, so it cannot be asked again.
      countRefusal(this.#ground.context.stats, this.#asked.rpc, error, () => null);
    }
    if (this.#task !== null) {
      this.#reads += this.#task.reads ?? 0;
      this.#ground.context.stats.evaluated(this.#asked.rpc, this.#task);
      this.#task = null;
    }
    return true;
  }

  #start(item: BatchedQuery): EvaluationTask<Value> {
    const { namespace, objectId, relation, subject, context } = item;
    this.#isUnknown = isUnknown(this.#ground, 'question.', namespace, relation);
    const contextJson = context ?? this.#asked.contextJson;
    const { isExact } = this.#asked;
    const query = { namespace, objectId, relation, subject, contextJson, isExact };
    return this.#decider.startDecision(query, this.#ground.nowMs, this.#ground.readBudget);
  }

  #decided(item: BatchedQuery, decision: ItemDecision): void {
    this.#results.push(decision);
    if (this.#asked.isDecision) this.#counter(item)[decision.allowed ? 'allowed' : 'denied'] += 1;
  }

  #failed(item: BatchedQuery, reason: string, error: string): void {
    const { model } = this.#ground;
    const unknownRelation = missingPart(model, item.namespace, item.relation) !== undefined;
    this.#results.push({
      allowed: false,
      undecided: false,
      error,
      errorReason: reason,
      unknownRelation,
    });
    this.#ground.context.stats.error(this.#asked.rpc, reason);
    if (this.#asked.isDecision) this.#counter(item).error += 1;
  }

  #notReached(item: BatchedQuery): void {
    const relation = `${item.namespace}#${item.relation}`;
    if (!this.#isExhausted) this.#batchRefused(relation);
    this.#isExhausted = true;
    const text = `evaluation of ${relation} was not reached within the batch's read budget of ${this.#readsMax}`;
    this.#failed(item, 'BUDGET_EXHAUSTED', text);
  }

  #batchRefused(relation: string): void {
    const { stats } = this.#ground.context;
    stats.backstops(BACKSTOP_BUDGET);
    const limit = this.#readsMax;
    const query = (): null => null;
    stats.refused({ rpc: this.#asked.rpc, relation, limit, bound: 'batch', query });
  }

  #counter({ namespace, relation }: BatchedQuery) {
    return this.#ground.context.stats.counter(this.#ground.model, namespace, relation);
  }
}
