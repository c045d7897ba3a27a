import type { JsonObject } from '../shared/json.ts';

/** An object or, with a `relation`, a userset: all subjects that hold that relation on the object. */
export type SubjectSet = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation?: string | undefined;
};

/** Subject of a query or tuple: a user by id (`ann`, not `user:ann`), an object or a userset. */
export type EngineSubject = string | SubjectSet;

/** All users, or all objects of a namespace. */
export type Wildcard = { readonly everyone: true } | { readonly wildcardOf: string };

/** One grant: a subject has a relation on an object. */
export type EngineTuple = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject: EngineSubject | Wildcard;
  /** Name of the condition under which the tuple counts. */
  readonly condition?: string | undefined;
  /** Parameters of the condition that the tuple gives; the context of a query gives the others. */
  readonly conditionParams?: JsonObject | undefined;
  /** Time from which on the tuple no longer counts. */
  readonly expiresAt?: Date | undefined;
};

/** Query whether the subject holds the relation on the object. */
export type EngineQuery = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject: EngineSubject;
};

/** Options of every query. */
export type EngineQueryOptions = {
  /** Inputs of conditions. Without a context, no condition is decided. */
  readonly context?: JsonObject | undefined;
  /** Tuples that count for this query only, as text or as objects. The model must admit them. */
  readonly contextualTuples?: readonly (EngineTuple | string)[] | undefined;
  /** Whether a userset subject holds only what is granted to the userset itself, not what its members hold. */
  readonly exact?: boolean | undefined;
};

/** Options of a list, with the part to return. */
export type ListOptions = EngineQueryOptions & {
  /** Returns only ids after this one, in the order of their UTF-8 bytes: `next` of the previous part. */
  readonly after?: string | undefined;
  /** Maximum number of ids; all by default. */
  readonly limit?: number | undefined;
};

/** Options of Explain. */
export type ExplainOptions = EngineQueryOptions & {
  /** Maximum number of remedies; default 10. */
  readonly remediesMax?: number | undefined;
};

/**
 * Cause of an undecided decision. `condition`: a condition lacks an input or failed. `depth`: a path was longer than
 * `depthMax`. `cycle`: a relation excludes itself.
 */
export type UndecidedCause = 'condition' | 'depth' | 'cycle';

/** Result of Check: an allow, a certain deny, or a deny because something could not be decided. */
export type EngineDecision =
  | { readonly allowed: true; readonly undecided: false }
  | { readonly allowed: false; readonly undecided: false }
  | { readonly allowed: false; readonly undecided: true; readonly reason: UndecidedCause };

/** Objects on which a subject holds a relation. */
export type ObjectList = {
  /** Sorted by their UTF-8 bytes. */
  readonly objectIds: readonly string[];
  /** Whether objects may be missing because they could not be decided. */
  readonly undecided: boolean;
  /** Value of `after` for the next part; undefined after the last one. */
  readonly next: string | undefined;
};

/** Relations that a subject holds on an object, sorted. */
export type RelationList = {
  readonly relations: readonly string[];
  /** Relations that could not be decided. */
  readonly undecidedRelations: readonly string[];
};

/**
 * Relation on an object whose subjects are listed. Lists users or, with `subjectNamespace`, objects or usersets of that
 * namespace.
 */
export type SubjectsQuery = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subjectNamespace?: string | undefined;
  /** Lists usersets of this relation. */
  readonly subjectRelation?: string | undefined;
};

/** Subjects that hold a relation. Check `everyone` before showing the ids as complete. */
export type SubjectList = {
  /** Subjects that a grant names, sorted by their UTF-8 bytes. */
  readonly subjectIds: readonly string[];
  /** Whether everyone holds it except the ids in the other lists. */
  readonly everyone: boolean;
  /** Subjects that do not hold it although everyone else does. */
  readonly excludedIds: readonly string[];
  /** Subjects for which it could not be decided. */
  readonly undecidedIds: readonly string[];
  /** Whether it could not be decided for everyone who is in none of the lists. */
  readonly everyoneUndecided: boolean;
  /** Value of `after` for the next part; undefined after the last one. */
  readonly next: string | undefined;
};

/** Reason why a subject is in a userset: one step, with the steps that it follows from. */
export type EngineDerivation = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly step:
    | 'direct'
    | 'userset'
    | 'computed'
    | 'tupleToUserset'
    | 'intersection'
    | 'exclusion'
    | 'identity';
  /** Tuple that the step is based on. */
  readonly tuple: EngineTuple | undefined;
  /** Whether that tuple came with the query. */
  readonly contextual: boolean;
  readonly children: readonly EngineDerivation[];
};

/** Reason why a grant did not count, and its place. */
export type EngineObstacle = {
  readonly kind:
    | 'noGrant'
    | 'excluded'
    | 'expired'
    | 'conditionFalse'
    | 'conditionUndecided'
    | 'intersection'
    | 'depth'
    | 'cycle'
    | 'budget';
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly tuple: EngineTuple | undefined;
  /** Reason why an excluded subject is in the excluded set. */
  readonly derivation: EngineDerivation | undefined;
  /** Inputs of the condition that neither the tuple nor the context gives. */
  readonly missingInputs: readonly string[];
  readonly message: string;
};

/** Reason for the result of Check. */
export type EngineExplanation = {
  readonly allowed: boolean;
  readonly undecided: boolean;
  /** Shortest derivation of an allow. */
  readonly derivation: EngineDerivation | undefined;
  /** Member through whom a userset holds the relation; the derivation is that of this user. */
  readonly memberId: string | undefined;
  /** Time until which the derivation holds unless tuples change; undefined if it has no end. */
  readonly holdsUntil: Date | undefined;
  /** Reasons for a deny, nearest first. */
  readonly obstacles: readonly EngineObstacle[];
  /** Tuples, each of which would turn the deny into an allow if it alone were written. */
  readonly remedies: readonly EngineTuple[];
  /** Whether parts were left out. */
  readonly truncated: boolean;
  /** Number of reads of the evaluation. */
  readonly reads: number;
};

/** An assertion that does not hold. */
export type TestFailure = {
  readonly test: string;
  readonly assertion: string;
  readonly expected: string;
  readonly actual: string;
  /** Line of the file, from 1. */
  readonly line: number;
};

/** Result of a file of tests. */
export type TestResult = {
  /** Number of assertions that were run. */
  readonly assertions: number;
  /** Failed assertions; empty if all hold. */
  readonly failures: readonly TestFailure[];
};
