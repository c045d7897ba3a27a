import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import type { ScopeEntry } from '../../protocol/messages.ts';
import type { Revision } from '../../protocol/queries.ts';
import type { RefusedQuery } from '../../protocol/read-figures.ts';
import { AppError, errorToData } from '../../shared/app-error.ts';
import type { CountedRequest, DecisionStats, EvaluatedRpc } from '../counts/decision-stats.ts';
import { type BoundEngine, EvaluatorLease } from './bound-engine.ts';
import { type JobContext } from './job-context.ts';
import type { ReadJob, JobShard } from './job.ts';

/** Fields that every request has, however it arrived. */
export type JobHead = {
  readonly requestId: number;
  readonly scope: ScopeEntry;
  readonly minRevision: number;
  readonly deadlineMs: number;
  readonly isDeadlineStated: boolean;
};

/** The part of a job that is particular to one method. */
export interface JobWork {
  /** Whether it is expected to take more than a slice. */
  readonly isLong: boolean;
  /** Whether it takes long to read: then it is read before it begins, over no index. Absent: not. */
  readonly isReadFirst?: boolean;
  /** Whether the evaluator of the first slice is needed until the end. */
  readonly keepsEvaluator: boolean;
  /** Whether a part of the answer was sent, so that what was evaluated stays the answer. */
  readonly isPartlySent: boolean;
  /**
   * Reads the request, anew where it was read before; false if the monotonic clock passed `sliceEndMs` and there is more to read.
   * Errors refuse it. Absent where it came parsed.
   */
  read?(sliceEndMs: number): boolean;
  /** Begins to evaluate, anew if it had begun on an index that has gone. */
  start(bound: BoundEngine, reader: TupleReader, revision: Revision): void;
  /** Evaluates until answered or until the monotonic clock passed `sliceEndMs`. Errors fail the request. */
  advance(sliceEndMs: number): 'done' | 'more';
  /** The request has its answer or its error. */
  ended?(): void;
}

/** A request in its worker: begins over its shard's index, acquires evaluators, and answers errors. */
export class EvaluationJob implements ReadJob, CountedRequest {
  readonly requestId: number;
  readonly scope: ScopeEntry;
  readonly minRevision: number;
  readonly deadlineMs: number;
  readonly isDeadlineStated: boolean;
  readonly waitUntilMs: number;
  readonly isLong: boolean;
  model: NamespaceModel | null = null;
  hasDropped = false;
  readonly #context: JobContext;
  readonly #work: JobWork;
  #isStarted = false;
  #bound: BoundEngine | null = null;
  #lease: EvaluatorLease | null = null;

  constructor(context: JobContext, head: JobHead, waitUntilMsMax: number, work: JobWork) {
    this.requestId = head.requestId;
    this.scope = head.scope;
    this.minRevision = head.minRevision;
    this.deadlineMs = head.deadlineMs;
    this.isDeadlineStated = head.isDeadlineStated;
    this.waitUntilMs = Math.min(head.deadlineMs, waitUntilMsMax);
    this.isLong = work.isLong;
    this.#context = context;
    this.#work = work;
  }

  get isCancelled(): boolean {
    const { cancelled } = this.#context;
    return cancelled.size > 0 && cancelled.has(this.requestId);
  }

  run(shard: JobShard, sliceEndMs: number): 'done' | 'more' {
    const work = this.#work;
    this.#context.stats.turnTo(this);
    if (!this.#isStarted) {
      if (!this.read(sliceEndMs)) return 'more';
      const { model } = this;
      if (model === null) throw new Error('a job that was submitted without its model');
      const bound = this.#context.engines.of(shard.index, model);
      this.#lease = null;
      this.#bound = bound;
      work.start(bound, shard.index.reader, shard.position);
      this.#isStarted = true;
    }
    const progress = work.advance(sliceEndMs);
    // The first suspension comes in the call that started, so this is the evaluator in use.
    if (progress === 'more' && work.keepsEvaluator && this.#bound !== null) {
      this.#lease ??= new EvaluatorLease(this.#bound);
    }
    this.#lease?.sliceEnded(progress);
    return progress === 'done' ? this.#ended() : 'more';
  }

  get isReadFirst(): boolean {
    return this.#work.isReadFirst === true;
  }

  read(sliceEndMs: number): boolean {
    return this.#work.read?.(sliceEndMs) ?? true;
  }

  restart(): void {
    if (!this.#work.isPartlySent) this.#isStarted = false;
  }

  fail(error: AppError): void {
    this.#ended();
    this.#context.writer.error(this.requestId, errorToData(error));
  }

  drop(): void {
    this.#ended();
  }

  #ended(): 'done' {
    this.#work.ended?.();
    return 'done';
  }
}

/** The request under evaluation, for a report that it ran out of its budget. */
export interface Asked {
  /** null where it cannot be asked again by itself. */
  refusedQuery(): RefusedQuery | null;
}

/** Runs a task, counting its reads and backstops once, at its end. Errors: those of the task. */
export function runCounted(
  stats: DecisionStats,
  rpc: EvaluatedRpc,
  task: EvaluationTask<unknown>,
  sliceEndMs: number,
  asked: Asked,
): 'done' | 'more' {
  try {
    if (task.run(sliceEndMs) === 'more') return 'more';
  } catch (error) {
    stats.evaluated(rpc, task);
    countRefusal(stats, rpc, error, () => asked.refusedQuery());
    throw error;
  }
  stats.evaluated(rpc, task);
  return 'done';
}

/** Counts what ran out of its budget; every other error is nothing here. */
export function countRefusal(
  stats: DecisionStats,
  rpc: EvaluatedRpc,
  error: unknown,
  query: () => RefusedQuery | null,
): void {
  if (!(error instanceof AppError) || error.reason !== 'BUDGET_EXHAUSTED') return;
  // The relation that the evaluation named; many decisions in one have none in common.
  const { relation = '', limit } = error.metadata;
  stats.refused({ rpc, relation, limit: Number(limit), bound: 'evaluation', query });
}
