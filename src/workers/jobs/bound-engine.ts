import type { EvaluatorOptions } from '../../engine/bound/evaluator-api.ts';
import { Evaluator } from '../../engine/evaluator.ts';
import type { HotEvaluator } from '../../engine/hot/hot-evaluator.ts';
import { HotScratch } from '../../engine/hot/hot-scratch.ts';
import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { PairCounter } from '../counts/unknown-counts.ts';
import type { JobIndex } from './job.ts';

/** Model versions of one shard that are evaluated side by side: while an update is replicated, or since queries name them. */
const EVALUATORS_PER_INDEX = 4;

/** Evaluators kept for the next long evaluations of one shard. */
const FREE_EVALUATORS_MAX = 4;

/**
 * The engine bound to one index and one model, with the counters of the model's names. An evaluator has one task at a
 * time: it stays with a task that was suspended, and others are used instead.
 */
export class BoundEngine {
  readonly model: NamespaceModel;
  /** By name ids, which the model pins for the life of the index. */
  readonly counters = new Map<number, PairCounter>();
  /** The evaluator for the next evaluation. */
  evaluator: Evaluator;
  readonly #create: (hot?: HotEvaluator) => Evaluator;
  readonly #free: Evaluator[] = [];

  /** `create` makes an evaluator that shares the hot path of another, if given. */
  constructor(model: NamespaceModel, create: (hot?: HotEvaluator) => Evaluator) {
    this.model = model;
    this.#create = create;
    this.evaluator = create();
  }

  /** Bytes of the caches, which all evaluators share. */
  get cacheBytes(): number {
    return this.evaluator.cacheBytes;
  }

  /** A task of `evaluator` was suspended. */
  detach(evaluator: Evaluator): void {
    if (this.evaluator !== evaluator) return;
    this.evaluator = this.#free.pop() ?? this.#create(evaluator.hot);
  }

  /** That task has ended. */
  release(evaluator: Evaluator): void {
    if (this.#free.length < FREE_EVALUATORS_MAX) this.#free.push(evaluator);
  }
}

/** Which evaluator one job uses, and whether it keeps it between slices. */
export class EvaluatorLease {
  readonly #bound: BoundEngine;
  readonly #evaluator: Evaluator;
  #isDetached = false;

  constructor(bound: BoundEngine) {
    this.#bound = bound;
    this.#evaluator = bound.evaluator;
  }

  /** Called after each slice of the job. */
  sliceEnded(progress: 'done' | 'more'): void {
    if (progress === 'more' && !this.#isDetached) {
      this.#isDetached = true;
      this.#bound.detach(this.#evaluator);
    } else if (progress === 'done' && this.#isDetached) {
      this.#isDetached = false;
      this.#bound.release(this.#evaluator);
    }
  }
}

/** The engines of one worker's indexes: of each index those of the versions of its model that were requested last. */
export class BoundEngines {
  readonly #options: EvaluatorOptions;
  readonly #clock: Clock;
  /** Scratch memory of all evaluators of this thread. */
  readonly #scratch = new HotScratch();
  readonly #bound = new WeakMap<TupleReader, BoundEngine[]>();

  constructor(options: EvaluatorOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** The evaluator of this index and model; made at first use. */
  of(index: JobIndex, model: NamespaceModel): BoundEngine {
    const { reader } = index;
    let bound = this.#bound.get(reader);
    if (bound === undefined) {
      bound = [];
      this.#bound.set(reader, bound);
    }
    for (let i = 0; i < bound.length; i++) {
      const known = bound[i] as BoundEngine; // below length
      if (known.model !== model) continue;
      // The last one is what most ask for; others move behind it.
      if (i < bound.length - 1) bound.push(...bound.splice(i, 1));
      return known;
    }
    const made = new BoundEngine(
      model,
      (hot) => new Evaluator(reader, model, this.#options, this.#clock, hot ?? this.#scratch),
    );
    if (bound.length >= EVALUATORS_PER_INDEX) bound.shift();
    bound.push(made);
    return made;
  }

  /** Bytes of what evaluators remember beside an index. */
  cacheBytesOf(reader: TupleReader): number {
    let bytes = 0;
    for (const bound of this.#bound.get(reader) ?? []) bytes += bound.cacheBytes;
    return bytes;
  }
}
