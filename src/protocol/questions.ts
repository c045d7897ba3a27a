import type { Explanation } from '../model/explanation.ts';
import type { RelationTuple, Subject, TupleChange } from '../model/relation-tuple.ts';

/**
 * Questions of gatehouse.v1.QueryService as they travel to the worker that owns the shard: a kind with its arguments
 * and its result, structured-clone safe. A new kind is a member of QuestionArgs and of QuestionResults, and its
 * evaluation in workers/questions.
 */

/** Values of the label `rpc` for calls of QueryService; those that share a name with AuthzService begin with Query. */
export const QUESTION_RPCS = [
  'QueryCheck',
  'QueryBatchCheck',
  'WhatIf',
  'Explain',
  'ListSubjects',
  'ListRelations',
  'FilterObjects',
  'QueryListObjects',
  'StreamObjects',
] as const;
export type QuestionRpc = (typeof QUESTION_RPCS)[number];

/** What every question carries besides what it asks. */
export type QuestionHead = {
  /** Tuples that hold for this question only, checked as written ones are, each identity once. */
  readonly contextual: readonly RelationTuple[];
  /** JSON text of the context object; '' when absent. */
  readonly context: string;
};

/** Whether `subject` (never the wildcard) holds a relation on an object. */
export type Question = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject: Subject;
};

/** What Check says of a question; `undecided` only where it is not allowed. */
export type Decision = { readonly allowed: boolean; readonly undecided: boolean };

/** A decision of many; one with an `error` is neither allowed nor undecided. */
export type ItemDecision = Decision & { readonly error: string };

/** A question with a context of its own, which replaces that of the head. */
export type BatchQuestion = Question & { readonly context?: string | undefined };

/** A question's answer as it is and as it would be; both are false where there is an `error`. */
export type ItemChange = {
  readonly allowedBefore: boolean;
  readonly allowedAfter: boolean;
  readonly error: string;
};

export type QuestionArgs = {
  readonly check: QuestionHead & { readonly question: Question };
  readonly batchCheck: QuestionHead & { readonly items: readonly BatchQuestion[] };
  /** The contextual tuples hold before and after the updates, of which each names another tuple. */
  readonly whatIf: QuestionHead & {
    readonly updates: readonly TupleChange[];
    readonly questions: readonly Question[];
  };
  readonly explain: QuestionHead & {
    readonly question: Question;
    /** At most so many remedies. */
    readonly remediesMax: number;
  };
};

export type QuestionResults = {
  readonly check: Decision;
  readonly batchCheck: readonly ItemDecision[];
  readonly whatIf: readonly ItemChange[];
  readonly explain: Explanation;
};

export type QuestionKind = keyof QuestionArgs;

/** A question with its arguments: a correlated union. */
export type QuestionCall<K extends QuestionKind = QuestionKind> = {
  [Kind in K]: { readonly kind: Kind; readonly args: QuestionArgs[Kind] };
}[K];

/** Where the index stood: what the consistency token of the answer names. */
export type Revision = { readonly epoch: number; readonly seq: number };

/** The result, or a part of it, and the revision that it was computed at. All parts are of one. */
export type QuestionAnswer<K extends QuestionKind = QuestionKind> = {
  readonly result: QuestionResults[K];
  readonly revision: Revision;
};
