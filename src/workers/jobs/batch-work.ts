import type { TupleReader } from '../../model/tuple-reader.ts';
import type { BatchItem } from '../../protocol/shard-client.ts';
import type { CheckedItem } from '../../requests/decision-request.ts';
import { AppError } from '../../shared/app-error.ts';
import { BatchEncoder, jsonOfBatch, protoOfBatch } from '../raw/answer-encoder.ts';
import { BatchEvaluation, ITEM_ERROR, type ItemSource } from './batch-evaluation.ts';
import type { BoundEngine } from './bound-engine.ts';
import type { JobWork } from './evaluation-job.ts';
import type { JobContext } from './job-context.ts';
import { RawItems } from './raw-items.ts';
import type { ReceivedRequest } from './received-request.ts';
import { TextItems } from './text-items.ts';

/** A BatchCheck. A long one is read, evaluated and encoded in slices. */
export class BatchWork implements JobWork {
  readonly isLong: boolean;
  readonly isReadFirst: boolean;
  /** The evaluation acquires one itself. */
  readonly keepsEvaluator = false;
  readonly isPartlySent = false;
  readonly #context: JobContext;
  readonly #request: ReceivedRequest;
  #items: (ItemSource & { detach(): void }) | null = null;
  #evaluation: BatchEvaluation | null = null;
  #encoder: BatchEncoder | null = null;
  #isDetached = false;

  constructor(context: JobContext, request: ReceivedRequest) {
    this.#context = context;
    this.#request = request;
    this.isLong = request.isLong;
    this.isReadFirst = request.isLong;
  }

  read(sliceEndMs: number): boolean {
    return this.#request.read(sliceEndMs);
  }

  start(bound: BoundEngine, reader: TupleReader): void {
    const items = this.#itemsOf(reader);
    this.#items = items;
    // A long batch has its positions for itself.
    this.#isDetached = this.isLong;
    this.#encoder = null;
    const { clock, batchBudgetFactor } = this.#context;
    const { readBudget } = this.#request.scope;
    this.#evaluation = new BatchEvaluation(items, this.#context, bound, {
      readBudget,
      totalBudget: readBudget * batchBudgetFactor,
      nowMs: clock.nowMs(),
    });
  }

  #itemsOf(reader: TupleReader): ItemSource & { detach(): void } {
    const { decoded, source, fields } = this.#request;
    const { stats } = this.#context;
    if (decoded?.method === 'batchCheck') {
      stats.batchOf(decoded.items.length);
      return new TextItems(reader, decoded.items.filter(isValid));
    }
    stats.batchOf(fields.itemCount);
    return new RawItems(reader, source, fields.items, fields.itemCount);
  }

  advance(sliceEndMs: number): 'done' | 'more' {
    const evaluation = this.#evaluation;
    if (evaluation === null) throw new Error('a batch that was not started');
    const { writer } = this.#context;
    const { requestId, isJson } = this.#request;
    if (this.#encoder === null) {
      if (evaluation.run(sliceEndMs) === 'more') return this.#suspended();
      const { outcomes, errors } = this.#outcomesOf(evaluation);
      // An answer that is written at once may be written where it is sent from.
      const space = (length: number): Uint8Array => writer.space(requestId, length);
      if (!this.isLong) {
        (isJson ? jsonOfBatch : protoOfBatch)(outcomes, errors, space);
        return 'done';
      }
      this.#encoder = new BatchEncoder(outcomes, errors, isJson);
    }
    if (this.#encoder.run(sliceEndMs) === 'more') return 'more';
    writer.body(requestId, this.#encoder.body());
    return 'done';
  }

  #suspended(): 'more' {
    if (!this.#isDetached) this.#items?.detach();
    this.#isDetached = true;
    return 'more';
  }

  /** The outcomes of all items: those that were evaluated, in order, and the errors of the others. */
  #outcomesOf({ outcomes, errors }: BatchEvaluation): {
    readonly outcomes: Uint8Array;
    readonly errors: ReadonlyMap<number, string>;
  } {
    const { decoded } = this.#request;
    if (decoded?.method !== 'batchCheck' || decoded.items.length === outcomes.length) {
      return { outcomes, errors };
    }
    const { stats } = this.#context;
    const all = new Uint8Array(decoded.items.length);
    const texts = new Map<number, string>();
    let next = 0;
    decoded.items.forEach((item, i) => {
      if (item instanceof AppError) {
        all[i] = ITEM_ERROR;
        texts.set(i, item.message);
        stats.error('BatchCheck', item.reason);
        return;
      }
      all[i] = outcomes[next] as number; // one per item that was evaluated
      const text = errors.get(next);
      if (text !== undefined) texts.set(i, text);
      next += 1;
    });
    return { outcomes: all, errors: texts };
  }

  ended(): void {
    this.#request.ended();
  }
}

function isValid(item: CheckedItem): item is BatchItem {
  return !(item instanceof AppError);
}
