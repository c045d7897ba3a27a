import type { ExpandTree, UsersetRef } from '../model/expand-tree.ts';
import type { Explanation } from '../model/explanation.ts';
import type { RelationTuple, Subject, TupleChange } from '../model/relation-tuple.ts';
import type { ListPage, SubjectPage } from '../model/subject-list.ts';
import type { RefusedQuery } from './read-figures.ts';

/**
 * Queries of gatehouse.v1.QueryService as they travel to the worker that owns the shard: a kind with its arguments
 * and its result, structured-clone safe. A new kind is a member of QueryArgs and of QueryResults, and its
 * evaluation in workers/queries.
 */

/** Values of the label `rpc` for calls of QueryService; those that share a name with AuthzService begin with Query. */
export const QUERY_RPCS = [
  'QueryCheck',
  'QueryBatchCheck',
  'WhatIf',
  'Explain',
  'ListSubjects',
  'ListRelations',
  'FilterObjects',
  'QueryListObjects',
  'StreamObjects',
  'PreviewModel',
] as const;
export type QueryRpc = (typeof QUERY_RPCS)[number];

/** Fields of every query besides its own. */
export type QueryStart = {
  /** Tuples that hold for this query only, checked as written ones are, each identity once. */
  readonly contextual: readonly RelationTuple[];
  /** JSON text of the context object; '' when absent. */
  readonly context: string;
  /** Whether usersets are asked about exactly: CheckQuery. */
  readonly isExact?: boolean | undefined;
  /** The version of the model that the query names; absent: the one in force. The scope that it travels with has it. */
  readonly modelVersion?: number | undefined;
};

/** Whether `subject` (never the wildcard) holds a relation on an object. */
export type Query = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject: Subject;
};

/** Check's decision on a query; `undecided` only where it is not allowed. */
export type Decision = {
  readonly allowed: boolean;
  readonly undecided: boolean;
  /** The typed model does not have the namespace or the relation. */
  readonly unknownRelation: boolean;
};

/** Objects of a namespace on which `subject` (never the wildcard) holds a relation. */
export type ObjectsOf = {
  readonly namespace: string;
  readonly relation: string;
  readonly subject: Subject;
};

/** A decision of many; one with an `error` is neither allowed nor undecided. */
export type ItemDecision = Decision & { readonly error: string; readonly errorReason: string };

/** A query with a context of its own, which replaces that of the head. */
export type BatchedQuery = Query & { readonly context?: string | undefined };

/** A query's answer as it is and as it would be; both are false where there is an `error`. */
export type ItemChange = {
  readonly allowedBefore: boolean;
  readonly allowedAfter: boolean;
  readonly error: string;
  readonly unknownRelation: boolean;
};

/** A query of a concrete user, as a preview draws and asks it. */
export type UserQuery = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly userId: string;
  /** JSON text; '' if none. */
  readonly contextJson: string;
};

/** Bits of a previewed answer. */
export const PREVIEW_BEFORE = 1;
export const PREVIEW_AFTER = 2;
/** One of the models could not decide it within its bounds; the other bits are 0. */
export const PREVIEW_FAILED = 4;

/** Reads of an evaluation; where the budget ended first it would have taken more. */
export type ReadsMeasured = { readonly reads: number; readonly isExhausted: boolean };

export type QueryArgs = {
  /** The effective userset tree. */
  readonly expand: QueryStart & UsersetRef;
  readonly check: QueryStart & { readonly query: Query };
  readonly listSubjects: QueryStart & {
    readonly namespace: string;
    readonly objectId: string;
    readonly relation: string;
    /** '' are users, else the namespace of objects; with a relation usersets of it. */
    readonly subjectNamespace: string;
    readonly subjectRelation: string;
    readonly page: ListPage;
  };
  readonly listRelations: QueryStart & {
    readonly namespace: string;
    readonly objectId: string;
    readonly subject: Subject;
    /** Empty: those that the namespace declares or the object has tuples of. */
    readonly relations: readonly string[];
  };
  readonly filterObjects: QueryStart & ObjectsOf & { readonly objectIds: readonly string[] };
  readonly listObjects: QueryStart & ObjectsOf & { readonly page: ListPage };
  readonly streamObjects: QueryStart & ObjectsOf;
  readonly batchCheck: QueryStart & { readonly items: readonly BatchedQuery[] };
  /** The contextual tuples hold before and after the updates, of which each names another tuple. */
  readonly whatIf: QueryStart & {
    readonly updates: readonly TupleChange[];
    readonly queries: readonly Query[];
  };
  /** Queries of objects and users of the shard, drawn by the seed, of relations that either model names. */
  readonly drawQueries: QueryStart & {
    readonly modelJson: string;
    readonly count: number;
    /** Unsigned 32-bit numbers: the same ones draw the same queries of the same index. */
    readonly seed: readonly [number, number];
  };
  /** The decisions on queries under the project's model and under another one, both over one revision. */
  readonly previewModel: QueryStart & {
    readonly modelJson: string;
    readonly queries: readonly UserQuery[];
  };
  readonly explain: QueryStart & {
    readonly query: Query;
    /** At most so many remedies. */
    readonly remediesMax: number;
  };
  /** Evaluated with nothing remembered, up to the scope's budget. */
  readonly measureReads: QueryStart & { readonly asked: RefusedQuery };
};

export type QueryResults = {
  readonly expand: ExpandTree;
  readonly check: Decision;
  /** In parts, each with its own ids; `next` of the last one counts. */
  readonly listSubjects: SubjectPage;
  readonly listRelations: {
    readonly relations: readonly string[];
    readonly undecidedRelations: readonly string[];
  };
  readonly filterObjects: {
    /** In `objectIds`, ascending. */
    readonly positions: readonly number[];
    readonly undecidedPositions: readonly number[];
    readonly unknownRelation: boolean;
  };
  readonly listObjects: {
    readonly objectIds: readonly string[];
    readonly next: string;
    readonly isUndecided: boolean;
  };
  /** In parts of one text each, or none: ids with a newline between them, which no id has. */
  readonly streamObjects: { readonly texts: readonly string[]; readonly isUndecided: boolean };
  readonly batchCheck: readonly ItemDecision[];
  readonly whatIf: readonly ItemChange[];
  /** May be fewer than requested. */
  readonly drawQueries: readonly UserQuery[];
  /** PREVIEW_ bits by query: of the first ones at least, where all would have taken too much. */
  readonly previewModel: Uint8Array;
  readonly explain: Explanation & { readonly unknownRelation: boolean };
  readonly measureReads: ReadsMeasured;
};

export type QueryKind = keyof QueryArgs;

/** The methods of QueryService that a worker decodes and answers in their own format, and what each asks. */
export type QueryMethodKinds = {
  readonly queryCheck: 'check';
  readonly queryBatchCheck: 'batchCheck';
  readonly listRelations: 'listRelations';
  readonly filterObjects: 'filterObjects';
  readonly explain: 'explain';
};
export type QueryMethod = keyof QueryMethodKinds;

/** A query with its arguments: a correlated union. */
export type QueryCall<K extends QueryKind = QueryKind> = {
  [Kind in K]: { readonly kind: Kind; readonly args: QueryArgs[Kind] };
}[K];

/** Position of the index, which the consistency token of the answer names. */
export type Revision = { readonly epoch: number; readonly revision: number };

/** The result, or a part of it, and the revision that it was computed at. All parts are of one. */
export type QueryAnswer<K extends QueryKind = QueryKind> = {
  readonly result: QueryResults[K];
  readonly revision: Revision;
};
