import { MessageDecoder } from '../../decoding/message-decoder.ts';
import type { EvaluatorOptions } from '../../engine/bound/evaluator-api.ts';
import { isTyped } from '../../model/namespace/model-references.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import { listLimits } from '../../requests/request-lists.ts';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { DecisionStats } from '../counts/decision-stats.ts';
import type { PairCounter } from '../counts/unknown-counts.ts';
import { BatchScan } from '../raw/batch-scan.ts';
import { JsonScanner } from '../raw/json-scanner.ts';
import { ProtoScanner } from '../raw/proto-scanner.ts';
import { createRawFields } from '../raw/raw-fields.ts';
import type { RawFields } from '../raw/raw-fields.ts';
import type { AnswerWriter } from './answer-writer.ts';
import { type BoundEngine, BoundEngines } from './bound-engine.ts';

/** Bytes of bodies that one thread decodes, and keeps decoded until they are answered: four of the longest by default. */
const BYTES_MAX = 32 * 1024 * 1024;

/** Bound of the memory of the decoded bodies of one thread together. */
export class DecodingMemory {
  #bytes = 0;

  /** Until `release`. One alone is taken however long it is. Errors: BODY_MEMORY_EXHAUSTED. */
  acquire(bytes: number): void {
    if (this.#bytes > 0 && this.#bytes + bytes > BYTES_MAX) {
      const problem =
        'the memory of a decision worker for requests that it must decode is exhausted';
      throw new AppError<AuthzReason>('BODY_MEMORY_EXHAUSTED', problem);
    }
    this.#bytes += bytes;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
  }
}

export type JobContextOptions = {
  readonly writer: AnswerWriter;
  readonly stats: DecisionStats;
  readonly clock: Clock;
  readonly batchBudgetFactor: number;
  readonly batchItemsMax: number;
  readonly evaluator: EvaluatorOptions;
};

/** Scanners kept for the next large batches of this thread, each with the positions of its largest: 320 KB of 10,000 items. */
const FREE_SCANS_MAX = 4;
/** More than there are ids of names: two of them make one number. */
export const NAMES_MAX = 2 ** 26;

/** Texts of the names of item `index`. */
export interface PairNames {
  namespaceText(index: number): string;
  relationText(index: number): string;
}

/** Objects that the jobs of one worker share: the writer of answers, the scanners, evaluators per index. */
export class JobContext {
  readonly writer: AnswerWriter;
  readonly stats: DecisionStats;
  readonly clock: Clock;
  readonly batchBudgetFactor: number;
  /** Ids of requests whose callers have gone. */
  readonly cancelled = new Set<number>();
  /** Scratch of the scanners: valid until the next scan. */
  readonly fields: RawFields;
  readonly json: JsonScanner;
  readonly proto: ProtoScanner;
  /** Decodes what the scanners do not take. */
  readonly decoder: MessageDecoder;
  readonly decodingMemory = new DecodingMemory();
  readonly batchItemsMax: number;
  readonly #freeScans: BatchScan[] = [];
  readonly engines: BoundEngines;

  constructor(options: JobContextOptions) {
    this.writer = options.writer;
    this.stats = options.stats;
    this.clock = options.clock;
    this.batchBudgetFactor = options.batchBudgetFactor;
    this.fields = createRawFields();
    this.json = new JsonScanner(this.fields, options.batchItemsMax);
    this.proto = new ProtoScanner(this.fields, options.batchItemsMax);
    this.batchItemsMax = options.batchItemsMax;
    this.decoder = new MessageDecoder({ items: listLimits(options.batchItemsMax) });
    this.engines = new BoundEngines(options.evaluator, options.clock);
  }

  /** Acquires scanners for one batch, until `releaseScan`. */
  takeScan(): BatchScan {
    return this.#freeScans.pop() ?? new BatchScan(this.batchItemsMax);
  }

  /** Nobody reads what `scan` found any more. */
  releaseScan(scan: BatchScan): void {
    if (this.#freeScans.length < FREE_SCANS_MAX) this.#freeScans.push(scan);
  }

  /** The counter of a decision; texts are only made the first time. Hot. */
  counterOf(
    bound: BoundEngine,
    namespace: number,
    relation: number,
    names: PairNames,
    index: number,
  ): PairCounter {
    // Names that nothing mentions: the model does not either.
    if (namespace <= 0 || relation <= 0) return this.#counterOutside(bound, names, index);
    const key = namespace * NAMES_MAX + relation;
    const known = bound.counters.get(key);
    if (known !== undefined) return known;
    const [ofNamespace, ofRelation] = [names.namespaceText(index), names.relationText(index)];
    const found = this.stats.counter(bound.model, ofNamespace, ofRelation);
    // Ids of names outside the model may be used again for others.
    if (found !== this.stats.other && bound.model.namespaces.get(ofNamespace)?.has(ofRelation)) {
      bound.counters.set(key, found);
    }
    return found;
  }

  /** The counter of names without ids; texts are made only where a typed model may lack the names. */
  #counterOutside({ model }: BoundEngine, names: PairNames, index: number): PairCounter {
    if (!isTyped(model)) return this.stats.other;
    return this.stats.counter(model, names.namespaceText(index), names.relationText(index));
  }
}
