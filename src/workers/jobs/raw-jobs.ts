import { CHECK_ALLOWED, CHECK_GENERAL } from '../../engine/bound/evaluator-api.ts';
import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { NamespaceModel } from '../../model/namespace-model.ts';
import type { RequestBatch, ScopeEntry } from '../../protocol/messages.ts';
import {
  ANSWER_ALLOWED,
  ANSWER_DENIED,
  ANSWER_FALLBACK,
  RAW_BODY_END,
  RAW_BODY_START,
  RAW_DEADLINE_MS,
  RAW_MIN_SEQ,
  RAW_OPCODE,
  RAW_REQUEST_ID,
  RAW_SCOPE,
  RAW_TOKEN,
  rawMethodOf,
  wireFormatOf,
} from '../../protocol/messages.ts';
import { type AppError, errorToData } from '../../shared/app-error.ts';
import { ListEncoder, jsonOfBatch, protoOfBatch } from '../raw/answer-encoder.ts';
import { equalsText } from '../raw/raw-fields.ts';
import type { BatchBodies } from './batch-bodies.ts';
import { BatchEvaluation, createItemChunk } from './batch-evaluation.ts';
import type { PairCounter } from './decision-stats.ts';
import { EvaluatorLoan } from './job-context.ts';
import type { Bound, JobContext } from './job-context.ts';
import type { Job, JobShard } from './job.ts';
import { RawItems } from './raw-items.ts';

/** About 128 items of a batch, which mostly end within a slice. */
const SHORT_BODY_BYTES_MAX = 16 * 1024;
/** The question of the Check at work. */
const question = createItemChunk();

/**
 * The job of the raw request at `field` of `batch.raw`, whose bodies are `bodies`. Nothing is parsed
 * before it runs.
 */
export function rawJob(
  context: JobContext,
  batch: RequestBatch,
  bodies: BatchBodies,
  field: number,
  waitUntilMsMax: number,
): Job {
  const { raw } = batch;
  const method = rawMethodOf(raw[field + RAW_OPCODE] as number);
  const request = new RawJobRequest(batch, bodies, field);
  bodies.opened();
  const waitUntilMs = Math.min(raw[field + RAW_DEADLINE_MS] as number, waitUntilMsMax);
  if (method === 'check') return new RawCheckJob(context, request, waitUntilMs);
  if (method === 'batchCheck') return new RawBatchJob(context, request, waitUntilMs);
  return new RawListJob(context, request, waitUntilMs);
}

/** Where one raw request stands in its message. */
class RawJobRequest {
  readonly requestId: number;
  readonly scope: ScopeEntry;
  readonly minSeq: number;
  readonly deadlineMs: number;
  readonly isJson: boolean;
  readonly source: BatchBodies;
  readonly start: number;
  readonly end: number;
  readonly token: string;

  constructor(batch: RequestBatch, source: BatchBodies, field: number) {
    const { raw } = batch;
    const scope = batch.scopes[raw[field + RAW_SCOPE] as number];
    if (scope === undefined) throw new Error('a raw request without scope');
    this.requestId = raw[field + RAW_REQUEST_ID] as number;
    this.scope = scope;
    this.minSeq = raw[field + RAW_MIN_SEQ] as number;
    this.deadlineMs = raw[field + RAW_DEADLINE_MS] as number;
    this.isJson = wireFormatOf(raw[field + RAW_OPCODE] as number) === 'json';
    this.source = source;
    this.start = raw[field + RAW_BODY_START] as number;
    this.end = raw[field + RAW_BODY_END] as number;
    this.token = batch.tokens[raw[field + RAW_TOKEN] as number] ?? '';
  }

  get bodies(): Uint8Array {
    return this.source.bytes;
  }
}

abstract class RawJob implements Job {
  readonly requestId: number;
  readonly scope: ScopeEntry;
  readonly minSeq: number;
  readonly deadlineMs: number;
  readonly waitUntilMs: number;
  model: NamespaceModel | null = null;
  protected readonly context: JobContext;
  protected readonly request: RawJobRequest;
  #isStarted = false;
  #bound: Bound | null = null;
  #loan: EvaluatorLoan | null = null;

