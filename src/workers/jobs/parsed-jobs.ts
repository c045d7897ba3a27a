import type { EvaluationTask, ExpandTree } from '../../engine/bound/evaluator-api.ts';
import type { NamespaceModel } from '../../model/namespace-model.ts';
import { EMPTY_NAME } from '../../model/tuple-reader.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import type { Method, ScopeEntry, WorkerRequest } from '../../protocol/messages.ts';
import type { BatchItem, BatchItemResult } from '../../protocol/shard-client.ts';
import { type AppError, errorToData } from '../../shared/app-error.ts';
import { BatchEvaluation, ITEM_ALLOWED } from './batch-evaluation.ts';
import type { ItemChunk, ItemSource } from './batch-evaluation.ts';
import type { EvaluatedRpc } from './decision-stats.ts';
import { EvaluatorLoan } from './job-context.ts';
import type { Bound, JobContext } from './job-context.ts';
import type { Job, JobShard } from './job.ts';

/** Ids of a list that travel in one message: a longer one comes in parts, so that its clone stops nobody. */
const IDS_PER_PART = 4_096;

/** A batch of so many items mostly ends within a slice. */
const SHORT_BATCH_ITEMS_MAX = 128;

/** The job of a request that the gateway parsed and validated. */
export function parsedJob(
  context: JobContext,
  request: WorkerRequest,
  scope: ScopeEntry,
  waitUntilMsMax: number,
): Job {
  const waitUntilMs = Math.min(request.deadlineMs, waitUntilMsMax);
  switch (request.method) {
    case 'check':
      return new CheckJob(context, request, scope, waitUntilMs);
    case 'batchCheck':
      return new BatchCheckJob(context, request, scope, waitUntilMs);
    case 'expand':
      return new ExpandJob(context, request, scope, waitUntilMs);
    case 'listObjects':
      return new ListObjectsJob(context, request, scope, waitUntilMs);
  }
}

type Started = {
  readonly bound: Bound;
  readonly reader: TupleReader;
  readonly nowMs: number;
};

abstract class ParsedJob<M extends Method> implements Job {
  readonly requestId: number;
  readonly scope: ScopeEntry;
  readonly minSeq: number;
  readonly deadlineMs: number;
  readonly waitUntilMs: number;
  model: NamespaceModel | null = null;
  protected readonly context: JobContext;
  protected readonly request: WorkerRequest<M>;
  #isStarted = false;
  #bound: Bound | null = null;
  #loan: EvaluatorLoan | null = null;

  constructor(
    context: JobContext,
    request: WorkerRequest<M>,
    scope: ScopeEntry,
    waitUntilMs: number,
  ) {
    this.context = context;
    this.request = request;
    this.scope = scope;
    this.requestId = request.requestId;
    this.minSeq = request.minSeq;
    this.deadlineMs = request.deadlineMs;
    this.waitUntilMs = waitUntilMs;
  }

  get isCancelled(): boolean {
    const { cancelled } = this.context;
    return cancelled.size > 0 && cancelled.has(this.requestId);
  }

  get isLong(): boolean {
    const { args } = this.request;
    return Array.isArray(args)
      ? args.length > SHORT_BATCH_ITEMS_MAX
      : this.request.method !== 'check';
  }

  run(shard: JobShard, sliceEndMs: number): 'done' | 'more' {
    if (!this.#isStarted) {
      const { model } = this;
      if (model === null) throw new Error('a job that was submitted without its model');
      const bound = this.context.boundOf(shard.index, model);
      this.#loan = null;
      this.#bound = bound;
      this.start({ bound, reader: shard.index.reader, nowMs: this.context.clock.nowMs() });
      this.#isStarted = true;
    }
    const progress = this.advance(sliceEndMs);
    // The first suspension comes in the call that started, so this is the evaluator in use.
    if (progress === 'more' && this.keepsEvaluator && this.#bound !== null) {
      this.#loan ??= new EvaluatorLoan(this.#bound);
    }
    this.#loan?.ran(progress);
    return progress;
  }

  /** Whether the evaluator of the first slice is needed until the end. */
  protected get keepsEvaluator(): boolean {
    return true;
  }

  restart(): void {
    this.#isStarted = false;
  }

  fail(error: AppError): void {
    this.context.writer.error(this.requestId, errorToData(error));
  }

  /** Runs a task, counting its reads and backstops once, at its end. */
  protected runTask(
    rpc: EvaluatedRpc,
    task: EvaluationTask<unknown>,
    sliceEndMs: number,
  ): 'done' | 'more' {
    const { stats } = this.context;
    try {
      if (task.run(sliceEndMs) === 'more') return 'more';
    } catch (error) {
      stats.evaluated(rpc, task);
      throw error;
    }
    stats.evaluated(rpc, task);
    return 'done';
  }

