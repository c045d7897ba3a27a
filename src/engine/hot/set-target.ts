import { MEMBERSHIPS_NONE } from './membership-cache.ts';

/** Whom a search of exact usersets and objects looks for. One for all searches of an evaluator, filled anew for each. */
export class SetTarget {
  /** (entity, relation); relation 0 is the object itself. */
  entity = 0;
  relation = 0;
  /** The node of both, 0 where no tuple mentions it as a subject or has it as its object. */
  node = 0;
  /** The node of the typed wildcard of an object's namespace; 0 of a userset, and where no tuple has it. */
  wildcardNode = 0;
  /** The target's memberships in `memberships.arena`, or MEMBERSHIPS_NONE; looked up when first needed. */
  membershipsAt = MEMBERSHIPS_NONE;
  isMembershipKnown = false;
}
