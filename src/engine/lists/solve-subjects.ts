import { UNDETERMINED, FALSE, TRUE, type Value } from '../bound/scope.ts';
import type { Steps } from '../general/gate-system.ts';
import type { Component, GraphPlan } from './graph-plan.ts';
import { ANY, EXCLUDE_ROLE, type SubjectGraph, WEAK_ROLE } from './subject-graph.ts';

/** Words that both planes of all vertices take together, about: 2 MiB each. */
const PLANE_WORDS = 1 << 19;
const BLOCK_WORDS_MAX = 64;
/** Words that are handled between two yields. */
const WORK_PER_STEP = 2048;

/**
 * The value of a graph's root for each of its subjects, by index, and last for everybody whom it does
 * not name. The well-founded model, 32 subjects at a time: two bits each, certainly and possibly, so
 * that unions, intersections and exclusions of Kleene's logic are operations on words.
 *
 * Subjects are taken in blocks, so that memory is bounded by the graph and not by graph × subjects.
 * Cost: O((vertices + edges) × subjects / 32); components that rest on themselves some times that.
 */
export function* solveSubjects(graph: SubjectGraph, plan: GraphPlan): Steps<Uint8Array> {
  const solver = new BlockSolver(graph, plan);
  yield* solver.sortEntries();
  const values = new Uint8Array(solver.userCount);
  for (let first = 0; first < values.length; first += solver.blockUsers) {
    yield* solver.solve(first);
    for (let i = first; i < Math.min(values.length, first + solver.blockUsers); i++) {
      values[i] = solver.rootValue(i - first);
    }
    yield;
  }
  return values;
}

class BlockSolver {
  /** The graph's users and one more, whom no tuple names. */
  readonly userCount: number;
  readonly blockUsers: number;
  readonly #graph: SubjectGraph;
  readonly #plan: GraphPlan;
  readonly #words: number;
  /** Certainly, and possibly: `#words` words a vertex. */
  readonly #sure: Uint32Array;
  readonly #possible: Uint32Array;
  /** Entries by block: from #entryStart[block] to the next one, indexes into the graph's. */
  readonly #entryStart: Int32Array;
  readonly #entries: Int32Array;
  #work = 0;

