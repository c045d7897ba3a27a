import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { GeneralEvaluator } from '../../engine/general-evaluator.ts';
import { OverlayReader } from '../../engine/overlay/overlay-reader.ts';
import type { NamespaceModel } from '../../model/namespace-model.ts';
import type { TupleChange } from '../../model/relation-tuple.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import type { ScopeEntry, WorkerRequest } from '../../protocol/messages.ts';
import type {
  QuestionAnswer,
  QuestionArgs,
  QuestionCall,
  QuestionKind,
  QuestionResults,
  Revision,
} from '../../protocol/questions.ts';
import type { RefusedQuestion } from '../../protocol/read-figures.ts';
import { type Asked, EvaluationJob, type JobWork, runCounted } from '../jobs/evaluation-job.ts';
import type { Bound, JobContext } from '../jobs/job-context.ts';
import type { Job } from '../jobs/job.ts';
import { contextualChanges } from './contextual-changes.ts';
import { QUESTIONS } from './question-kinds.ts';
import type { QuestionSpec } from './question-spec.ts';

/** The job of a question of gatehouse.v1, which the gateway parsed and validated. */
export function questionJob(
  context: JobContext,
  request: WorkerRequest<'question'>,
  scope: ScopeEntry,
  waitUntilMsMax: number,
): Job {
  const { requestId, minSeq, deadlineMs, args: call } = request;
  const head = { requestId, scope, minSeq, deadlineMs };
  const work = workOf(context, requestId, call, scope.readBudget);
  return new EvaluationJob(context, head, waitUntilMsMax, work);
}

function workOf<K extends QuestionKind>(
  context: JobContext,
  requestId: number,
  call: QuestionCall<K>,
  readBudget: number,
): JobWork {
  // The member of that kind: its args and its spec belong together.
  const spec = QUESTIONS[call.kind] as QuestionSpec<K>;
  return new QuestionWork(context, requestId, spec, call.args, readBudget);
}

class QuestionWork<K extends QuestionKind> implements JobWork, Asked {
  readonly isLong: boolean;
  /** The general evaluation keeps nothing in the evaluator. */
  readonly keepsEvaluator = false;
  readonly #context: JobContext;
  readonly #requestId: number;
  readonly #spec: QuestionSpec<K>;
  readonly #args: QuestionArgs[K];
  readonly #readBudget: number;
  #task: EvaluationTask<QuestionResults[K]> | null = null;
  #revision: Revision = { epoch: 0, seq: 0 };
  #parts: readonly QuestionResults[K][] | null = null;
  #sent = 0;

  constructor(
    context: JobContext,
    requestId: number,
    spec: QuestionSpec<K>,
    args: QuestionArgs[K],
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

  start(bound: Bound, reader: TupleReader, { epoch, seq }: Revision): void {
    const context = this.#context;
    this.#revision = { epoch, seq };
    this.#parts = null;
    const over = (changes: readonly TupleChange[]): GeneralEvaluator =>
      changes.length === 0
        ? bound.evaluator.general
        : bound.evaluator.over(new OverlayReader(reader, changes));
    const ground = {
      evaluator: over(contextualChanges(bound.model, this.#args.contextual)),
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
    const result = { result: part, revision: this.#revision } as QuestionAnswer;
    writer.response({ requestId: this.#requestId, method: 'question', result, isPart });
    return isPart ? 'more' : 'done';
  }

  refusedQuestion(): RefusedQuestion | null {
    return this.#spec.refusedQuestion?.(this.#args) ?? null;
  }
}
