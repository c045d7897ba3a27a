import { BACKSTOP_BUDGET, CHECK_ALLOWED, CHECK_GENERAL } from '../../engine/bound/evaluator-api.ts';
import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { Evaluator } from '../../engine/evaluator.ts';
import { READ_AHEAD_MAX } from '../../engine/hot/read-ahead.ts';
import type { RefusedQuery } from '../../protocol/read-figures.ts';
import { AppError } from '../../shared/app-error.ts';
import type { DecisionStats } from '../counts/decision-stats.ts';
import type { ProjectReads } from '../counts/project-reads.ts';
import type { PairCounter } from '../counts/unknown-counts.ts';
import type { BoundEngine } from './bound-engine.ts';
import { countRefusal } from './evaluation-job.ts';
import type { JobContext, PairNames } from './job-context.ts';

/** Items that are looked up and read ahead together, between two clock reads: about 20 µs. */
export const CHUNK_ITEMS = READ_AHEAD_MAX;

export const ITEM_DENIED = 0;
export const ITEM_ALLOWED = 1;
export const ITEM_ERROR = 2;

/** Some items as ids of the index. */
export type ItemChunk = {
  /** Name ids, -1 where nothing mentions the name. */
  readonly namespaces: Int32Array;
  readonly relations: Int32Array;
  /** Entity ids, 0 where nothing mentions the entity. */
  readonly objects: Uint32Array;
  readonly users: Uint32Array;
};

/** The queries of a batch, in chunks. */
export interface ItemSource extends PairNames {
  readonly count: number;
  /** Puts `count` items from `first` on, at most CHUNK_ITEMS, to the start of `chunk`. Hot. */
  load(first: number, count: number, chunk: ItemChunk): void;
  /** The whole query of item `index`. */
  queryText(index: number): RefusedQuery;
}

/** An empty chunk. */
export function createItemChunk(): ItemChunk {
  return {
    namespaces: new Int32Array(CHUNK_ITEMS),
    relations: new Int32Array(CHUNK_ITEMS),
    objects: new Uint32Array(CHUNK_ITEMS),
    users: new Uint32Array(CHUNK_ITEMS),
  };
}

/** The chunk at work: one per thread, filled anew when a slice begins. */
const chunk = createItemChunk();

export type BatchLimits = {
  readonly readBudget: number;
  readonly totalBudget: number;
  readonly nowMs: number;
};

/**
 * Evaluates the items of one batch over one revision and one `now`, in slices. Hot: per item no allocation unless the
 * item needs the general evaluation. The outcome of item i is `outcomes[i]`, its error text `errors.get(i)`. It holds
 * an evaluator of its own only while an item is suspended. Between items it uses the shard's, whose caches are warm;
 * each batch would else warm another one.
 */
export class BatchEvaluation {
  readonly outcomes: Uint8Array;
  readonly errors = new Map<number, string>();
  readonly #source: ItemSource;
  readonly #context: JobContext;
  readonly #bound: BoundEngine;
  #evaluator: Evaluator;
  /** Whether a suspended task has the evaluator for itself. */
  #isDetached = false;
  readonly #stats: DecisionStats;
  /** Reads of the project in this slice. */
  #project: ProjectReads;
  readonly #limits: BatchLimits;
  #next = 0;
  #reads = 0;
  #task: EvaluationTask<boolean> | null = null;
  #isExhausted = false;
  #counter: PairCounter;
  #counterNamespace = -2;
  #counterRelation = -2;

  constructor(source: ItemSource, context: JobContext, bound: BoundEngine, limits: BatchLimits) {
    this.outcomes = new Uint8Array(source.count);
    this.#source = source;
    this.#context = context;
    this.#bound = bound;
    this.#evaluator = bound.evaluator;
    this.#stats = context.stats;
    this.#project = context.stats.project;
    this.#limits = limits;
    this.#counter = context.stats.other;
  }