  constructor(graph: SubjectGraph, plan: GraphPlan) {
    this.#graph = graph;
    this.#plan = plan;
    const vertices = graph.gate.length;
    this.userCount = graph.subjects.size + 1;
    const needed = Math.ceil(this.userCount / 32);
    this.#words = Math.max(
      1,
      Math.min(needed, BLOCK_WORDS_MAX, Math.floor(PLANE_WORDS / vertices)),
    );
    this.blockUsers = this.#words * 32;
    this.#sure = new Uint32Array(vertices * this.#words);
    this.#possible = new Uint32Array(vertices * this.#words);
    this.#entryStart = new Int32Array(Math.ceil(this.userCount / this.blockUsers) + 1);
    this.#entries = new Int32Array(graph.entrySubject.length);
  }

  /** Puts the tuples that name users in the order of the blocks. */
  *sortEntries(): Steps<void> {
    const { entrySubject } = this.#graph;
    const start = this.#entryStart;
    for (let i = 0; i < entrySubject.length; i++) {
      if (this.#isStep(1)) yield;
      const after = this.#blockOf(i) + 1;
      start[after] = (start[after] as number) + 1;
    }
    for (let b = 1; b < start.length; b++)
      start[b] = (start[b] as number) + (start[b - 1] as number);
    const next = start.slice();
    for (let i = 0; i < entrySubject.length; i++) {
      if (this.#isStep(1)) yield;
      const block = this.#blockOf(i);
      const at = next[block] as number;
      next[block] = at + 1;
      this.#entries[at] = i;
    }
  }

  #blockOf(entry: number): number {
    const user = (this.#graph.entrySubject[entry] as number) >>> 1;
    return Math.floor(user / this.blockUsers);
  }

  /** Solves the graph for the users from `first` on, which begins a block. */
  *solve(first: number): Steps<void> {
    yield* this.#prepare(first);
    for (const component of this.#plan.components) {
      if (this.#isStep(component.vertices.length)) yield;
      if (!component.isCyclic) {
        yield* this.#evaluate(component.vertices[0] as number, true, true);
      } else if (component.isNegative) {
        yield* this.#alternate(component);
      } else if (component.hasOperators || this.#graph.hasWeakEdges) {
        yield* this.#close(component, true, true);
      } else {
        yield* this.#unite(component);
      }
    }
  }

  /** The value of the user at `index` of the block that was solved last. */
  rootValue(index: number): Value {
    const [word, bit] = [index >> 5, 1 << (index & 31)];
    if (((this.#sure[word] as number) & bit) !== 0) return TRUE;
    return ((this.#possible[word] as number) & bit) === 0 ? FALSE : UNDETERMINED;
  }

  /** Collects the own values of vertices: wildcards, and the users that tuples name. */
  *#prepare(first: number): Steps<void> {
    const words = this.#words;
    const { base, entrySubject, entryVertex } = this.#graph;
    this.#sure.fill(0);
    this.#possible.fill(0);
    for (let v = 0; v < base.length; v++) {
      if (this.#isStep(1)) yield;
      if (base[v] === FALSE) continue;
      this.#possible.fill(-1, v * words, (v + 1) * words);
      if (base[v] === TRUE) this.#sure.fill(-1, v * words, (v + 1) * words);
    }
    const block = first / this.blockUsers;
    const end = this.#entryStart[block + 1] as number;
    for (let at = this.#entryStart[block] as number; at < end; at++) {
      if (this.#isStep(1)) yield;
      const entry = this.#entries[at] as number;
      const user = entrySubject[entry] as number;
      const index = (user >>> 1) - first;
      const word = (entryVertex[entry] as number) * words + (index >> 5);
      const bit = 1 << (index & 31);
      this.#possible[word] = (this.#possible[word] as number) | bit;
      if ((user & 1) === 0) this.#sure[word] = (this.#sure[word] as number) | bit;
    }
  }

  /**
   * Evaluates one vertex from its operands, in one plane or both; what it has of its own and had
   * before stays in a union. Returns whether a word changed.
   */
  *#evaluate(vertex: number, doesSure: boolean, doesPossible: boolean): Steps<boolean> {
    const { inputStart, inputs } = this.#plan;
    const gate = this.#graph.gate[vertex];
    const from = inputStart[vertex] as number;
    const to = inputStart[vertex + 1] as number;
    let isChanged = false;
    if (gate === ANY) {
      for (let at = from; at < to; at++) {
        if (this.#isStep(this.#words)) yield;
        const input = inputs[at] as number;
        const isWeak = (input & 3) === WEAK_ROLE;
        if (doesSure && !isWeak && this.#add(this.#sure, vertex, input >> 2)) isChanged = true;
        if (doesPossible && this.#add(this.#possible, vertex, input >> 2)) isChanged = true;
      }
      return isChanged;
    }
    const start = vertex * this.#words;
    for (let word = 0; word < this.#words; word++) {
      if (this.#isStep(to - from)) yield;
      if (doesSure && this.#join(this.#sure, this.#possible, start + word, word, from, to)) {
        isChanged = true;
      }
      if (doesPossible && this.#join(this.#possible, this.#sure, start + word, word, from, to)) {
        isChanged = true;
      }
    }
    return isChanged;
  }

  /** Adds an operand to a union in one plane. */
  #add(plane: Uint32Array, vertex: number, operand: number): boolean {
    const words = this.#words;
    const [target, source] = [vertex * words, operand * words];
    let isChanged = false;
    for (let i = 0; i < words; i++) {
      const known = plane[target + i] as number;
      const joined = (known | (plane[source + i] as number)) >>> 0;
      if (joined === known) continue;
      plane[target + i] = joined;
      isChanged = true;
    }
    return isChanged;
  }

  /** One word of an intersection or exclusion: an exclude side is read in the other plane. */
  #join(
    plane: Uint32Array,
    other: Uint32Array,
    target: number,
    word: number,
    from: number,
    to: number,
  ): boolean {
    let joined = -1;
    for (let at = from; at < to; at++) {
      const input = this.#plan.inputs[at] as number;
      const source = (input >> 2) * this.#words + word;
      joined &=
        (input & 3) === EXCLUDE_ROLE ? ~(other[source] as number) : (plane[source] as number);
    }
    joined >>>= 0;
    if (plane[target] === joined) return false;
    plane[target] = joined;
    return true;
  }

  /** Unions that contain one another have the same value. */
  *#unite({ vertices }: Component): Steps<void> {
    const all = vertices[0] as number;
    for (const vertex of vertices) {
      yield* this.#evaluate(vertex, true, true);
      this.#add(this.#sure, all, vertex);
      this.#add(this.#possible, all, vertex);
    }
    for (const vertex of vertices) {
      if (this.#isStep(this.#words)) yield;
      this.#add(this.#sure, vertex, all);
      this.#add(this.#possible, vertex, all);
    }
  }

  /** The least solution of vertices that rest on one another, from what they have of their own. */
  *#close({ vertices }: Component, doesSure: boolean, doesPossible: boolean): Steps<void> {
    for (let isChanged = true; isChanged;) {
      isChanged = false;
      for (const vertex of vertices) {
        if (yield* this.#evaluate(vertex, doesSure, doesPossible)) isChanged = true;
      }
    }
  }

  /** Alternating fixpoints (Van Gelder 1989): what is possible given what is sure, and the reverse. */
  *#alternate(component: Component): Steps<void> {
    const { vertices } = component;
    const ownSure = this.#copy(this.#sure, vertices);
    const ownPossible = this.#copy(this.#possible, vertices);
    this.#put(this.#sure, vertices, new Uint32Array(ownSure.length));
    for (;;) {
      const known = this.#copy(this.#sure, vertices);
      this.#put(this.#possible, vertices, ownPossible);
      yield* this.#close(component, false, true);
      this.#put(this.#sure, vertices, ownSure);
      yield* this.#close(component, true, false);
      if (isSame(known, this.#copy(this.#sure, vertices))) return;
    }
  }

  #copy(plane: Uint32Array, vertices: Int32Array): Uint32Array {
    const words = this.#words;
    const copy = new Uint32Array(vertices.length * words);
    vertices.forEach((vertex, i) => {
      copy.set(plane.subarray(vertex * words, (vertex + 1) * words), i * words);
    });
    return copy;
  }

  #put(plane: Uint32Array, vertices: Int32Array, copy: Uint32Array): void {
    const words = this.#words;
    vertices.forEach((vertex, i) => {
      plane.set(copy.subarray(i * words, (i + 1) * words), vertex * words);
    });
  }

  /** Whether it is time to yield, after so much work more. */
  #isStep(work: number): boolean {
    this.#work += work;
    if (this.#work < WORK_PER_STEP) return false;
    this.#work = 0;
    return true;
  }
}

function isSame(a: Uint32Array, b: Uint32Array): boolean {
  return a.every((word, i) => word === b[i]);
}
