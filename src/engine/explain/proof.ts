import type { DerivationStep } from '../../model/explanation.ts';
import type { Op } from '../bound/bound-model.ts';
import type { EdgeIds } from './leaf-walk.ts';

/** A derivation by ids of the reader. Parts are shared between proofs. */
export type Proof = {
  /** Nodes of the tree. */
  readonly size: number;
  /** Usersets on its longest path, those included on which the refutation of what it excludes rests. */
  readonly need: number;
  /** Earliest expiry of its tuples, in milliseconds since the epoch; Infinity if there is none. */
  readonly holdsUntilMs: number;
  readonly step: DerivationStep;
  readonly entity: number;
  readonly relation: number;
  readonly tuple: EdgeIds | null;
  readonly children: readonly Proof[];
  /** The refuted operand of an exclusion. */
  readonly refuted: Op | null;
};

/** Whether `a` makes `b` needless: no larger, no deeper, and no shorter-lived if it is of its size. */
function makesNeedless(a: Proof, b: Proof): boolean {
  if (a.size > b.size || a.need > b.need) return false;
  return a.size < b.size || a.holdsUntilMs >= b.holdsUntilMs;
}

/** Adds a proof to those that are worth keeping, smallest first; false if it is not. */
export function keepProof(proofs: Proof[], proof: Proof): boolean {
  if (proofs.some((known) => makesNeedless(known, proof))) return false;
  for (let i = proofs.length - 1; i >= 0; i--) {
    if (makesNeedless(proof, proofs[i] as Proof)) proofs.splice(i, 1);
  }
  proofs.push(proof);
  proofs.sort(compareProofs);
  return true;
}

/** By size, then those that hold longer. */
export function compareProofs(a: Proof, b: Proof): number {
  if (a.size !== b.size) return a.size - b.size;
  return a.holdsUntilMs === b.holdsUntilMs ? 0 : a.holdsUntilMs > b.holdsUntilMs ? -1 : 1;
}
