import type { ObstacleKind } from '../../model/explanation.ts';
import { UNDETERMINED, FALSE, TRUE } from '../bound/scope.ts';
import type { Steps } from '../general/gate-system.ts';
import type { DenialGraph, Vertex } from './denial-graph.ts';
import type { EdgeIds } from './leaf-walk.ts';

const STEPS_PER_YIELD = 64;
/** Searches for a way from what is excluded back to the exclusion. */
const CYCLE_SEARCHES_MAX = 64;

/** An obstacle by ids. */
export type DenialCause = {
  readonly kind: ObstacleKind;
  readonly entity: number;
  readonly relation: number;
  readonly tuple: EdgeIds | null;
  /** The exclusion, if a subject is excluded; or the intersection. */
  readonly vertex: number;
  /** Index of the operand of an intersection that does not hold. */
  readonly operand: number;
};

/** Causes of a deny, nearest first. */
export type DenialCauses = {
  readonly causes: readonly DenialCause[];
  /** Some were left out by their bound. */
  readonly isTruncated: boolean;
  /** Without any tuple on the way that could have granted. */
  readonly isWithoutGrant: boolean;
};

/**
 * Walks from the denied root through everything that could have granted but does not, and through what
 * left it undecided. Cost: O(vertices + links) time, no reads.
 */
export class DenialWalk {
  readonly #graph: DenialGraph;
  readonly #causesMax: number;
  readonly #causes: DenialCause[] = [];
  readonly #keys = new Set<string>();
  /** Pairs: vertex × 2, + 1 where only what is undecided below it matters. */
  readonly #queue: number[] = [];
  readonly #seen = new Set<number>();
  #isTruncated = false;
  #hasGrant = false;
  #cycleSearches = 0;

  constructor(graph: DenialGraph, causesMax: number) {
    this.#graph = graph;
    this.#causesMax = causesMax;
  }

  *report(root: number): Steps<DenialCauses> {
    this.#enqueue(root, false);
    for (let next = 0; next < this.#queue.length; next++) {
      const entry = this.#queue[next] as number;
      this.#visit(entry >>> 1, (entry & 1) === 1);
      if (next % STEPS_PER_YIELD === STEPS_PER_YIELD - 1) yield;
    }
    return {
      causes: this.#causes,
      isTruncated: this.#isTruncated,
      isWithoutGrant: !this.#hasGrant,
    };
  }

  #enqueue(vertex: number, isUndecidedOnly: boolean): void {
    const entry = vertex * 2 + (isUndecidedOnly ? 1 : 0);
    if (this.#seen.has(entry)) return;
    this.#seen.add(entry);
    this.#queue.push(entry);
  }

  #visit(id: number, isUndecidedOnly: boolean): void {
    const vertex = this.#graph.at(id);
    switch (vertex.kind) {
      case 'userset':
        if (vertex.isBeyond) this.#addCause('depth', vertex, id);
        this.#visitOperands(vertex, isUndecidedOnly);
        return;
      case 'leaf':
        this.#visitLeaf(id, vertex, isUndecidedOnly);
        return;
      case 'any':
        this.#visitOperands(vertex, isUndecidedOnly);
        return;
      case 'all':
        if (!isUndecidedOnly) this.#addOperandCauses(id, vertex);
        this.#visitOperands(vertex, isUndecidedOnly);
        return;
      case 'butNot':
        this.#visitExclusion(id, vertex, isUndecidedOnly);
    }
  }

  #matters(id: number, isUndecidedOnly: boolean): boolean {
    const value = this.#graph.valueOf(id);
    return isUndecidedOnly ? value === UNDETERMINED : value !== TRUE;
  }

  #visitOperands(vertex: Vertex, isUndecidedOnly: boolean): void {
    for (const operand of vertex.operands) {
      if (this.#matters(operand, isUndecidedOnly)) this.#enqueue(operand, isUndecidedOnly);
    }
  }

  #addOperandCauses(id: number, vertex: Vertex): void {
    for (const [index, operand] of vertex.operands.entries()) {
      if (this.#graph.valueOf(operand) === TRUE) this.#hasGrant = true;
      else this.#addCause('intersection', vertex, id, null, index);
    }
  }

  #visitLeaf(id: number, vertex: Vertex, isUndecidedOnly: boolean): void {
    for (const { tuple, value } of vertex.directs) {
      if (value === UNDETERMINED) this.#addTupleCause('conditionUndecided', vertex, id, tuple);
      else if (!isUndecidedOnly) this.#addTupleCause('expired', vertex, id, tuple);
    }
    for (const { child, tuple, value } of vertex.links) {
      const behind = this.#graph.valueOf(child);
      if (value !== TRUE && tuple !== null && behind !== FALSE) {
        if (value === UNDETERMINED) this.#addTupleCause('conditionUndecided', vertex, id, tuple);
        else if (!isUndecidedOnly) this.#addTupleCause('expired', vertex, id, tuple);
      }
      if (value !== FALSE && this.#matters(child, isUndecidedOnly)) {
        this.#enqueue(child, isUndecidedOnly);
      }
    }
  }

  #visitExclusion(id: number, vertex: Vertex, isUndecidedOnly: boolean): void {
    const [include, exclude] = vertex.operands as [number, number];
    const included = this.#graph.valueOf(include);
    const excluded = this.#graph.valueOf(exclude);
    if (this.#matters(include, isUndecidedOnly)) this.#enqueue(include, isUndecidedOnly);
    if (excluded === UNDETERMINED) {
      this.#enqueue(exclude, true);
      if (this.#leadsBack(exclude, id)) this.#addCause('cycle', vertex, id);
    }
    if (isUndecidedOnly) return;
    if (included === TRUE) this.#hasGrant = true;
    if (excluded === TRUE) this.#addCause('excluded', vertex, id);
  }

  /** Whether an undecided vertex depends on another one through undecided ones. */
  #leadsBack(from: number, to: number): boolean {
    if (this.#graph.valueOf(to) !== UNDETERMINED || this.#cycleSearches >= CYCLE_SEARCHES_MAX)
      return false;
    this.#cycleSearches++;
    const seen = new Set([from]);
    for (const id of seen) {
      if (id === to) return true;
      const { operands, links } = this.#graph.at(id);
      const isOpen = (next: number): boolean => this.#graph.valueOf(next) === UNDETERMINED;
      for (const operand of operands) if (isOpen(operand)) seen.add(operand);
      for (const { child, value } of links) if (value !== FALSE && isOpen(child)) seen.add(child);
    }
    return false;
  }

  /** `expired` covers any tuple that does not count; its own qualifier gives the reason. */
  #addTupleCause(kind: ObstacleKind, vertex: Vertex, id: number, tuple: EdgeIds): void {
    this.#hasGrant = true;
    this.#addCause(kind, vertex, id, tuple);
  }

  #addCause(
    kind: ObstacleKind,
    { entity, relation }: Vertex,
    vertex: number,
    tuple: EdgeIds | null = null,
    operand = 0,
  ): void {
    if (kind === 'depth' || kind === 'cycle') this.#hasGrant = true;
    const about = tuple === null ? `${operand}` : `${tuple.node} ${tuple.subject}`;
    const key = `${kind} ${entity} ${relation} ${about}`;
    if (this.#keys.has(key)) return;
    if (this.#causes.length >= this.#causesMax) {
      this.#isTruncated = true;
      return;
    }
    this.#keys.add(key);
    this.#causes.push({ kind, entity, relation, tuple, vertex, operand });
  }
}