  /** Works until every item has an outcome or the slice has ended. */
  run(sliceEndMs: number): 'done' | 'more' {
    if (!this.#isDetached) this.#evaluator = this.#bound.evaluator;
    this.#project = this.#stats.project;
    const task = this.#task;
    if (task !== null && this.#runTask(task, sliceEndMs) === 'more') return this.#suspend();
    const { count } = this.#source;
    while (this.#next < count) {
      if (this.#isExhausted) this.#exhaustChunk();
      else if (!this.#runChunk(sliceEndMs)) return this.#suspend();
      if (performance.now() >= sliceEndMs) break;
    }
    return this.#next < count ? 'more' : 'done';
  }

  /** Works off the next items. False if one of them was suspended. */
  #runChunk(sliceEndMs: number): boolean {
    const source = this.#source;
    const first = this.#next;
    const size = Math.min(CHUNK_ITEMS, source.count - first);
    const { namespaces, relations, objects, users } = chunk;
    source.load(first, size, chunk);
    this.#evaluator.readAhead(chunk, size);
    for (let i = 0; i < size; i++) {
      if (this.#reads >= this.#limits.totalBudget) {
        this.#isExhausted = true;
        this.#stats.backstops(BACKSTOP_BUDGET);
        this.#stats.refused({
          rpc: 'BatchCheck',
          relation: `${source.namespaceText(first + i)}#${source.relationText(first + i)}`,
          limit: this.#limits.totalBudget,
          bound: 'batch',
          query: () => null,
        });
        return true;
      }
      this.#count(first + i, namespaces[i] as number, relations[i] as number);
      const isDone = this.#check(
        objects[i] as number,
        relations[i] as number,
        users[i] as number,
        sliceEndMs,
      );
      if (!isDone) return false;
    }
    return true;
  }

  /** Decides the next item. False if it was suspended. */
  #check(object: number, relation: number, user: number, sliceEndMs: number): boolean {
    const evaluator = this.#evaluator;
    const { readBudget, nowMs } = this.#limits;
    const answer = evaluator.checkUser(object, relation, user, nowMs, readBudget);
    if (answer === CHECK_GENERAL) {
      const task = evaluator.startCheckIds(object, relation, user, nowMs, readBudget);
      this.#task = task;
      return this.#runTask(task, sliceEndMs) === 'done';
    }
    const reads = evaluator.lastReads;
    this.#reads += reads;
    this.#stats.reads.BatchCheck.add(reads);
    this.#project.answered(reads);
    if (evaluator.lastBackstops !== 0) this.#stats.backstops(evaluator.lastBackstops);
    this.#decided(answer === CHECK_ALLOWED);
    return true;
  }

  /** Continues with the item that needs the general evaluation. */
  #runTask(task: EvaluationTask<boolean>, sliceEndMs: number): 'done' | 'more' {
    try {
      if (task.run(sliceEndMs) === 'more') return 'more';
      this.#decided(task.result());
    } catch (error) {
      // The error that Check would return; an unexpected one fails this item alone.
      const isKnown = error instanceof AppError;
      const at = this.#next;
      countRefusal(this.#stats, 'BatchCheck', error, () => this.#source.queryText(at));
      this.#failed(isKnown ? error.message : 'internal error');
      this.#stats.error('BatchCheck', isKnown ? error.reason : 'INTERNAL');
    }
    const reads = task.reads ?? 0;
    this.#reads += reads;
    this.#stats.evaluated('BatchCheck', task);
    this.#task = null;
    this.#release();
    return 'done';
  }

  #suspend(): 'more' {
    if (!this.#isDetached) this.#bound.detach(this.#evaluator);
    this.#isDetached = true;
    return 'more';
  }

  #release(): void {
    if (!this.#isDetached) return;
    this.#isDetached = false;
    this.#bound.release(this.#evaluator);
    this.#evaluator = this.#bound.evaluator;
  }

  #decided(isAllowed: boolean): void {
    if (isAllowed) {
      this.outcomes[this.#next] = ITEM_ALLOWED;
      this.#counter.allowed += 1;
    } else {
      this.outcomes[this.#next] = ITEM_DENIED;
      this.#counter.denied += 1;
    }
    this.#next += 1;
  }

  #failed(text: string): void {
    this.outcomes[this.#next] = ITEM_ERROR;
    this.errors.set(this.#next, text);
    this.#counter.error += 1;
    this.#next += 1;
  }

  /** Gives the items that were not reached the error that the batch's own budget ended. */
  #exhaustChunk(): void {
    const source = this.#source;
    const { namespaces, relations } = chunk;
    const first = this.#next;
    const size = Math.min(CHUNK_ITEMS, source.count - first);
    source.load(first, size, chunk);
    for (let i = 0; i < size; i++) {
      this.#count(first + i, namespaces[i] as number, relations[i] as number);
      const relation = `${source.namespaceText(first + i)}#${source.relationText(first + i)}`;
      this.#failed(
        `evaluation of ${relation} was not reached within the batch's read budget of ${this.#limits.totalBudget}`,
      );
      this.#stats.error('BatchCheck', 'BUDGET_EXHAUSTED');
    }
  }

  /** Finds the counter of the item's names, which mostly are those of the item before. */
  #count(index: number, namespace: number, relation: number): void {
    if (namespace === this.#counterNamespace && relation === this.#counterRelation) return;
    // Names without ids may be other ones the next time.
    this.#counterNamespace = namespace > 0 && relation > 0 ? namespace : -2;
    this.#counterRelation = relation;
    this.#counter = this.#context.counterOf(this.#bound, namespace, relation, this.#source, index);
  }
}
