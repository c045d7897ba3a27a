import { UNDETERMINED, FALSE, TRUE } from '../bound/scope.ts';
import type { Steps } from '../general/gate-system.ts';
import type { DenialGraph, Vertex } from './denial-graph.ts';
import type { EdgeIds } from './leaf-walk.ts';

const STEPS_PER_YIELD = 64;
/** Operators of which several operands had to change at once, that are explored. */
const JOINTS_MAX = 32;

/** Leaves at which one tuple more could make the root hold. */
export type RemedyLeaves = {
  /** Leaf vertices, nearest first, those that suffice alone before those that would change several operands. */
  readonly leaves: readonly number[];
  /** Tuples that would suffice if they counted. */
  readonly dormant: readonly EdgeIds[];
  /** Leaves were left out by a bound. */
  readonly isTruncated: boolean;
};

/**
 * Finds the leaves of which one, if a tuple of the target were added, makes the root hold: on the way
 * to it every operator must need just this change. Where an operator needs several operands to change,
 * only leaves below all of them that read the same tuples can do it. Necessary, not sufficient: what is found is verified by
 * evaluation. Cost: O(vertices + links) time for each such operator, no reads.
 */
export class RemedyLeafSearch {
  readonly #graph: DenialGraph;
  /** Vertex × 2, + 1 where the vertex must become false. */
  readonly #queue: number[] = [];
  readonly #seen = new Set<number>();
  readonly #leaves = new Set<number>();
  readonly #dormant: EdgeIds[] = [];
  readonly #joints: (readonly number[])[] = [];
  #isTruncated = false;

  constructor(graph: DenialGraph) {
    this.#graph = graph;
  }

  *search(root: number): Steps<RemedyLeaves> {
    this.#need(root, true);
    for (let next = 0; next < this.#queue.length; next++) {
      const entry = this.#queue[next] as number;
      this.#visit(entry >>> 1, (entry & 1) === 0);
      if (next % STEPS_PER_YIELD === STEPS_PER_YIELD - 1) yield;
    }
    for (const operands of this.#joints) yield* this.#leavesBelowAll(operands);
    const { isExhausted } = this.#graph;
    const leaves = [...this.#leaves];
    return { leaves, dormant: this.#dormant, isTruncated: this.#isTruncated || isExhausted };
  }

  #need(vertex: number, isTrue: boolean): void {
    const entry = vertex * 2 + (isTrue ? 0 : 1);
    if (this.#seen.has(entry)) return;
    this.#seen.add(entry);
    this.#queue.push(entry);
  }

  /** One of them must change; or, if several, all at once. */
  #needAll(vertices: readonly (readonly [vertex: number, isTrue: boolean])[]): void {
    const [first] = vertices;
    if (first !== undefined && vertices.length === 1) this.#need(...first);
    if (vertices.length < 2) return;
    if (this.#joints.length < JOINTS_MAX) this.#joints.push(vertices.map(([vertex]) => vertex));
    else this.#isTruncated = true;
  }

  #visit(id: number, isTrue: boolean): void {
    const { kind, operands } = this.#graph.at(id);
    switch (kind) {
      case 'leaf':
        if (isTrue) this.#addLeaf(id);
        else this.#refuteLeaf(id);
        return;
      case 'userset':
      case 'any':
        if (isTrue) this.#needAny(operands, true);
        else this.#needAll(this.#otherThan(operands, false));
        return;
      case 'all':
        if (isTrue) this.#needAll(this.#otherThan(operands, true));
        else this.#needAny(operands, false);
        return;
      case 'butNot':
        this.#visitExclusion(operands as [number, number], isTrue);
    }
  }

  #visitExclusion([include, exclude]: [number, number], isTrue: boolean): void {
    if (isTrue) {
      this.#needAll([...this.#otherThan([include], true), ...this.#otherThan([exclude], false)]);
      return;
    }
    this.#needAny([include], false);
    this.#needAny([exclude], true);
  }

  #needAny(vertices: readonly number[], isTrue: boolean): void {
    for (const [vertex] of this.#otherThan(vertices, isTrue)) this.#need(vertex, isTrue);
  }

  /** The vertices that do not have the value yet. */
  #otherThan(vertices: readonly number[], isTrue: boolean): (readonly [number, boolean])[] {
    return vertices
      .filter((vertex) => this.#graph.valueOf(vertex) !== (isTrue ? TRUE : FALSE))
      .map((vertex) => [vertex, isTrue] as const);
  }

  #addLeaf(id: number): void {
    this.#leaves.add(id);
    for (const { child, tuple, value } of this.#graph.at(id).links) {
      const isHeld = this.#graph.valueOf(child) === TRUE;
      if (value !== TRUE && isHeld && tuple !== null) this.#dormant.push(tuple);
      if (value === TRUE && !isHeld) this.#need(child, true);
    }
  }

  /** Refutes all that the leaf follows from, since one tuple more removes nothing. */
  #refuteLeaf(id: number): void {
    const { directs, links } = this.#graph.at(id);
    const isNamed = directs.some(({ value }) => value === UNDETERMINED);
    const isTrue = this.#graph.valueOf(id) === TRUE;
    const held = links.filter(
      ({ child, value }) => value !== FALSE && this.#graph.valueOf(child) !== FALSE,
    );
    // Without a link that holds, a tuple of the target itself does.
    if (isNamed || (isTrue && held.length === 0)) return;
    this.#needAll([...new Set(held.map(({ child }) => child))].map((child) => [child, false]));
  }

  *#leavesBelowAll(operands: readonly number[]): Steps<void> {
    let common: ReadonlySet<string> | undefined;
    const leaves: number[] = [];
    for (const operand of operands) {
      const below = new Set([operand]);
      const read = new Set<string>();
      let steps = 0;
      for (const id of below) {
        const vertex = this.#graph.at(id);
        for (const next of vertex.operands) below.add(next);
        for (const { child } of vertex.links) below.add(child);
        if (vertex.kind === 'leaf') {
          leaves.push(id);
          for (const key of keysRead(vertex)) read.add(key);
        }
        if (++steps % STEPS_PER_YIELD === 0) yield;
      }
      const known: ReadonlySet<string> = common ?? read;
      common = new Set([...known].filter((key) => read.has(key)));
    }
    for (const id of new Set(leaves)) {
      const vertex = this.#graph.at(id);
      if (!keysRead(vertex).some((key) => common?.has(key) === true)) continue;
      this.#leaves.add(id);
      for (const { tuple, value } of vertex.links) {
        if (value !== TRUE && tuple !== null) this.#dormant.push(tuple);
      }
    }
  }
}

/** The lists of tuples that a leaf reads: its own, and those of its tuplesets. */
export function keysRead({ entity, relation, op }: Vertex): string[] {
  return relationsRead(relation, op).map((read) => `${entity} ${read}`);
}

/** Relations of which a leaf of `relation` reads the tuples of its object. */
export function relationsRead(relation: number, op: Vertex['op']): number[] {
  const relations = op?.hasThis === true ? [relation] : [];
  const walks = op?.walks ?? [];
  for (let i = 0; i < walks.length; i += 2) relations.push(walks[i] as number);
  return relations;
}
