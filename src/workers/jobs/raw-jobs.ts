import { CHECK_ALLOWED, CHECK_GENERAL } from '../../engine/bound/evaluator-api.ts';
import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import type { RequestBatch, ScopeEntry } from '../../protocol/messages.ts';
import {
  ANSWER_ALLOWED,
  ANSWER_DENIED,
  ANSWER_FALLBACK,
  RAW_BODY_END,
  RAW_BODY_START,
  RAW_DEADLINE_MS,
  RAW_DEADLINE_STATED,
  RAW_MIN_REVISION,
  RAW_OPCODE,
  RAW_REQUEST_ID,
  RAW_SCOPE,
  RAW_TOKEN,
  rawMethodOf,
  wireFormatOf,
} from '../../protocol/messages.ts';
import type { RefusedQuery } from '../../protocol/read-figures.ts';
import type { RawMethod } from '../../protocol/shard-client.ts';
import { BatchEncoder, ListEncoder, jsonOfBatch, protoOfBatch } from '../raw/answer-encoder.ts';
import type { BatchScan } from '../raw/batch-scan.ts';
import { type RawContext, rawContextOf } from '../raw/raw-context.ts';
import { equalsText, type RawFields } from '../raw/raw-fields.ts';
import { isLargeBody } from './answer-writer.ts';
import type { BatchBodies } from './batch-bodies.ts';
import { BatchEvaluation, createItemChunk } from './batch-evaluation.ts';
import {
  type Asked,
  EvaluationJob,
  type JobHead,
  type JobWork,
  runCounted,
} from './evaluation-job.ts';
import type { BoundEngine, JobContext } from './job-context.ts';
import type { Job } from './job.ts';
import type { PairCounter } from './pair-counter.ts';
import { RawItems } from './raw-items.ts';

/** About SHORT_BATCH_ITEMS_MAX items of 128 bytes each, which mostly end within a slice. */
const SHORT_BODY_BYTES_MAX = 16 * 1024;
/** The query of the Check at work. */
const queryChunk = createItemChunk();

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
  const work = workOf(method, context, request);
  return new EvaluationJob(context, request, waitUntilMsMax, work);
}

function workOf(method: RawMethod, context: JobContext, request: RawJobRequest): JobWork {
  if (method === 'check') return new RawCheckWork(context, request);
  if (method === 'listObjects') return new RawListWork(context, request);
  return request.end - request.start > SHORT_BODY_BYTES_MAX
    ? new RawLongBatchWork(context, request)
    : new RawBatchWork(context, request);
}

/** Where one raw request stands in its message. */
class RawJobRequest implements JobHead {
  readonly requestId: number;
  readonly scope: ScopeEntry;
  readonly minRevision: number;
  readonly deadlineMs: number;
  readonly isDeadlineStated: boolean;
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
    this.minRevision = raw[field + RAW_MIN_REVISION] as number;
    this.deadlineMs = raw[field + RAW_DEADLINE_MS] as number;
    this.isDeadlineStated = raw[field + RAW_DEADLINE_STATED] === 1;
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

/**
 * Whether the body, now in `fields`, says what was routed and guarded. The parse here is
 * authoritative; a request that is not as expected is left to the general path.
 */
function isAsExpected(
  context: JobContext,
  request: RawJobRequest,
  isScanned: boolean,
  fields: RawFields = context.fields,
): boolean {
  const at = fields.scope;
  const { bodies, token } = request;
  const { expectedProjectId, expectedTenantId } = request.scope;
  const isExpected =
    isScanned &&
    equalsText(bodies, at[0] as number, at[1] as number, expectedProjectId) &&
    equalsText(bodies, at[2] as number, at[3] as number, expectedTenantId) &&
    equalsText(bodies, at[4] as number, at[5] as number, token);
  if (!isExpected) context.writer.kind(request.requestId, ANSWER_FALLBACK);
  return isExpected;
}

function itemsOf({ fields }: JobContext, request: RawJobRequest, reader: TupleReader): RawItems {
  return new RawItems(reader, request.source, fields.items, fields.itemCount);
}

class RawCheckWork implements JobWork, Asked {
  readonly isLong = false;
  readonly keepsEvaluator = true;
  readonly isPartlySent = false;
  readonly #context: JobContext;
  readonly #request: RawJobRequest;
  #task: EvaluationTask<boolean> | null = null;
  #items: RawItems | null = null;
  #asked: RawContext | null = null;
  #bound: BoundEngine | null = null;
  /** Name ids of the query. */
  #namespace = -1;
  #relation = -1;

