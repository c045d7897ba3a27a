import type { RelationTuple } from './relation-tuple.ts';

/** Kind of step that a derivation takes (DerivationStep of the API). */
export type DerivationStep =
  | 'direct'
  | 'userset'
  | 'computed'
  | 'tupleToUserset'
  | 'intersection'
  | 'exclusion'
  | 'identity';

/** Reason why a subject is in a userset: a node of the tree, with the nodes that it follows from. */
export type Derivation = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly step: DerivationStep;
  /** Tuple that the step is based on, if any. */
  readonly tuple: RelationTuple | undefined;
  /** Whether that tuple came with the request. */
  readonly contextual: boolean;
  readonly children: readonly Derivation[];
};

/** Reason why a grant did not count (ObstacleKind of the API). */
export type ObstacleKind =
  | 'noGrant'
  | 'excluded'
  | 'expired'
  | 'conditionFalse'
  | 'conditionUndecided'
  | 'intersection'
  | 'depth'
  | 'cycle'
  | 'budget';

/** Reason why a grant did not count, and its place. */
export type Obstacle = {
  readonly kind: ObstacleKind;
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  /** The tuple that did not count. */
  readonly tuple: RelationTuple | undefined;
  /** Reason why an excluded subject is in the excluded set. */
  readonly derivation: Derivation | undefined;
  /** Inputs of an undecided condition that neither the tuple nor the context gives. */
  readonly missingInputs: readonly string[];
  readonly message: string;
};

/** Member through whom a userset holds a relation, and why it is a member. */
export type Witness = { readonly userId: string; readonly membership: Derivation | undefined };

/** Reason for the result of Check at one revision. */
export type Explanation = {
  readonly allowed: boolean;
  readonly undecided: boolean;
  /** Shortest derivation of an allow. */
  readonly derivation: Derivation | undefined;
  /** Member whose derivation it is, if a userset that is not itself included is allowed. */
  readonly witness: Witness | undefined;
  /** Microseconds since the epoch until which the derivation holds unless tuples change; undefined: no end. */
  readonly holdsUntilUs: bigint | undefined;
  /** Reasons for a deny, nearest first. */
  readonly obstacles: readonly Obstacle[];
  /** Tuples, each of which would turn a deny into an allow if it alone were written. */
  readonly remedies: readonly RelationTuple[];
  /** Whether something was left out, because of a limit or the read budget. */
  readonly truncated: boolean;
  /** Reads of the evaluation, without those of the explanation. */
  readonly reads: number;
};
