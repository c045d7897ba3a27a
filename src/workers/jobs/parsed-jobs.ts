import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { ExpandTree } from '../../model/expand-tree.ts';
import type { NamespaceModel } from '../../model/namespace-model.ts';
import { EMPTY_NAME } from '../../model/tuple-reader.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import type { Method, ScopeEntry, WorkerRequest } from '../../protocol/messages.ts';
import type { RefusedQuery } from '../../protocol/read-figures.ts';
import type { BatchItem, BatchItemResult } from '../../protocol/shard-client.ts';
import { BatchEvaluation, ITEM_ALLOWED } from './batch-evaluation.ts';
import type { ItemChunk, ItemSource } from './batch-evaluation.ts';
import { type Asked, EvaluationJob, type JobWork, runCounted } from './evaluation-job.ts';
import type { BoundEngine, JobContext } from './job-context.ts';
import type { Job } from './job.ts';

/** Ids of a list that travel in one message: a longer one comes in parts, so that its clone stops nobody. */
const IDS_PER_PART = 4_096;

/**
 * A batch of so many items mostly ends within a slice of 2 ms: an item takes 1.0-1.8 µs where nothing else uses the caches,
 * 2.4-2.9 under load (batch-steps and batch-check-100, docs/benchmarks.md).
 */
const SHORT_BATCH_ITEMS_MAX = 128;

/** All but queries, which stand above this module. */
type PlainRequest = WorkerRequest<Exclude<Method, 'query'>>;

/** The job of a request that the gateway parsed and validated. */
export function parsedJob(
  context: JobContext,
  request: PlainRequest,
  scope: ScopeEntry,
  waitUntilMsMax: number,
): Job {
  const head = {
    requestId: request.requestId,
    scope,
    minRevision: request.minRevision,
    deadlineMs: request.deadlineMs,
    isDeadlineStated: request.isDeadlineStated === true,
  };
  return new EvaluationJob(context, head, waitUntilMsMax, workOf(context, request, scope));
}

function workOf(context: JobContext, request: PlainRequest, { readBudget }: ScopeEntry): JobWork {
  switch (request.method) {
    case 'check':
      return new CheckWork(context, request, readBudget);
    case 'batchCheck':
      return new BatchCheckWork(context, request, readBudget);
    case 'expand':
      return new ExpandWork(context, request, readBudget);
    case 'listObjects':
      return new ListObjectsWork(context, request, readBudget);
  }
}

class CheckWork implements JobWork, Asked {
  readonly isLong = false;
  readonly keepsEvaluator = true;
  readonly isPartlySent = false;
  readonly #context: JobContext;
  readonly #request: WorkerRequest<'check'>;
  readonly #readBudget: number;
  #task: EvaluationTask<boolean> | null = null;
  #model: NamespaceModel | null = null;

  constructor(context: JobContext, request: WorkerRequest<'check'>, readBudget: number) {
    this.#context = context;
    this.#request = request;
    this.#readBudget = readBudget;
  }

  start(bound: BoundEngine): void {
    const nowMs = this.#context.clock.nowMs();
    this.#model = bound.model;
    this.#task = bound.evaluator.startCheck(this.#request.args, nowMs, this.#readBudget);
  }

  advance(sliceEndMs: number): 'done' | 'more' {
    const task = this.#task;
    const model = this.#model;
    if (task === null || model === null) throw new Error('a check that was not started');
    const { requestId, args } = this.#request;
    const { stats, writer } = this.#context;
    const rpc = args.subject.kind === 'user' ? 'Check' : 'CheckSet';
    const counter = stats.counter(model, args.namespace, args.relation);
    try {
      if (runCounted(stats, rpc, task, sliceEndMs, this) === 'more') return 'more';
    } catch (error) {
      counter.error += 1;
      throw error;
    }
    const result = task.result();
    if (result) counter.allowed += 1;
    else counter.denied += 1;
    writer.response({ requestId, method: 'check', result, isPart: false });
    return 'done';
  }

  refusedQuery(): RefusedQuery {
    return { kind: 'check', ...this.#request.args };
  }
}

class BatchCheckWork implements JobWork {
  readonly isLong: boolean;
  /** The evaluation borrows one for itself. */
  readonly keepsEvaluator = false;
  readonly isPartlySent = false;
  readonly #context: JobContext;
  readonly #request: WorkerRequest<'batchCheck'>;
  readonly #readBudget: number;
  #evaluation: BatchEvaluation | null = null;

  constructor(context: JobContext, request: WorkerRequest<'batchCheck'>, readBudget: number) {
    this.#context = context;
    this.#request = request;
    this.#readBudget = readBudget;
    this.isLong = request.args.length > SHORT_BATCH_ITEMS_MAX;
  }

  start(bound: BoundEngine, reader: TupleReader): void {
    const context = this.#context;
    const readBudget = this.#readBudget;
    const items = new TextItems(reader, this.#request.args);
    this.#evaluation = new BatchEvaluation(items, context, bound, {
      readBudget,
      totalBudget: readBudget * context.batchBudgetFactor,
      nowMs: context.clock.nowMs(),
    });
  }

