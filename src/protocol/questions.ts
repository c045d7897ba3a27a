import type { RelationTuple, Subject } from '../model/relation-tuple.ts';

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

export type QuestionArgs = {
  readonly check: QuestionHead & { readonly question: Question };
};

export type QuestionResults = {
  readonly check: Decision;
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
