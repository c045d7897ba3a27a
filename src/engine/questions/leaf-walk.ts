import { EDGE_ABSENT, EDGE_NODE_MASK, WILDCARD_NODE } from '../../model/tuple-reader.ts';
import type { Op } from '../bound/bound-model.ts';
import { type Scope, type Target, TRUE, type Value } from '../bound/scope.ts';
import type { Steps } from '../general/gate-system.ts';

const ENTRIES_PER_READ_SHIFT = 6;
const ENTRIES_PER_STEP = 256;
const chunk = new Uint32Array(ENTRIES_PER_STEP);

/** A stored tuple by ids of the reader. */
export type EdgeIds = { readonly node: number; readonly subject: number };

/** Where a leaf of a rewrite is evaluated, and for whom. */
export type LeafPlace = {
  readonly entity: number;
  readonly relation: number;
  readonly leaf: Op;
  readonly target: Target;
  readonly isExcluding: boolean;
};

/** What a leaf consists of, with the tuple of each part. FALSE: the tuple has expired or its condition is false. */
export interface LeafVisitor {
  /** A tuple that names the target, or everybody. */
  onDirect(tuple: EdgeIds, value: Value): void;
  /** Another userset: through a tuple, or (null) as a relation of the same object. */
  onChild(
    entity: number,
    relation: number,
    tuple: EdgeIds | null,
    value: Value,
    isWalk: boolean,
  ): void;
}

/**
 * Visits a leaf as `Scope.scanLeaf` does, at the same reads, but names the tuples and leaves out none.
 * Ends early where a tuple of the target itself holds. Errors: BUDGET_EXHAUSTED.
 */
export function* walkLeaf(scope: Scope, place: LeafPlace, visitor: LeafVisitor): Steps<void> {
  const { entity, relation, leaf, target } = place;
  const { reader } = scope;
  scope.charge(1 + (leaf.walks.length >> 1));
  if (leaf.hasThis) {
    const node = reader.nodeId(entity, relation);
    if (node !== 0) {
      if (visitDirect(scope, node, place, visitor)) return;
      yield* walkSets(scope, node, -1, target.setEntity !== 0, visitor);
    }
  }
  for (const computed of leaf.computed) visitor.onChild(entity, computed, null, TRUE, false);
  for (let i = 0; i < leaf.walks.length; i += 2) {
    const node = reader.nodeId(entity, leaf.walks[i] as number);
    if (node !== 0) yield* walkSets(scope, node, leaf.walks[i + 1] as number, false, visitor);
  }
}

/** Whether one of them certainly counts. */
function visitDirect(scope: Scope, node: number, place: LeafPlace, visitor: LeafVisitor): boolean {
  const { target, isExcluding } = place;
  const isUser = target.setEntity === 0;
  let isTrue = false;
  const visit = (subject: number): void => {
    if (subject === 0 || scope.reader.edge(node, subject) === EDGE_ABSENT) return;
    const value = scope.edge(node, subject);
    visitor.onDirect({ node, subject }, value);
    if (value === TRUE) isTrue = true;
  };
  if (isUser) visit(target.userNode);
  if (isUser || isExcluding) visit(WILDCARD_NODE);
  return isTrue;
}

function* walkSets(
  scope: Scope,
  node: number,
  computed: number,
  withObjects: boolean,
  visitor: LeafVisitor,
): Steps<void> {
  const { reader } = scope;
  const total = reader.setCount(node);
  if (total === 0) return;
  scope.charge(total >> ENTRIES_PER_READ_SHIFT);
  for (let cursor = 0; cursor >= 0;) {
    const count = reader.readSets(node, cursor, chunk, 0);
    cursor = reader.nextCursor;
    for (let i = 0; i < count; i++) {
      const entry = chunk[i] as number;
      const subject = entry & EDGE_NODE_MASK;
      const next = computed < 0 ? reader.relationOf(subject) : computed;
      if (next === 0 && !withObjects) continue;
      const value = scope.entryValue(node, entry);
      visitor.onChild(reader.entityOf(subject), next, { node, subject }, value, computed >= 0);
    }
    if (cursor >= 0) yield;
  }
}
