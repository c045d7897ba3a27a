import { BACKSTOP_BUDGET, CHECK_ALLOWED, CHECK_GENERAL } from '../engine/evaluator-api.ts';
import type { EvaluationTask } from '../engine/evaluator-api.ts';
import type { Evaluator } from '../engine/evaluator.ts';
import { AppError } from '../shared/app-error.ts';
import type { DecisionStats, PairCounter } from './decision-stats.ts';
import type { Bound, JobContext, PairNames } from './job-context.ts';

/** Items between two looks at the clock: about 20 µs. */
const ITEMS_PER_CLOCK_LOOK = 16;

export const ITEM_DENIED = 0;
export const ITEM_ALLOWED = 1;
export const ITEM_ERROR = 2;

/** The questions of a batch as ids of the index; `load(i)` sets the fields of item i. */
export interface ItemSource extends PairNames {
  readonly count: number;
  /** Name ids, -1 where nothing mentions the name. */
  namespace: number;
  relation: number;
  /** Entity ids, 0 where nothing mentions the entity. */
  object: number;
  user: number;
  load(index: number): void;
}

export type BatchLimits = {
  readonly readBudget: number;
  readonly totalBudget: number;
  readonly nowMs: number;
};

/**
 * Evaluates the items of one batch over one revision and one `now`, in slices. Hot: per item no
 * allocation unless the item needs the general evaluation. The outcome of item i is `outcomes[i]`,
 * its error text `errors.get(i)`. It borrows an evaluator only while an item is suspended: between
 * items it takes the shard's own, whose caches are warm, where each batch would else warm another.
 */
export class BatchEvaluation {
  readonly outcomes: Uint8Array;
  readonly errors = new Map<number, string>();
  readonly #source: ItemSource;
  readonly #context: JobContext;
  readonly #bound: Bound;
  #evaluator: Evaluator;
  /** Whether a suspended task has the evaluator for itself. */
  #isLent = false;
  readonly #stats: DecisionStats;
  readonly #limits: BatchLimits;
  #next = 0;
  #reads = 0;
  #task: EvaluationTask<boolean> | null = null;
  #counter: PairCounter;
  #counterNamespace = -2;
  #counterRelation = -2;

  constructor(source: ItemSource, context: JobContext, bound: Bound, limits: BatchLimits) {
    this.outcomes = new Uint8Array(source.count);
    this.#source = source;
    this.#context = context;
    this.#bound = bound;
    this.#evaluator = bound.evaluator;
    this.#stats = context.stats;
    this.#limits = limits;
    this.#counter = context.stats.other;
  }

  /** Works until every item has an outcome or the slice has ended. */
  run(sliceEndMs: number): 'done' | 'more' {
    const source = this.#source;
    const { readBudget, nowMs } = this.#limits;
    if (!this.#isLent) this.#evaluator = this.#bound.evaluator;
    let evaluator = this.#evaluator;
    const { count } = source;
    const evalReads = this.#stats.reads.BatchCheck;
    while (this.#next < count) {
      const index = this.#next;
      if (this.#task === null) {
        if (this.#reads >= this.#limits.totalBudget) {
          this.#exhaust();
          return 'done';
        }
        source.load(index);
        this.#count(index);
        const { object, relation, user } = source;
        const answer = evaluator.checkUser(object, relation, user, nowMs, readBudget);
        if (answer === CHECK_GENERAL) {
          this.#task = evaluator.startCheckIds(object, relation, user, nowMs, readBudget);
        } else {
          const reads = evaluator.lastReads;
          this.#reads += reads;
          evalReads.add(reads);
          if (evaluator.lastBackstops !== 0) this.#stats.backstops(evaluator.lastBackstops);
          this.#decided(index, answer === CHECK_ALLOWED);
        }
      }
      if (this.#task !== null) {
        if (this.#runTask(index, this.#task, sliceEndMs) === 'more') {
          this.#lend();
          return 'more';
        }
        evaluator = this.#evaluator;
      }
      this.#next += 1;
      if (this.#next % ITEMS_PER_CLOCK_LOOK === 0 && performance.now() >= sliceEndMs) {
        return this.#next < count ? 'more' : 'done';
      }
    }
    return 'done';
  }

  #runTask(index: number, task: EvaluationTask<boolean>, sliceEndMs: number): 'done' | 'more' {
    try {
      if (task.run(sliceEndMs) === 'more') return 'more';
      this.#decided(index, task.result());
    } catch (error) {
      // What Check would have answered; anything unforeseen stays inside this item.
      const isKnown = error instanceof AppError;
      this.#failed(index, isKnown ? error.message : 'internal error');
      this.#stats.error('BatchCheck', isKnown ? error.reason : 'INTERNAL');
    }
    const reads = task.reads ?? 0;
    this.#reads += reads;
    this.#stats.reads.BatchCheck.add(reads);
    if (task.backstops !== 0) this.#stats.backstops(task.backstops);
    this.#task = null;
    this.#giveBack();
    return 'done';
  }

  #lend(): void {
    if (this.#isLent) return;
    this.#isLent = true;
    this.#bound.lend(this.#evaluator);
  }

  #giveBack(): void {
    if (!this.#isLent) return;
    this.#isLent = false;
    this.#bound.giveBack(this.#evaluator);
    this.#evaluator = this.#bound.evaluator;
  }

  #decided(index: number, isAllowed: boolean): void {
    if (isAllowed) {
      this.outcomes[index] = ITEM_ALLOWED;
      this.#counter.allowed += 1;
    } else {
      this.outcomes[index] = ITEM_DENIED;
      this.#counter.denied += 1;
    }
  }

  #failed(index: number, text: string): void {
    this.outcomes[index] = ITEM_ERROR;
    this.errors.set(index, text);
    this.#counter.error += 1;
  }

  /** The items not reached say that the batch's own budget ended. */
  #exhaust(): void {
    const source = this.#source;
    for (let index = this.#next; index < source.count; index++) {
      source.load(index);
      this.#count(index);
      const relation = `${source.namespaceText(index)}#${source.relationText(index)}`;
      this.#failed(
        index,
        `evaluation of ${relation} was not reached within the batch's read budget of ${this.#limits.totalBudget}`,
      );
      this.#stats.error('BatchCheck', 'BUDGET_EXHAUSTED');
    }
    this.#stats.backstops(BACKSTOP_BUDGET);
    this.#next = source.count;
  }

  /** Finds the counter of the item's names, which mostly are those of the item before. */
  #count(index: number): void {
    const source = this.#source;
    const { namespace, relation } = source;
    if (namespace === this.#counterNamespace && relation === this.#counterRelation) return;
    this.#counterNamespace = namespace;
    this.#counterRelation = relation;
    this.#counter = this.#context.counterOf(this.#bound, namespace, relation, source, index);
  }
}