  constructor(context: JobContext, request: RawJobRequest, waitUntilMs: number) {
    this.context = context;
    this.request = request;
    this.requestId = request.requestId;
    this.scope = request.scope;
    this.minSeq = request.minSeq;
    this.deadlineMs = request.deadlineMs;
    this.waitUntilMs = waitUntilMs;
  }

  get isCancelled(): boolean {
    const { cancelled } = this.context;
    return cancelled.size > 0 && cancelled.has(this.requestId);
  }

  /** Only a batch has a large body. */
  get isLong(): boolean {
    return this.request.end - this.request.start > SHORT_BODY_BYTES_MAX;
  }

  run(shard: JobShard, sliceEndMs: number): 'done' | 'more' {
    if (!this.#isStarted) {
      if (!this.scan() || !this.#isExpectedScope()) {
        this.context.writer.kind(this.requestId, ANSWER_FALLBACK);
        return this.#done();
      }
      const { model } = this;
      if (model === null) throw new Error('a job that was submitted without its model');
      const bound = this.context.boundOf(shard.index, model);
      this.#loan = null;
      this.#bound = bound;
      this.start(shard, bound);
      this.#isStarted = true;
    }
    const progress = this.advance(sliceEndMs);
    // The first suspension comes in the call that started, so this is the evaluator in use.
    if (progress === 'more' && this.keepsEvaluator && this.#bound !== null) {
      this.#loan ??= new EvaluatorLoan(this.#bound);
    }
    this.#loan?.ran(progress);
    return progress === 'done' ? this.#done() : 'more';
  }

  #done(): 'done' {
    this.request.source.closed();
    return 'done';
  }

  /** Whether the evaluator of the first slice is needed until the end. */
  protected get keepsEvaluator(): boolean {
    return true;
  }

  restart(): void {
    this.#isStarted = false;
  }

  fail(error: AppError): void {
    this.request.source.closed();
    this.context.writer.error(this.requestId, errorToData(error));
  }

  /** Fills the context's fields; false is a request for the general path. */
  protected abstract scan(): boolean;
  protected abstract start(shard: JobShard, bound: Bound): void;
  protected abstract advance(sliceEndMs: number): 'done' | 'more';

  /** The parse here is authoritative: what was routed and guarded must be what the body says. */
  #isExpectedScope(): boolean {
    const { bodies, token } = this.request;
    const at = this.context.fields.scope;
    const { expectedProjectId, expectedTenantId } = this.scope;
    return (
      equalsText(bodies, at[0] as number, at[1] as number, expectedProjectId) &&
      equalsText(bodies, at[2] as number, at[3] as number, expectedTenantId) &&
      equalsText(bodies, at[4] as number, at[5] as number, token)
    );
  }

  protected items(shard: JobShard): RawItems {
    const { fields } = this.context;
    return new RawItems(shard.index.reader, this.request.source, fields.items, fields.itemCount);
  }
}

class RawCheckJob extends RawJob {
  #task: EvaluationTask<boolean> | null = null;
  #items: RawItems | null = null;
  #bound: Bound | null = null;
  /** Name ids of the question. */
  #namespace = -1;
  #relation = -1;

  protected scan(): boolean {
    const { isJson, bodies, start, end } = this.request;
    const { json, proto } = this.context;
    return isJson ? json.check(bodies, start, end) : proto.check(bodies, start, end);
  }

  protected start(shard: JobShard, bound: Bound): void {
    const items = this.items(shard);
    items.load(0, 1, question);
    const object = question.objects[0] as number;
    const relation = question.relations[0] as number;
    const user = question.users[0] as number;
    this.#namespace = question.namespaces[0] as number;
    this.#relation = relation;
    this.#items = items;
    this.#bound = bound;
    this.#task = null;
    const { evaluator } = bound;
    const { readBudget } = this.scope;
    const nowMs = this.context.clock.nowMs();
    const quick = evaluator.checkUser(object, relation, user, nowMs, readBudget);
    if (quick === CHECK_GENERAL) {
      items.keep();
      this.#task = evaluator.startCheckIds(object, relation, user, nowMs, readBudget);
    } else {
      const { stats } = this.context;
      stats.reads.Check.add(evaluator.lastReads);
      if (evaluator.lastBackstops !== 0) stats.backstops(evaluator.lastBackstops);
      this.#answer(quick === CHECK_ALLOWED);
    }
  }

