import type { Subject } from '../model/relation-tuple.ts';

/*
 * Reads of single projects, as workers report them: how many evaluations took, as a share of the project's own budget
 * too, and which queries ran out of it.
 */

/** Reads below this have a bucket each; beyond it there are eight buckets between two powers of two. */
const EXACT_READS = 16;
const PARTS_PER_POWER = 8;
const EXACT_POWER = 4;
const POWER_MAX = 30;

/** Buckets of a read histogram of a project. */
export const READ_BUCKETS = EXACT_READS + (POWER_MAX - EXACT_POWER + 1) * PARTS_PER_POWER;

/** The bucket of an evaluation of `reads` (an integer from 0 to 2^31 - 1). Hot. */
export function readBucketOf(reads: number): number {
  if (reads < EXACT_READS) return reads;
  const power = 31 - Math.clz32(reads);
  const part = (reads >>> (power - 3)) & (PARTS_PER_POWER - 1);
  return EXACT_READS + (power - EXACT_POWER) * PARTS_PER_POWER + part;
}

/** The most reads that fall into a bucket: at most an eighth above the fewest. */
export function readsOfBucket(bucket: number): number {
  if (bucket < EXACT_READS) return bucket;
  const beyond = bucket - EXACT_READS;
  const power = EXACT_POWER + Math.floor(beyond / PARTS_PER_POWER);
  const part = beyond % PARTS_PER_POWER;
  return (PARTS_PER_POWER + part + 1) * 2 ** (power - 3) - 1;
}

/**
 * Upper bounds of the buckets of reads as a share of the budget. Refused evaluations are beyond the last one: the
 * reads that they needed are unknown.
 */
export const SHARE_BOUNDS: readonly number[] = [
  0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
];

/** Reads of one project's evaluations since the last report. */
export type ProjectFigures = {
  /** '' means all projects beyond those that a worker distinguishes. */
  readonly projectId: string;
  /** The budget of the last evaluation. */
  readonly budget: number;
  /** Bucket and count by turns, of answered evaluations; empty buckets are left out. */
  readonly buckets: readonly number[];
  /** By SHARE_BOUNDS, and one bucket more of what was refused. */
  readonly shares: readonly number[];
  /** Reads of all evaluations, refused ones too. */
  readonly reads: number;
  /** Reads of the answered evaluation that took most. */
  readonly readsMax: number;
  /** Evaluations and batches that ran out of their budget. */
  readonly refusals: number;
};

/** A query that can be asked again, as it was asked. */
export type RefusedQuery =
  | {
      readonly kind: 'check';
      readonly namespace: string;
      readonly objectId: string;
      readonly relation: string;
      readonly subject: Subject;
      /** JSON text; '' if none. */
      readonly contextJson: string;
      /** Whether usersets are asked about exactly: CheckQuery. */
      readonly isExact?: boolean | undefined;
    }
  | {
      readonly kind: 'expand';
      readonly namespace: string;
      readonly objectId: string;
      readonly relation: string;
    }
  | {
      readonly kind: 'listObjects';
      readonly namespace: string;
      readonly relation: string;
      readonly userId: string;
    };

/** One evaluation, or one batch, that ran out of its budget. Not each has one: see `unreported`. */
export type BudgetRefusal = {
  /** Id of the request, as the slot numbers them. */
  readonly requestId: number;
  readonly projectId: string;
  readonly tenantId: string;
  /** Value of the label `rpc`. */
  readonly rpc: string;
  /** `namespace#relation`. */
  readonly relation: string;
  readonly limit: number;
  /** Whether the budget was that of one evaluation or that of a whole batch. */
  readonly bound: 'evaluation' | 'batch';
  /** null where the query cannot be asked again by itself. */
  readonly query: RefusedQuery | null;
  /** Refusals of the project since the one before that were only counted. */
  readonly unreported: number;
};
