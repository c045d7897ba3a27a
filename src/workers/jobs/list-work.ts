import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import type { RefusedQuery } from '../../protocol/read-figures.ts';
import type { UserObjects } from '../../protocol/shard-client.ts';
import { ListEncoder } from '../raw/answer-encoder.ts';
import { isLargeBody } from './answer-writer.ts';
import type { BoundEngine } from './bound-engine.ts';
import { type Asked, type JobWork, runCounted } from './evaluation-job.ts';
import type { JobContext } from './job-context.ts';
import { RawItems } from './raw-items.ts';
import type { ReceivedRequest } from './received-request.ts';

/** A ListObjects: evaluated and encoded in slices. */
export class ListWork implements JobWork, Asked {
  readonly isLong = true;
  readonly isReadFirst: boolean;
  readonly keepsEvaluator = true;
  readonly isPartlySent = false;
  readonly #context: JobContext;
  readonly #request: ReceivedRequest;
  #task: EvaluationTask<Uint32Array> | null = null;
  #reader: TupleReader | null = null;
  #query: UserObjects | null = null;
  #encoder: ListEncoder | null = null;

  constructor(context: JobContext, request: ReceivedRequest) {
    this.#context = context;
    this.#request = request;
    this.isReadFirst = request.isLong;
  }

  read(sliceEndMs: number): boolean {
    return this.#request.read(sliceEndMs);
  }

  start({ evaluator }: BoundEngine, reader: TupleReader): void {
    const query = this.#queryOf(reader);
    this.#encoder = null;
    this.#reader = reader;
    this.#query = query;
    const nowMs = this.#context.clock.nowMs();
    this.#task = evaluator.startListEntities(query, nowMs, this.#request.scope.readBudget);
  }

  #queryOf(reader: TupleReader): UserObjects {
    const { decoded, source, fields } = this.#request;
    if (decoded?.method === 'listObjects') return decoded.query;
    const items = new RawItems(reader, source, fields.items, fields.itemCount);
    return {
      namespace: items.namespaceText(0),
      relation: items.relationText(0),
      userId: items.userText(0),
    };
  }

  advance(sliceEndMs: number): 'done' | 'more' {
    const task = this.#task;
    const reader = this.#reader;
    if (task === null || reader === null) throw new Error('a list that was not started');
    if (this.#encoder === null) {
      const { stats } = this.#context;
      if (runCounted(stats, 'ListObjects', task, sliceEndMs, this) === 'more') return 'more';
      this.#encoder = new ListEncoder(reader, task.result(), this.#request.isJson);
    }
    if (this.#encoder.run(sliceEndMs) === 'more') return 'more';
    this.#context.writer.body(this.#request.requestId, this.#encoder.body(isLargeBody));
    return 'done';
  }

  refusedQuery(): RefusedQuery | null {
    return this.#query && { kind: 'listObjects', ...this.#query };
  }

  ended(): void {
    this.#request.ended();
  }
}