  protected advance(sliceEndMs: number): 'done' | 'more' {
    const task = this.#task;
    if (task === null) return 'done';
    try {
      if (task.run(sliceEndMs) === 'more') return 'more';
    } catch (error) {
      this.#counter().error += 1;
      this.context.stats.evaluated('Check', task);
      throw error;
    }
    this.context.stats.evaluated('Check', task);
    this.#answer(task.result());
    return 'done';
  }

  #answer(isAllowed: boolean): void {
    const counter = this.#counter();
    if (isAllowed) counter.allowed += 1;
    else counter.denied += 1;
    this.context.writer.kind(this.requestId, isAllowed ? ANSWER_ALLOWED : ANSWER_DENIED);
  }

  #counter(): PairCounter {
    const items = this.#items;
    const bound = this.#bound;
    if (items === null || bound === null) return this.context.stats.other;
    return this.context.counterOf(bound, this.#namespace, this.#relation, items, 0);
  }
}

class RawBatchJob extends RawJob {
  /** The evaluation borrows one for itself. */
  protected override get keepsEvaluator(): boolean {
    return false;
  }

  #evaluation: BatchEvaluation | null = null;
  #items: RawItems | null = null;
  #isKept = false;

  protected scan(): boolean {
    const { isJson, bodies, start, end } = this.request;
    const { json, proto } = this.context;
    return isJson ? json.batchCheck(bodies, start, end) : proto.batchCheck(bodies, start, end);
  }

  protected start(shard: JobShard, bound: Bound): void {
    const { clock, batchBudgetFactor } = this.context;
    const { readBudget } = this.scope;
    const items = this.items(shard);
    this.context.stats.rawBatch(items.count);
    this.#items = items;
    this.#isKept = false;
    this.#evaluation = new BatchEvaluation(items, this.context, bound, {
      readBudget,
      totalBudget: readBudget * batchBudgetFactor,
      nowMs: clock.nowMs(),
    });
  }

  protected advance(sliceEndMs: number): 'done' | 'more' {
    const evaluation = this.#evaluation;
    if (evaluation === null) throw new Error('a batch that was not started');
    if (evaluation.run(sliceEndMs) === 'more') {
      if (!this.#isKept) this.#items?.keep();
      this.#isKept = true;
      return 'more';
    }
    const encode = this.request.isJson ? jsonOfBatch : protoOfBatch;
    const { writer } = this.context;
    encode(evaluation.outcomes, evaluation.errors, (length) => writer.room(this.requestId, length));
    return 'done';
  }
}

class RawListJob extends RawJob {
  override get isLong(): boolean {
    return true;
  }

  #task: EvaluationTask<readonly string[]> | null = null;
  #encoder: ListEncoder | null = null;

  protected scan(): boolean {
    const { isJson, bodies, start, end } = this.request;
    const { json, proto } = this.context;
    return isJson ? json.listObjects(bodies, start, end) : proto.listObjects(bodies, start, end);
  }

  protected start(shard: JobShard, { evaluator }: Bound): void {
    const items = this.items(shard);
    this.#encoder = null;
    this.#task = evaluator.startListObjects(
      {
        namespace: items.namespaceText(0),
        relation: items.relationText(0),
        userId: items.userText(0),
      },
      this.context.clock.nowMs(),
      this.scope.readBudget,
    );
  }

  protected advance(sliceEndMs: number): 'done' | 'more' {
    const task = this.#task;
    if (task === null) throw new Error('a list that was not started');
    if (this.#encoder === null) {
      try {
        if (task.run(sliceEndMs) === 'more') return 'more';
      } catch (error) {
        this.context.stats.evaluated('ListObjects', task);
        throw error;
      }
      this.context.stats.evaluated('ListObjects', task);
      this.#encoder = new ListEncoder(task.result(), this.request.isJson);
    }
    if (this.#encoder.run(sliceEndMs) === 'more') return 'more';
    this.context.writer.body(this.requestId, this.#encoder.body());
    return 'done';
  }
}