  constructor(context: JobContext, request: RawJobRequest) {
    this.#context = context;
    this.#request = request;
  }

  ended(): void {
    this.#request.source.closed();
  }

  read(): boolean {
    const { isJson, bodies, start, end } = this.#request;
    const { json, proto } = this.#context;
    const isScanned = isJson ? json.check(bodies, start, end) : proto.check(bodies, start, end);
    return isAsExpected(this.#context, this.#request, isScanned);
  }

  start(bound: BoundEngine, reader: TupleReader): void {
    const items = itemsOf(this.#context, this.#request, reader);
    items.load(0, 1, queryChunk);
    const object = queryChunk.objects[0] as number;
    const relation = queryChunk.relations[0] as number;
    const user = queryChunk.users[0] as number;
    this.#namespace = queryChunk.namespaces[0] as number;
    this.#relation = relation;
    this.#items = items;
    this.#bound = bound;
    this.#task = null;
    const { evaluator } = bound;
    const { readBudget } = this.#request.scope;
    const nowMs = this.#context.clock.nowMs();
    const context = rawContextOf(this.#context.fields, this.#request.source);
    this.#asked = context;
    const quick = evaluator.checkUser(object, relation, user, nowMs, readBudget, context);
    if (quick === CHECK_GENERAL) {
      items.keep();
      const json = context === null ? '' : context.json;
      this.#task = evaluator.startCheckIds(object, relation, user, nowMs, readBudget, json);
    } else {
      const { stats } = this.#context;
      stats.reads.Check.add(evaluator.lastReads);
      stats.project.answered(evaluator.lastReads);
      if (evaluator.lastBackstops !== 0) stats.backstops(evaluator.lastBackstops);
      this.#answer(quick === CHECK_ALLOWED);
    }
  }

  advance(sliceEndMs: number): 'done' | 'more' {
    const task = this.#task;
    if (task === null) return 'done';
    try {
      if (runCounted(this.#context.stats, 'Check', task, sliceEndMs, this) === 'more')
        return 'more';
    } catch (error) {
      this.#counter().error += 1;
      throw error;
    }
    this.#answer(task.result());
    return 'done';
  }

  refusedQuery(): RefusedQuery | null {
    if (this.#items === null) return null;
    const contextJson = this.#asked === null ? '' : this.#asked.json;
    const asked = this.#items.queryText(0);
    return asked.kind === 'check' ? { ...asked, contextJson } : asked;
  }

  #answer(isAllowed: boolean): void {
    const counter = this.#counter();
    if (isAllowed) counter.allowed += 1;
    else counter.denied += 1;
    this.#context.writer.kind(this.#request.requestId, isAllowed ? ANSWER_ALLOWED : ANSWER_DENIED);
  }

  #counter(): PairCounter {
    const items = this.#items;
    const bound = this.#bound;
    if (items === null || bound === null) return this.#context.stats.other;
    return this.#context.counterOf(bound, this.#namespace, this.#relation, items, 0);
  }
}

/** The evaluation of a batch from its items on; it borrows an evaluator for itself. */
function evaluationOf(
  context: JobContext,
  request: RawJobRequest,
  items: RawItems,
  bound: BoundEngine,
): BatchEvaluation {
  const { clock, batchBudgetFactor, stats } = context;
  const { readBudget } = request.scope;
  stats.rawBatch(items.count);
  const totalBudget = readBudget * batchBudgetFactor;
  return new BatchEvaluation(items, context, bound, {
    readBudget,
    totalBudget,
    nowMs: clock.nowMs(),
  });
}

class RawBatchWork implements JobWork {
  readonly isLong = false;
  readonly keepsEvaluator = false;
  readonly isPartlySent = false;
  readonly #context: JobContext;
  readonly #request: RawJobRequest;
  #evaluation: BatchEvaluation | null = null;
  #items: RawItems | null = null;
  #isKept = false;

  constructor(context: JobContext, request: RawJobRequest) {
    this.#context = context;
    this.#request = request;
  }

  ended(): void {
    this.#request.source.closed();
  }

  read(): boolean {
    const { isJson, bodies, start, end } = this.#request;
    const { json, proto } = this.#context;
    const isScanned = isJson
      ? json.batchCheck(bodies, start, end)
      : proto.batchCheck(bodies, start, end);
    return isAsExpected(this.#context, this.#request, isScanned);
  }

  start(bound: BoundEngine, reader: TupleReader): void {
    const items = itemsOf(this.#context, this.#request, reader);
    this.#items = items;
    this.#isKept = false;
    this.#evaluation = evaluationOf(this.#context, this.#request, items, bound);
  }

  advance(sliceEndMs: number): 'done' | 'more' {
    const evaluation = this.#evaluation;
    if (evaluation === null) throw new Error('a batch that was not started');
    if (evaluation.run(sliceEndMs) === 'more') {
      if (!this.#isKept) this.#items?.keep();
      this.#isKept = true;
      return 'more';
    }
    const encode = this.#request.isJson ? jsonOfBatch : protoOfBatch;
    const { writer } = this.#context;
    encode(evaluation.outcomes, evaluation.errors, (length) =>
      writer.space(this.#request.requestId, length),
    );
    return 'done';
  }
}

/** A batch with a large body: read, evaluated and encoded in slices. */
class RawLongBatchWork implements JobWork {
  readonly isLong = true;
  readonly keepsEvaluator = false;
  readonly isPartlySent = false;
  readonly #context: JobContext;
  readonly #request: RawJobRequest;
  #scan: BatchScan | null = null;
  #isScanning = false;
  #evaluation: BatchEvaluation | null = null;
  #encoder: BatchEncoder | null = null;

  constructor(context: JobContext, request: RawJobRequest) {
    this.#context = context;
    this.#request = request;
  }

  ended(): void {
    if (this.#scan !== null) this.#context.giveScan(this.#scan);
    this.#scan = null;
    this.#request.source.closed();
  }

  read(sliceEndMs: number): boolean | null {
    const { isJson, bodies, start, end } = this.#request;
    this.#scan ??= this.#context.takeScan();
    const { json, proto, fields } = this.#scan;
    const scanner = isJson ? json : proto;
    const isScanned = this.#isScanning
      ? scanner.resumeBatch(bodies, sliceEndMs)
      : scanner.startBatch(bodies, start, end, sliceEndMs);
    this.#isScanning = isScanned === null;
    if (isScanned === null) return null;
    return isAsExpected(this.#context, this.#request, isScanned, fields);
  }

  start(bound: BoundEngine, reader: TupleReader): void {
    const { fields } = this.#scan ?? this.#context;
    const items = new RawItems(reader, this.#request.source, fields.items, fields.itemCount);
    this.#encoder = null;
    this.#evaluation = evaluationOf(this.#context, this.#request, items, bound);
  }

  advance(sliceEndMs: number): 'done' | 'more' {
    const evaluation = this.#evaluation;
    if (evaluation === null) throw new Error('a batch that was not started');
    if (this.#encoder === null) {
      if (evaluation.run(sliceEndMs) === 'more') return 'more';
      const { outcomes, errors } = evaluation;
      this.#encoder = new BatchEncoder(outcomes, errors, this.#request.isJson);
    }
    if (this.#encoder.run(sliceEndMs) === 'more') return 'more';
    this.#context.writer.body(this.#request.requestId, this.#encoder.body());
    return 'done';
  }
}

class RawListWork implements JobWork, Asked {
  readonly isLong = true;
  readonly keepsEvaluator = true;
  readonly isPartlySent = false;
  readonly #context: JobContext;
  readonly #request: RawJobRequest;
  #task: EvaluationTask<Uint32Array> | null = null;
  #reader: TupleReader | null = null;
  #asked: RefusedQuery | null = null;
  #encoder: ListEncoder | null = null;

  constructor(context: JobContext, request: RawJobRequest) {
    this.#context = context;
    this.#request = request;
  }

  ended(): void {
    this.#request.source.closed();
  }

  read(): boolean {
    const { isJson, bodies, start, end } = this.#request;
    const { json, proto } = this.#context;
    const isScanned = isJson
      ? json.listObjects(bodies, start, end)
      : proto.listObjects(bodies, start, end);
    return isAsExpected(this.#context, this.#request, isScanned);
  }

  start({ evaluator }: BoundEngine, reader: TupleReader): void {
    const items = itemsOf(this.#context, this.#request, reader);
    this.#encoder = null;
    this.#reader = reader;
    const query = {
      namespace: items.namespaceText(0),
      relation: items.relationText(0),
      userId: items.userText(0),
    };
    this.#asked = { kind: 'listObjects', ...query };
    this.#task = evaluator.startListEntities(
      query,
      this.#context.clock.nowMs(),
      this.#request.scope.readBudget,
    );
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
    return this.#asked;
  }
}
