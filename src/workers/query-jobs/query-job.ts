import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
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
import type { BoundEngine } from '../jobs/bound-engine.ts';
import { type Asked, EvaluationJob, type JobWork } from '../jobs/evaluation-job.ts';
import type { JobContext } from '../jobs/job-context.ts';
import type { ReadJob } from '../jobs/job.ts';
import type { QuerySpec } from '../queries/query-spec.ts';
import { QUERIES } from './query-kinds.ts';
import { runQuery, startQuery } from './run-query.ts';

/** The job of a query, which the gateway parsed and validated. */
export function queryJob(
  context: JobContext,
  request: WorkerRequest,
  scope: ScopeEntry,
  waitUntilMsMax: number,
): ReadJob {
  const { requestId, minRevision, deadlineMs, query } = request;
  const isDeadlineStated = request.isDeadlineStated === true;
  const head = { requestId, scope, minRevision, deadlineMs, isDeadlineStated };
  const work = workOf(context, requestId, query, scope);
  return new EvaluationJob(context, head, waitUntilMsMax, work);
}

function workOf<K extends QueryKind>(
  context: JobContext,
  requestId: number,
  call: QueryCall<K>,
  scope: ScopeEntry,
): JobWork {
  // The member of that kind: its args and its spec belong together.
  const spec = QUERIES[call.kind] as QuerySpec<K>;
  return new QueryWork(context, requestId, spec, call.args, scope);
}

class QueryWork<K extends QueryKind> implements JobWork, Asked {
  readonly isLong: boolean;
  /** The general evaluation keeps nothing in the evaluator. */
  readonly keepsEvaluator = false;
  readonly #context: JobContext;
  readonly #requestId: number;
  readonly #spec: QuerySpec<K>;
  readonly #args: QueryArgs[K];
  readonly #scope: ScopeEntry;
  #task: EvaluationTask<QueryResults[K]> | null = null;
  #revision: Revision = { epoch: 0, revision: 0 };
  #parts: readonly QueryResults[K][] | null = null;
  #sent = 0;

  constructor(
    context: JobContext,
    requestId: number,
    spec: QuerySpec<K>,
    args: QueryArgs[K],
    scope: ScopeEntry,
  ) {
    this.#context = context;
    this.#requestId = requestId;
    this.#spec = spec;
    this.#args = args;
    this.#scope = scope;
    this.isLong = spec.isLong(args);
  }

  /** Parts that were sent cannot be taken back. */
  get isPartlySent(): boolean {
    return this.#sent > 0;
  }

  start(bound: BoundEngine, reader: TupleReader, { epoch, revision }: Revision): void {
    this.#revision = { epoch, revision };
    this.#parts = null;
    this.#task = startQuery(this.#context, this.#scope, this.#spec, this.#args, bound, reader);
  }

  advance(sliceEndMs: number): 'done' | 'more' {
    const task = this.#task;
    if (task === null) throw new Error('a question that was not started');
    const { stats, writer } = this.#context;
    if (this.#parts === null) {
      if (runQuery(stats, this.#spec, task, sliceEndMs, this) === 'more') return 'more';
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
