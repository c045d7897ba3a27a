import type { JsonObject } from '../shared/json.ts';

/** An object, or with a `relation` a userset of it: all who hold that relation on the object. */
export type SubjectSet = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation?: string | undefined;
};

/** A subject: a user by id (`ann`, not `user:ann`), an object or a userset. */
export type EngineSubject = string | SubjectSet;

/** Everybody, or every object of a namespace. */
export type Wildcard = { readonly everyone: true } | { readonly wildcardOf: string };

/** One grant: a subject has a relation on an object. */
export type EngineTuple = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject: EngineSubject | Wildcard;
  /** Name of the condition under which it counts. */
  readonly condition?: string | undefined;
  /** Parameters that the tuple gives its condition; the context of a query gives the rest. */
  readonly conditionParams?: JsonObject | undefined;
  /** When it stops to count. */
  readonly expiresAt?: Date | undefined;
};

/** Does the subject hold the relation on the object? */
export type EngineQuery = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject: EngineSubject;
};

/** Options of every query. */
export type EngineQueryOptions = {
  /** Parameters of conditions. Without it no condition is decided. */
  readonly context?: JsonObject | undefined;
  /** Tuples that count for this query alone, in their form as text or as objects. They must fit the model. */
  readonly contextualTuples?: readonly (EngineTuple | string)[] | undefined;
  /** Whether a userset as the subject holds what is granted to it itself only, and not what its members hold. */
  readonly exact?: boolean | undefined;
};

/** Which part of a list is wanted. */
export type ListOptions = EngineQueryOptions & {
  /** Only ids after this one, in the order of their UTF-8 bytes: `next` of the part before. */
  readonly after?: string | undefined;
  /** At most so many ids; all where it is absent. */
  readonly limit?: number | undefined;
};

/** Options of Explain. */
export type ExplainOptions = EngineQueryOptions & {
  /** At most so many remedies; 10 where it is absent. */
  readonly remediesMax?: number | undefined;
};

/**
 * Why a decision is undecided: a condition lacks an input or failed; a path was longer than `depthMax`; a relation excludes
 * itself.
 */
export type UndecidedCause = 'condition' | 'depth' | 'cycle';

/** Answer of Check: an allow, a certain deny, or a deny because something could not be decided. */
export type EngineDecision =
  | { readonly allowed: true; readonly undecided: false }
  | { readonly allowed: false; readonly undecided: false }
  | { readonly allowed: false; readonly undecided: true; readonly reason: UndecidedCause };

/** Objects on which a subject holds a relation. */
export type ObjectList = {
  /** Sorted by their UTF-8 bytes. */
  readonly objectIds: readonly string[];
  /** Whether some object may be missing because it could not be decided. */
  readonly undecided: boolean;
  /** Start of the next part (`after`); undefined after the last one. */
  readonly next: string | undefined;
};

/** Relations that a subject holds on an object, sorted. */
export type RelationList = {
  readonly relations: readonly string[];
  /** Relations that could not be decided. */
  readonly undecidedRelations: readonly string[];
};

/** Whose holders are listed: users, or where `subjectNamespace` is given objects or usersets of it. */
export type SubjectsQuery = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subjectNamespace?: string | undefined;
  /** Lists usersets of this relation. */
  readonly subjectRelation?: string | undefined;
};

/** Holders of a relation. Check `everyone` before you show the ids as complete. */
export type SubjectList = {
  /** Holders that a grant names, sorted by their UTF-8 bytes. */
  readonly subjectIds: readonly string[];
  /** Whether everyone else holds it, except the ids of the other lists. */
  readonly everyone: boolean;
  /** Subjects that do not hold it although everyone else does. */
  readonly excludedIds: readonly string[];
  /** Subjects that could not be decided. */
  readonly undecidedIds: readonly string[];
  /** Whether everybody who is in no list could not be decided. */
  readonly everyoneUndecided: boolean;
  /** Start of the next part (`after`); undefined after the last one. */
  readonly next: string | undefined;
};

/** Why a subject is in a userset: one step, with what it follows from. */
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
  /** The tuple that the step rests on. */
  readonly tuple: EngineTuple | undefined;
  /** Whether that tuple came with the query. */
  readonly contextual: boolean;
  readonly children: readonly EngineDerivation[];
};

/** A reason why a grant did not count, and where. */
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
  /** Why an excluded subject is in the excluded set. */
  readonly derivation: EngineDerivation | undefined;
  /** Inputs of the condition that neither the tuple nor the context gives. */
  readonly missingInputs: readonly string[];
  readonly message: string;
};

/** Why Check answers as it does. */
export type EngineExplanation = {
  readonly allowed: boolean;
  readonly undecided: boolean;
  /** Shortest derivation of an allow. */
  readonly derivation: EngineDerivation | undefined;
  /** A userset that holds the relation by a member: that user, whose derivation it is. */
  readonly memberId: string | undefined;
  /** Until when the derivation holds, unless tuples change; undefined: no end. */
  readonly holdsUntil: Date | undefined;
  /** Why it is denied, nearest first. */
  readonly obstacles: readonly EngineObstacle[];
  /** Tuples each of which alone, if written, turns the deny into an allow. */
  readonly remedies: readonly EngineTuple[];
  /** Whether something was left out. */
  readonly truncated: boolean;
  /** Reads of the evaluation. */
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
  /** How many assertions were looked at. */
  readonly assertions: number;
  /** None where all of them hold. */
  readonly failures: readonly TestFailure[];
};