  protected abstract start(started: Started): void;
  protected abstract advance(sliceEndMs: number): 'done' | 'more';
}

class CheckJob extends ParsedJob<'check'> {
  #task: EvaluationTask<boolean> | null = null;
  #model: NamespaceModel | null = null;

  protected start({ bound, nowMs }: Started): void {
    this.#model = bound.model;
    this.#task = bound.evaluator.startCheck(this.request.args, nowMs, this.scope.readBudget);
  }

  protected advance(sliceEndMs: number): 'done' | 'more' {
    const task = this.#task;
    const model = this.#model;
    if (task === null || model === null) throw new Error('a check that was not started');
    const { namespace, relation, subject } = this.request.args;
    const rpc = subject.kind === 'user' ? 'Check' : 'CheckSet';
    const counter = this.context.stats.counter(model, namespace, relation);
    try {
      if (this.runTask(rpc, task, sliceEndMs) === 'more') return 'more';
    } catch (error) {
      counter.error += 1;
      throw error;
    }
    const result = task.result();
    if (result) counter.allowed += 1;
    else counter.denied += 1;
    const { requestId } = this;
    this.context.writer.response({ requestId, method: 'check', result, isPart: false });
    return 'done';
  }
}

class BatchCheckJob extends ParsedJob<'batchCheck'> {
  /** The evaluation borrows one for itself. */
  protected override get keepsEvaluator(): boolean {
    return false;
  }

  #evaluation: BatchEvaluation | null = null;

  protected start({ bound, reader, nowMs }: Started): void {
    const { readBudget } = this.scope;
    const totalBudget = readBudget * this.context.batchBudgetFactor;
    const items = new TextItems(reader, this.request.args);
    const limits = { readBudget, totalBudget, nowMs };
    this.#evaluation = new BatchEvaluation(items, this.context, bound, limits);
  }

  protected advance(sliceEndMs: number): 'done' | 'more' {
    const evaluation = this.#evaluation;
    if (evaluation === null) throw new Error('a batch that was not started');
    if (evaluation.run(sliceEndMs) === 'more') return 'more';
    const result: BatchItemResult[] = Array.from(evaluation.outcomes, (outcome, index) => ({
      allowed: outcome === ITEM_ALLOWED,
      error: evaluation.errors.get(index) ?? '',
    }));
    const { requestId } = this;
    this.context.writer.response({ requestId, method: 'batchCheck', result, isPart: false });
    return 'done';
  }
}

class ExpandJob extends ParsedJob<'expand'> {
  #task: EvaluationTask<ExpandTree> | null = null;

  protected start({ bound, nowMs }: Started): void {
    this.#task = bound.evaluator.startExpand(this.request.args, nowMs, this.scope.readBudget);
  }

  protected advance(sliceEndMs: number): 'done' | 'more' {
    const task = this.#task;
    if (task === null) throw new Error('an expansion that was not started');
    if (this.runTask('Expand', task, sliceEndMs) === 'more') return 'more';
    const { requestId } = this;
    const result = task.result();
    this.context.writer.response({ requestId, method: 'expand', result, isPart: false });
    return 'done';
  }
}

class ListObjectsJob extends ParsedJob<'listObjects'> {
  #task: EvaluationTask<readonly string[]> | null = null;
  #ids: readonly string[] | null = null;
  #sent = 0;

  protected start({ bound, nowMs }: Started): void {
    this.#ids = null;
    this.#task = bound.evaluator.startListObjects(this.request.args, nowMs, this.scope.readBudget);
  }

  protected advance(sliceEndMs: number): 'done' | 'more' {
    const task = this.#task;
    if (task === null) throw new Error('a list that was not started');
    if (this.#ids === null) {
      if (this.runTask('ListObjects', task, sliceEndMs) === 'more') return 'more';
      this.#ids = task.result();
      this.#sent = 0;
    }
    // One part a turn, each in a message of its own.
    const result = this.#ids.slice(this.#sent, this.#sent + IDS_PER_PART);
    this.#sent += result.length;
    const isPart = this.#sent < this.#ids.length;
    const { requestId } = this;
    this.context.writer.response({ requestId, method: 'listObjects', result, isPart });
    return isPart ? 'more' : 'done';
  }

  /** Parts that were sent cannot be taken back: what was evaluated stays the answer. */
  override restart(): void {
    if (this.#ids === null || this.#sent === 0) super.restart();
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

  #item(index: number): BatchItem {
    return this.#items[index] as BatchItem; // below count
  }
}
