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

/** Why a subject is in a userset: a node of the tree, with what it follows from. */
export type Derivation = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly step: DerivationStep;
  /** The tuple that the step rests on, if it rests on one. */
  readonly tuple: RelationTuple | undefined;
  /** Whether that tuple came with the request. */
  readonly contextual: boolean;
  readonly children: readonly Derivation[];
};

/** Why a grant did not count (ObstacleKind of the API). */
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

/** A reason why a grant did not count, and where. */
export type Obstacle = {
  readonly kind: ObstacleKind;
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  /** The tuple that did not count. */
  readonly tuple: RelationTuple | undefined;
  /** Why an excluded subject is in the excluded set. */
  readonly derivation: Derivation | undefined;
  /** Inputs of an undecided condition that neither the tuple nor the context gives. */
  readonly missingInputs: readonly string[];
  readonly message: string;
};

/** The member through whom a userset holds a relation, and why it is one. */
export type Witness = { readonly userId: string; readonly membership: Derivation | undefined };

/** Why Check answers as it does, at one revision. */
export type Explanation = {
  readonly allowed: boolean;
  readonly undecided: boolean;
  /** The shortest derivation of an allow. */
  readonly derivation: Derivation | undefined;
  /** The member whose derivation this is, if a userset is allowed that is not itself included. */
  readonly witness: Witness | undefined;
  /** Microseconds since the epoch until which the derivation holds unless tuples change; undefined: no end. */
  readonly holdsUntilUs: bigint | undefined;
  /** Obstacles of a deny, nearest first. */
  readonly obstacles: readonly Obstacle[];
  /** Tuples each of which alone, if written, turns a deny into an allow. */
  readonly remedies: readonly RelationTuple[];
  /** Something was left out: by a bound or by the read budget. */
  readonly truncated: boolean;
  /** Reads of the evaluation, without those of the explanation. */
  readonly reads: number;
};
