import { Evaluator } from '../engine/evaluator.ts';
import type { EvaluatorOptions } from '../engine/evaluator-api.ts';
import type { Clock } from '../shared/clock.ts';
import type { NamespaceModel } from '../model/namespace-model.ts';
import type { AnswerWriter } from './answer-writer.ts';
import type { DecisionStats } from './decision-stats.ts';
import type { ModelRegistry } from './model-registry.ts';
import type { ShardIndex } from './ports.ts';
import { JsonScanner } from './raw/json-scanner.ts';
import { ProtoScanner } from './raw/proto-scanner.ts';
import { createRawFields } from './raw/raw-fields.ts';
import type { RawFields } from './raw/raw-fields.ts';

/** Model versions of one shard that are evaluated side by side while an update spreads. */
const EVALUATORS_PER_INDEX = 2;

export type JobContextOptions = {
  readonly writer: AnswerWriter;
  readonly stats: DecisionStats;
  readonly models: ModelRegistry;
  readonly clock: Clock;
  readonly batchBudgetFactor: number;
  readonly batchItemsMax: number;
  readonly evaluator: EvaluatorOptions;
};

type Bound = { readonly model: NamespaceModel; readonly evaluator: Evaluator };

/** What the jobs of one worker share: where answers go, the scanners, evaluators per index. */
export class JobContext {
  readonly writer: AnswerWriter;
  readonly stats: DecisionStats;
  readonly models: ModelRegistry;
  readonly clock: Clock;
  readonly batchBudgetFactor: number;
  /** Ids of requests whose callers have gone. */
  readonly cancelled = new Set<number>();
  /** Scratch of the scanners: valid until the next scan. */
  readonly fields: RawFields;
  readonly json: JsonScanner;
  readonly proto: ProtoScanner;
  readonly #evaluatorOptions: EvaluatorOptions;
  readonly #bound = new WeakMap<ShardIndex, Bound[]>();

  constructor(options: JobContextOptions) {
    this.writer = options.writer;
    this.stats = options.stats;
    this.models = options.models;
    this.clock = options.clock;
    this.batchBudgetFactor = options.batchBudgetFactor;
    this.fields = createRawFields();
    this.json = new JsonScanner(this.fields, options.batchItemsMax);
    this.proto = new ProtoScanner(this.fields, options.batchItemsMax);
    this.#evaluatorOptions = options.evaluator;
  }

  /** The evaluator of this index and model; made at first use. */
  evaluatorOf(index: ShardIndex, model: NamespaceModel): Evaluator {
    let bound = this.#bound.get(index);
    if (bound === undefined) {
      bound = [];
      this.#bound.set(index, bound);
    }
    for (let i = 0; i < bound.length; i++) {
      const known = bound[i] as Bound; // below length
      if (known.model === model) return known.evaluator;
    }
    const evaluator = new Evaluator(index.reader, model, this.#evaluatorOptions, this.clock);
    if (bound.length >= EVALUATORS_PER_INDEX) bound.shift();
    bound.push({ model, evaluator });
    return evaluator;
  }
}