  advance(sliceEndMs: number): 'done' | 'more' {
    const evaluation = this.#evaluation;
    if (evaluation === null) throw new Error('a batch that was not started');
    if (evaluation.run(sliceEndMs) === 'more') return 'more';
    const result: BatchItemResult[] = Array.from(evaluation.outcomes, (outcome, index) => ({
      allowed: outcome === ITEM_ALLOWED,
      error: evaluation.errors.get(index) ?? '',
    }));
    const { requestId } = this.#request;
    this.#context.writer.response({ requestId, method: 'batchCheck', result, isPart: false });
    return 'done';
  }
}

class ExpandWork implements JobWork, Asked {
  readonly isLong = true;
  readonly keepsEvaluator = true;
  readonly isPartlySent = false;
  readonly #context: JobContext;
  readonly #request: WorkerRequest<'expand'>;
  readonly #readBudget: number;
  #task: EvaluationTask<ExpandTree> | null = null;

  constructor(context: JobContext, request: WorkerRequest<'expand'>, readBudget: number) {
    this.#context = context;
    this.#request = request;
    this.#readBudget = readBudget;
  }

  start({ evaluator }: BoundEngine): void {
    const nowMs = this.#context.clock.nowMs();
    this.#task = evaluator.startExpand(this.#request.args, nowMs, this.#readBudget);
  }

  advance(sliceEndMs: number): 'done' | 'more' {
    const task = this.#task;
    if (task === null) throw new Error('an expansion that was not started');
    const { stats, writer } = this.#context;
    if (runCounted(stats, 'Expand', task, sliceEndMs, this) === 'more') return 'more';
    const { requestId } = this.#request;
    writer.response({ requestId, method: 'expand', result: task.result(), isPart: false });
    return 'done';
  }

  refusedQuery(): RefusedQuery {
    return { kind: 'expand', ...this.#request.args };
  }
}

class ListObjectsWork implements JobWork, Asked {
  readonly isLong = true;
  readonly keepsEvaluator = true;
  readonly #context: JobContext;
  readonly #request: WorkerRequest<'listObjects'>;
  readonly #readBudget: number;
  #task: EvaluationTask<readonly string[]> | null = null;
  #ids: readonly string[] | null = null;
  #sent = 0;

  constructor(context: JobContext, request: WorkerRequest<'listObjects'>, readBudget: number) {
    this.#context = context;
    this.#request = request;
    this.#readBudget = readBudget;
  }

  /** Parts that were sent cannot be taken back. */
  get isPartlySent(): boolean {
    return this.#ids !== null && this.#sent > 0;
  }

  start({ evaluator }: BoundEngine): void {
    const nowMs = this.#context.clock.nowMs();
    this.#ids = null;
    this.#task = evaluator.startListObjects(this.#request.args, nowMs, this.#readBudget);
  }

  advance(sliceEndMs: number): 'done' | 'more' {
    const task = this.#task;
    if (task === null) throw new Error('a list that was not started');
    const { stats, writer } = this.#context;
    if (this.#ids === null) {
      if (runCounted(stats, 'ListObjects', task, sliceEndMs, this) === 'more') return 'more';
      this.#ids = task.result();
      this.#sent = 0;
    }
    // One part a turn, each in a message of its own.
    const result = this.#ids.slice(this.#sent, this.#sent + IDS_PER_PART);
    this.#sent += result.length;
    const isPart = this.#sent < this.#ids.length;
    const { requestId } = this.#request;
    writer.response({ requestId, method: 'listObjects', result, isPart });
    return isPart ? 'more' : 'done';
  }

  refusedQuery(): RefusedQuery {
    return { kind: 'listObjects', ...this.#request.args };
  }
}

/** Parsed items as ids of one index. */
class TextItems implements ItemSource {
  readonly count: number;
  readonly #reader: TupleReader;
  readonly #items: readonly BatchItem[];

  constructor(reader: TupleReader, items: readonly BatchItem[]) {
    this.#reader = reader;
    this.#items = items;
    this.count = items.length;
  }

  load(first: number, count: number, chunk: ItemChunk): void {
    const reader = this.#reader;
    for (let i = 0; i < count; i++) {
      const { namespace, objectId, relation, userId } = this.#item(first + i);
      const name = reader.nameId(namespace);
      chunk.namespaces[i] = name;
      chunk.relations[i] = reader.nameId(relation);
      chunk.objects[i] = name < 0 ? 0 : reader.entityId(name, objectId);
      chunk.users[i] = reader.entityId(EMPTY_NAME, userId);
    }
  }

  namespaceText(index: number): string {
    return this.#item(index).namespace;
  }

  relationText(index: number): string {
    return this.#item(index).relation;
  }

  queryText(index: number): RefusedQuery {
    const { userId, ...query } = this.#item(index);
    return { kind: 'check', ...query, subject: { kind: 'user', userId }, contextJson: '' };
  }

  #item(index: number): BatchItem {
    return this.#items[index] as BatchItem; // below count
  }
}
