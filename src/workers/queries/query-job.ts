import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { GeneralEvaluator } from '../../engine/general-evaluator.ts';
import { OverlayReader } from '../../engine/overlay/overlay-reader.ts';
import type { NamespaceModel } from '../../model/namespace-model.ts';
import type { TupleChange } from '../../model/relation-tuple.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import type { ScopeEntry, WorkerRequest } from '../../protocol/messages.ts';
import type {
  QueryAnswer,
  QueryArgs,
  QueryCall,
  QueryKind,
  QueryResults,
  Revision,
} from '../../protocol/queries.ts';
import type { RefusedQuery } from '../../protocol/read-figures.ts';
import { type Asked, EvaluationJob, type JobWork, runCounted } from '../jobs/evaluation-job.ts';
import type { BoundEngine, JobContext } from '../jobs/job-context.ts';
import type { Job } from '../jobs/job.ts';
import { contextualChanges } from './contextual-changes.ts';
import { QUERIES } from './query-kinds.ts';
import type { QuerySpec } from './query-spec.ts';

/** The job of a query, which the gateway parsed and validated. */
export function queryJob(
  context: JobContext,
  request: WorkerRequest,
  scope: ScopeEntry,
  waitUntilMsMax: number,
): Job {
  const { requestId, minRevision, deadlineMs, query } = request;
  const isDeadlineStated = request.isDeadlineStated === true;
  const head = { requestId, scope, minRevision, deadlineMs, isDeadlineStated };
  const work = workOf(context, requestId, query, scope.readBudget);
  return new EvaluationJob(context, head, waitUntilMsMax, work);
}

function workOf<K extends QueryKind>(
  context: JobContext,
  requestId: number,
  call: QueryCall<K>,
  readBudget: number,
): JobWork {
  // The member of that kind: its args and its spec belong together.
  const spec = QUERIES[call.kind] as QuerySpec<K>;
  return new QueryWork(context, requestId, spec, call.args, readBudget);
}

class QueryWork<K extends QueryKind> implements JobWork, Asked {
  readonly isLong: boolean;
  /** The general evaluation keeps nothing in the evaluator. */
  readonly keepsEvaluator = false;
  readonly #context: JobContext;
  readonly #requestId: number;
  readonly #spec: QuerySpec<K>;
  readonly #args: QueryArgs[K];
  readonly #readBudget: number;
  #task: EvaluationTask<QueryResults[K]> | null = null;
  #revision: Revision = { epoch: 0, revision: 0 };
  #parts: readonly QueryResults[K][] | null = null;
  #sent = 0;

  constructor(
    context: JobContext,
    requestId: number,
    spec: QuerySpec<K>,
    args: QueryArgs[K],
    readBudget: number,
  ) {
    this.#context = context;
    this.#requestId = requestId;
    this.#spec = spec;
    this.#args = args;
    this.#readBudget = readBudget;
    this.isLong = spec.isLong(args);
  }

  /** Parts that were sent cannot be taken back. */
  get isPartlySent(): boolean {
    return this.#sent > 0;
  }

  start(bound: BoundEngine, reader: TupleReader, { epoch, revision }: Revision): void {
    const context = this.#context;
    this.#revision = { epoch, revision };
    this.#parts = null;
    const over = (changes: readonly TupleChange[]): GeneralEvaluator =>
      changes.length === 0
        ? bound.evaluator.general
        : bound.evaluator.over(new OverlayReader(reader, changes));
    const evaluator = over(contextualChanges(bound.model, this.#args.contextual));
    const ground = {
      evaluator,
      stored: bound.evaluator,
      decider: evaluator === bound.evaluator.general ? bound.evaluator : evaluator,
      model: bound.model,
      refusesUnknown: this.#args.refusesUnknown === true,
      nowMs: context.clock.nowMs(),
      readBudget: this.#readBudget,
      context,
      over,
      under: (model: NamespaceModel) => bound.evaluator.under(model, new OverlayReader(reader, [])),
    };
    this.#task = this.#spec.start(ground, this.#args);
  }

  advance(sliceEndMs: number): 'done' | 'more' {
    const task = this.#task;
    if (task === null) throw new Error('a question that was not started');
    const { stats, writer } = this.#context;
    if (this.#parts === null) {
      const { rpc, countsItems } = this.#spec;
      const progress =
        rpc === undefined || countsItems === true
          ? task.run(sliceEndMs)
          : runCounted(stats, rpc, task, sliceEndMs, this);
      if (progress === 'more') return 'more';
      const result = task.result();
      this.#parts = this.#spec.parts?.(result) ?? [result];
    }
    // One part a turn, each in a message of its own.
    const part = this.#parts[this.#sent];
    if (part === undefined) throw new Error('a result has at least one part');
    this.#sent += 1;
    const isPart = this.#sent < this.#parts.length;
    // Kind and result are of the same member.
    const result = { result: part, revision: this.#revision } as QueryAnswer;
    writer.response({ requestId: this.#requestId, result, isPart });
    return isPart ? 'more' : 'done';
  }

  refusedQuery(): RefusedQuery | null {
    return this.#spec.refusedQuery?.(this.#args) ?? null;
  }
}
