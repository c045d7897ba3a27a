import type { TupleReader } from '../../model/tuple-reader.ts';

/** Answers of `Evaluator.checkUser`. */
export const CHECK_DENIED = 0;
export const CHECK_ALLOWED = 1;
/** Needs `startCheckIds`: the evaluation is long, or meets an intersection, exclusion or qualifier. */
export const CHECK_GENERAL = 2;

/** Bits of `EvaluationTask.backstops` and `Evaluator.lastBackstops`, for authz_eval_backstop_total. */
export const BACKSTOP_DEPTH = 1;
export const BACKSTOP_CYCLE = 2;
export const BACKSTOP_BUDGET = 4;

/** Caches that an evaluator keeps between evaluations (docs/caching.md). */
export const ENGINE_CACHES = ['closures', 'objects', 'chains', 'conditions'] as const;
export type EngineCache = (typeof ENGINE_CACHES)[number];

/** Which stored tuples count: for a model that ignores those that it does not admit. */
export interface EdgeAdmission {
  /** Whether the stored tuple (node, subject) counts. `isQualified`: it has an expiry or a condition. */
  admits(reader: TupleReader, node: number, subject: number, isQualified: boolean): boolean;
}

/** Settings of an evaluator that do not change while it lives. */
export type EvaluatorOptions = {
  /** Nodes on one path of a derivation (GATEWAY_MAX_CHECK_DEPTH, 256). */
  readonly depthMax: number;
  /** Bytes that cached memberships of users' groups may take. */
  readonly membershipBytesMax: number;
  /** Caches smaller than this are not read ahead; 8 MiB when absent. */
  readonly readAheadBytesMin?: number | undefined;
  /** Caches that remember nothing, so that a measurement can show their gain; none when absent. */
  readonly cachesOff?: readonly EngineCache[] | undefined;
};

/**
 * One evaluation that may take longer than a slice. The caller must not apply changes to the index between
 * two `run` calls of one task. It finishes or drops a task before the next one of the same evaluator.
 */
export interface EvaluationTask<T> {
  /**
   * Works until done or until `monotonicMs()` has passed `sliceEndMs` (checked about every 50 µs).
   * Errors: AppError BUDGET_EXHAUSTED naming relation and limit.
   */
  run(sliceEndMs: number): 'done' | 'more';
  /** The result, once `run` returned 'done'. */
  result(): T;
  /** BACKSTOP_ bits that fired; valid after 'done' and after an error. */
  readonly backstops: number;
  /** Reads so far; absent where none are needed. A batch has a total budget. */
  readonly reads?: number | undefined;
}
