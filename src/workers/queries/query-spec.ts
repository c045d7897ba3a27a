import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { Evaluator } from '../../engine/evaluator.ts';
import type { GeneralEvaluator } from '../../engine/general-evaluator.ts';
import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import type { TupleChange } from '../../model/relation-tuple.ts';
import type { QueryArgs, QueryKind, QueryResults } from '../../protocol/queries.ts';
import type { RefusedQuery } from '../../protocol/read-figures.ts';
import type { EvaluatedRpc } from '../counts/decision-stats.ts';
import type { JobContext } from '../jobs/job-context.ts';

/** Decides one query at a time. */
export type Decider = Pick<GeneralEvaluator, 'startCheck' | 'startDecision'>;

/** Ground of a query: one index at one revision, with the request's tuples laid over it. */
export type QueryGround = {
  /** Over the reader that has the request's tuples, which is `evaluator.reader`. */
  readonly evaluator: GeneralEvaluator;
  /** Over what is stored alone. */
  readonly stored: Pick<Evaluator, 'startExpand'>;
  /** Decides as `evaluator` does; where the request has no tuples the hot path decides what it can. */
  readonly decider: Decider;
  readonly model: NamespaceModel;
  /** Whether the project refuses queries about relations that its typed model does not have. */
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

/** How one kind of query is evaluated. */
export type QuerySpec<K extends QueryKind> = {
  /** Under which its reads and backstops are counted; absent: they are not. */
  readonly rpc?: EvaluatedRpc | undefined;
  /** Its evaluation counts each item of its own. */
  readonly countsItems?: boolean | undefined;
  /** The query, where it can be asked again by itself once it ran out of its budget. */
  refusedQuery?(args: QueryArgs[K]): RefusedQuery | null;
  /** Whether it is expected to take more than a slice of 2 ms. */
  isLong(args: QueryArgs[K]): boolean;
  /** Begins the evaluation. Its errors fail the request. */
  start(ground: QueryGround, args: QueryArgs[K]): EvaluationTask<QueryResults[K]>;
  /** Cuts a long result into parts, each of a message of its own; absent: it travels whole. At least one part. */
  parts?(result: QueryResults[K]): readonly QueryResults[K][];
};
