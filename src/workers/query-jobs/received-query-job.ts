import { create } from '@bufbuild/protobuf';
import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import type {
  Decision,
  QueryMethod,
  QueryMethodKinds,
  QueryResults,
  Revision,
} from '../../protocol/queries.ts';
import type { RefusedQuery } from '../../protocol/read-figures.ts';
import type { WireFormat } from '../../protocol/shard-client.ts';
import { leaveTokenSpace, TOKEN_SPACE_BYTES } from '../../protocol/token-space.ts';
import { encodeAnswer, type EncodedAnswer } from '../../requests/encode-answer.ts';
import { type CheckedQuery, QUERY_METHODS } from '../../requests/query-methods.ts';
import type { BoundEngine } from '../jobs/bound-engine.ts';
import { type Asked, EvaluationJob, type JobWork } from '../jobs/evaluation-job.ts';
import type { JobContext } from '../jobs/job-context.ts';
import type { ReadJob } from '../jobs/job.ts';
import type { ReceivedRequest } from '../jobs/received-request.ts';
import type { QuerySpec } from '../queries/query-spec.ts';
import { QUERIES } from './query-kinds.ts';
import { runQuery, startQuery } from './run-query.ts';

const DESC = QUERY_METHODS.queryCheck.answer;
/** Encoded answers by format and content: sixteen at most. */
const encodedChecks = new Map<string, EncodedAnswer>();

/** The answer to a Check of gatehouse.v1, encoded once for each that there is. Its bytes are for reading. */
export function checkAnswer(decision: Decision, format: WireFormat): EncodedAnswer {
  const { allowed, undecided, unknownRelation } = decision;
  const key = `${format} ${allowed} ${undecided} ${unknownRelation}`;
  let answer = encodedChecks.get(key);
  if (answer === undefined) {
    const message = create(DESC, { allowed, undecided, unknownRelation });
    const step = encodeAnswer(DESC, message, format).next();
    if (step.done !== true) throw new Error('a short answer is encoded in one step');
    answer = step.value;
    encodedChecks.set(key, answer);
  }
  return answer;
}

/** A longer list takes more than a slice: some thirty items, each of which takes ten microseconds and more. */
const SHORT_LIST_BYTES_MAX = 4 * 1024;

/** The job of a query of gatehouse.v1, which is decoded, evaluated and answered here. */
export function receivedQueryJob(
  context: JobContext,
  request: ReceivedRequest,
  method: QueryMethod,
  waitUntilMsMax: number,
): ReadJob {
  // The member of that method: its kind and its spec belong together.
  const spec = QUERIES[QUERY_METHODS[method].kind] as unknown as QuerySpec<
    QueryMethodKinds[typeof method]
  >;
  const work = new ReceivedQueryWork(context, request, method, spec);
  return new EvaluationJob(context, request, waitUntilMsMax, work);
}

class ReceivedQueryWork<M extends QueryMethod> implements JobWork, Asked {
  readonly isLong: boolean;
  readonly isReadFirst: boolean;
  /** The general evaluation keeps nothing in the evaluator. */
  readonly keepsEvaluator = false;
  readonly isPartlySent = false;
  readonly #context: JobContext;
  readonly #request: ReceivedRequest;
  readonly #method: M;
  readonly #spec: QuerySpec<QueryMethodKinds[M]>;
  #task: EvaluationTask<QueryResults[QueryMethodKinds[M]]> | null = null;
  #encoding: Iterator<void, EncodedAnswer> | null = null;
  #revision: Revision = { epoch: 0, revision: 0 };

  constructor(
    context: JobContext,
    request: ReceivedRequest,
    method: M,
    spec: QuerySpec<QueryMethodKinds[M]>,
  ) {
    this.#context = context;
    this.#request = request;
    this.#method = method;
    this.#spec = spec;
    this.isReadFirst = request.isLong;
    this.isLong = isLong(method, request.bytes);
  }

  read(sliceEndMs: number): boolean {
    return this.#request.read(sliceEndMs);
  }

  start(bound: BoundEngine, reader: TupleReader, { epoch, revision }: Revision): void {
    this.#revision = { epoch, revision };
    this.#encoding = null;
    const { scope } = this.#request;
    this.#task = startQuery(this.#context, scope, this.#spec, this.#asked.args, bound, reader);
  }

  get #asked(): CheckedQuery<M> {
    const { decoded } = this.#request;
    if (decoded === null || !('asked' in decoded)) throw new Error('a question that was not read');
    // It was decoded as one of this method.
    return decoded.asked as unknown as CheckedQuery<M>;
  }

  advance(sliceEndMs: number): 'done' | 'more' {
    const task = this.#task;
    if (task === null) throw new Error('a question that was not started');
    if (this.#encoding === null) {
      const { stats } = this.#context;
      if (runQuery(stats, this.#spec, task, sliceEndMs, this) === 'more') return 'more';
      const asked = this.#asked;
      // Not before: of a batch that fails as a whole the call is what failed.
      for (const { reason } of asked.problems) stats.error(this.#spec.rpc ?? '', reason);
      const result = task.result();
      const format = this.#request.isJson ? 'json' : 'proto';
      if (this.#method === 'queryCheck') {
        this.#answer(checkAnswer(result as Decision, format));
        return 'done';
      }
      this.#encoding = encoded(this.#method, asked, result, format);
    }
    do {
      const step = this.#encoding.next();
      if (step.done !== true) continue;
      this.#answer(step.value);
      return 'done';
    } while (performance.now() < sliceEndMs);
    return 'more';
  }

  #answer({ body, tokenAt }: EncodedAnswer): void {
    const { writer } = this.#context;
    const answer = writer.space(this.#request.requestId, body.length + TOKEN_SPACE_BYTES);
    answer.set(body);
    leaveTokenSpace(answer, tokenAt, this.#revision);
  }

  refusedQuery(): RefusedQuery | null {
    return this.#spec.refusedQuery?.(this.#asked.args) ?? null;
  }

  ended(): void {
    // Its turn may still reference the job; that must not retain its memory.
    this.#task = null;
    this.#encoding = null;
    this.#request.ended();
  }
}

function isLong(method: QueryMethod, bytes: number): boolean {
  switch (method) {
    case 'queryCheck':
      return false;
    case 'queryBatchCheck':
    case 'filterObjects':
      return bytes > SHORT_LIST_BYTES_MAX;
    case 'listRelations':
    case 'explain':
      return true;
  }
}

function* encoded<M extends QueryMethod>(
  method: M,
  asked: CheckedQuery<M>,
  result: QueryResults[QueryMethodKinds[M]],
  format: WireFormat,
): Generator<void, EncodedAnswer> {
  const answer = yield* asked.answerOf(result);
  return yield* encodeAnswer(QUERY_METHODS[method].answer, answer, format);
}
