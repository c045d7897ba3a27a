import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { GeneralEvaluator } from '../../engine/general-evaluator.ts';
import type { NamespaceModel } from '../../model/namespace-model.ts';
import type { TupleChange } from '../../model/relation-tuple.ts';
import type {
  QuestionArgs,
  QuestionKind,
  QuestionResults,
  QuestionRpc,
} from '../../protocol/questions.ts';
import type { RefusedQuestion } from '../../protocol/read-figures.ts';
import type { JobContext } from '../jobs/job-context.ts';

/** What a question is evaluated over: one index at one revision, with the request's tuples laid over it. */
export type QuestionGround = {
  /** Over the reader that has the request's tuples, which is `evaluator.reader`. */
  readonly evaluator: GeneralEvaluator;
  readonly model: NamespaceModel;
  /** Whether the project refuses questions about relations that its typed model does not have. */
  readonly refusesUnknown: boolean;
  readonly nowMs: number;
  /** Reads of one evaluation. */
  readonly readBudget: number;
  readonly context: JobContext;
  /** The evaluator over what is stored with these changes, in their order, and without the request's tuples. */
  over(changes: readonly TupleChange[]): GeneralEvaluator;
  /** The evaluator of what is stored under another model, which is gone with it. */
  under(model: NamespaceModel): GeneralEvaluator;
};

/** How one kind of question is evaluated. */
export type QuestionSpec<K extends QuestionKind> = {
  /** Under which its reads and backstops are counted; absent: they are not. */
  readonly rpc?: QuestionRpc | undefined;
  /** Its evaluation counts each item of its own. */
  readonly countsItems?: boolean | undefined;
  /** The question, where it can be asked again by itself once it ran out of its budget. */
  refusedQuestion?(args: QuestionArgs[K]): RefusedQuestion | null;
  /** Whether it is expected to take more than a slice of 2 ms. */
  isLong(args: QuestionArgs[K]): boolean;
  /** Begins the evaluation. Its errors fail the request. */
  start(ground: QuestionGround, args: QuestionArgs[K]): EvaluationTask<QuestionResults[K]>;
  /** Cuts a long result into parts, each of a message of its own; absent: it travels whole. At least one part. */
  parts?(result: QuestionResults[K]): readonly QuestionResults[K][];
};
