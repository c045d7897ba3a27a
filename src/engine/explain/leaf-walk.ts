import { EDGE_ABSENT, EDGE_NODE_MASK, WILDCARD_NODE } from '../../model/tuple-reader.ts';
import type { Op } from '../bound/bound-model.ts';
import { type Scope, type Target, TRUE, type Value } from '../bound/scope.ts';

const ENTRIES_PER_READ_SHIFT = 6;
const ENTRIES_PER_STEP = 256;
const chunk = new Uint32Array(ENTRIES_PER_STEP);
/** Relation of a list that is the relation's own: its sets count as the usersets that they name. */
const OWN = -1;

/** A stored tuple by ids of the reader. */
export type EdgeIds = { readonly node: number; readonly subject: number };

/** Callbacks for the parts of a leaf, each with its tuple. FALSE: the tuple has expired or its condition is false. */
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
 * Walks leaves of rewrites, one after the other, for one target. Each is visited as `Scope.scanLeaf` does, at the
 * same reads, but its tuples are named and none is left out. Ends early where a tuple of the target itself holds.
 */
export class LeafWalk {
  readonly #scope: Scope;
  readonly #target: Target;
  readonly #visitor: LeafVisitor;
  #entity = 0;
  #leaf: Op | undefined;
  /** Lists that are next: own tuples (-1) if there are any, then pairs of `walks` from this one on. */
  #nextWalk = 0;
  #node = 0;
  #computed = OWN;
  /** Position from which the list continues; -1: it has ended. */
  #cursor = -1;

  /** `visitor` only notes what it is given. */
  constructor(scope: Scope, target: Target, visitor: LeafVisitor) {
    this.#scope = scope;
    this.#target = target;
    this.#visitor = visitor;
  }

  /**
   * Begins with a leaf of (entity, relation) and walks its first 256 entries or all; whether there is more, for
   * `step`. Errors: BUDGET_EXHAUSTED.
   */
  start(entity: number, relation: number, leaf: Op, isExcluding: boolean): boolean {
    const { reader } = this.#scope;
    this.#entity = entity;
    this.#leaf = leaf;
    this.#nextWalk = -1;
    this.#cursor = -1;
    this.#scope.charge(1 + (leaf.walks.length >> 1));
    const node = leaf.hasThis ? reader.nodeId(entity, relation) : 0;
    if (node !== 0) {
      if (this.#visitDirect(node, isExcluding)) return false;
      this.#open(node, OWN);
    }
    return this.step();
  }

  /** Walks on to the end of the next 256 entries; whether there is more. Errors: BUDGET_EXHAUSTED. */
  step(): boolean {
    const leaf = this.#leaf as Op;
    for (;;) {
      if (this.#cursor >= 0) {
        this.#readSets();
        if (this.#cursor >= 0) return true;
      }
      if (this.#nextWalk < 0) {
        for (const computed of leaf.computed) {
          this.#visitor.onChild(this.#entity, computed, null, TRUE, false);
        }
        this.#nextWalk = 0;
      }
      if (this.#nextWalk >= leaf.walks.length) return false;
      const node = this.#scope.reader.nodeId(this.#entity, leaf.walks[this.#nextWalk] as number);
      if (node !== 0) this.#open(node, leaf.walks[this.#nextWalk + 1] as number);
      this.#nextWalk += 2;
    }
  }

  /** Whether a tuple of the target itself, or of everybody, certainly counts. */
  #visitDirect(node: number, isExcluding: boolean): boolean {
    const { setEntity, userNode, isExact } = this.#target;
    const isUser = setEntity === 0;
    const isHeld = isUser && this.#visitEdge(node, userNode);
    const isOfAll = isUser || (isExcluding && isExact !== true);
    return (isOfAll && this.#visitEdge(node, WILDCARD_NODE)) || isHeld;
  }

  #visitEdge(node: number, subject: number): boolean {
    if (subject === 0 || this.#scope.reader.edge(node, subject) === EDGE_ABSENT) return false;
    const value = this.#scope.edge(node, subject);
    this.#visitor.onDirect({ node, subject }, value);
    return value === TRUE;
  }

  #open(node: number, computed: number): void {
    const total = this.#scope.reader.setCount(node);
    if (total === 0) return;
    this.#scope.charge(total >> ENTRIES_PER_READ_SHIFT);
    this.#node = node;
    this.#computed = computed;
    this.#cursor = 0;
  }

  #readSets(): void {
    const { reader } = this.#scope;
    const node = this.#node;
    const computed = this.#computed;
    const isWalk = computed !== OWN;
    // An object itself holds nobody; as a target it is found by its own pair.
    const withObjects = !isWalk && this.#target.setEntity !== 0;
    const count = reader.readSets(node, this.#cursor, chunk, 0);
    this.#cursor = reader.nextCursor;
    for (let i = 0; i < count; i++) {
      const entry = chunk[i] as number;
      const subject = entry & EDGE_NODE_MASK;
      const next = isWalk ? computed : reader.relationOf(subject);
      if (next === 0 && !withObjects) continue;
      const entity = reader.entityOf(subject);
      if (isWalk && this.#scope.isWildcard(entity)) continue;
      const value = this.#scope.entryValue(node, entry);
      this.#visitor.onChild(entity, next, { node, subject }, value, isWalk);
    }
  }
}
