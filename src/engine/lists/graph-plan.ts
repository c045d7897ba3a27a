import type { Steps } from '../general/gate-system.ts';
import { ANY, EXCLUDE_ROLE, type SubjectGraph } from './subject-graph.ts';

/** Vertices and edges that are handled between two yields. */
const WORK_PER_STEP = 256;

/** Vertices that are to be solved together: one, or several that rest on one another. */
export type Component = {
  /** The one from which the others were reached comes last. */
  readonly vertices: Int32Array;
  /** They rest on one another. */
  readonly isCyclic: boolean;
  /** They do so through an exclude side. */
  readonly isNegative: boolean;
  /** One of them is an intersection or exclusion, or an operand of a rewrite that has one. */
  readonly hasOperators: boolean;
};

/** Order in which a graph is solved, and the lists of its edges. */
export type GraphPlan = {
  /** Components, each after those that it rests on. */
  readonly components: readonly Component[];
  /** Edges of vertex v: from inputStart[v] to inputStart[v + 1], each operand * 4 + role. */
  readonly inputStart: Int32Array;
  readonly inputs: Int32Array;
  /**
   * Nodes and rounds that an evaluation of one user may need at most, whichever user it is: within the depth bound
   * every evaluation has the value of the graph's solution.
   */
  readonly depthNeeded: number;
  /** Usersets contain one another through intersections or exclusions. */
  readonly hasOperatorCycle: boolean;
};

/**
 * The strongly connected components of a graph, operands first (Tarjan 1972), and how deep an evaluation may get in it.
 * O(vertices + edges).
 */
export function* planOf(graph: SubjectGraph): Steps<GraphPlan> {
  const { inputStart, inputs } = yield* inputsOf(graph);
  const search = new ComponentSearch(graph, inputStart, inputs);
  yield* search.run();
  const { components, depthNeeded, hasOperatorCycle } = search;
  return { components, inputStart, inputs, depthNeeded, hasOperatorCycle };
}

function* inputsOf(graph: SubjectGraph): Steps<{ inputStart: Int32Array; inputs: Int32Array }> {
  const { edgeReader, edgeOperand, edgeRole } = graph;
  const inputStart = new Int32Array(graph.gate.length + 1);
  const inputs = new Int32Array(edgeReader.length);
  for (let i = 0; i < edgeReader.length; i++) {
    if (i % WORK_PER_STEP === 0) yield;
    const after = (edgeReader[i] as number) + 1;
    inputStart[after] = (inputStart[after] as number) + 1;
  }
  for (let v = 1; v < inputStart.length; v++) {
    if (v % WORK_PER_STEP === 0) yield;
    inputStart[v] = (inputStart[v] as number) + (inputStart[v - 1] as number);
  }
  // Backwards, so that each start moves down to where it belongs; edges keep their order.
  for (let i = edgeReader.length - 1; i >= 0; i--) {
    if (i % WORK_PER_STEP === 0) yield;
    const reader = (edgeReader[i] as number) + 1;
    const at = (inputStart[reader] as number) - 1;
    inputStart[reader] = at;
    inputs[at] = (edgeOperand[i] as number) * 4 + (edgeRole[i] as number);
  }
  // Each start is now one vertex too high.
  inputStart.copyWithin(0, 1);
  inputStart[graph.gate.length] = edgeReader.length;
  return { inputStart, inputs };
}

class ComponentSearch {
  readonly components: Component[] = [];
  readonly #graph: SubjectGraph;
  readonly #inputStart: Int32Array;
  readonly #inputs: Int32Array;
  /** Order of discovery, from 1; 0 is unseen. */
  readonly #found: Int32Array;
  readonly #low: Int32Array;
  /** Index of the component + 1; 0: not known yet. */
  readonly #componentOf: Int32Array;
  readonly #open: number[] = [];
  /** Usersets on the longest way down from each component, itself included. */
  readonly #height: number[] = [];
  /** Vertices of cyclic components on the way down that has most of them. */
  readonly #cyclic: number[] = [];
  hasOperatorCycle = false;

  constructor(graph: SubjectGraph, inputStart: Int32Array, inputs: Int32Array) {
    this.#graph = graph;
    this.#inputStart = inputStart;
    this.#inputs = inputs;
    const count = graph.gate.length;
    this.#found = new Int32Array(count);
    this.#low = new Int32Array(count);
    this.#componentOf = new Int32Array(count);
  }

  /**
   * A walk never meets a userset twice, so it is no longer than the longest way down. Where operators
   * are on a cycle, rounds count (component-solver.ts): between two of its refutations there are no more
   * of them than a way is long, and each refutation on the way of another decides a vertex on a cycle.
   */
  get depthNeeded(): number {
    const last = this.components.length - 1;
    const height = this.#height[last] ?? 0;
    if (!this.hasOperatorCycle) return height;
    return (height + 1) * ((this.#cyclic[last] ?? 0) + 2);
  }

  /** From vertex 0, from which everything is reached. */
  *run(): Steps<void> {
    const path: number[] = [];
    const nextInput: number[] = [];
    let count = 0;
    const enter = (vertex: number): void => {
      count++;
      this.#found[vertex] = count;
      this.#low[vertex] = count;
      this.#open.push(vertex);
      path.push(vertex);
      nextInput.push(this.#inputStart[vertex] as number);
    };
    enter(0);
    for (let work = 1; path.length > 0; work++) {
      if (work % WORK_PER_STEP === 0) yield;
      const top = path.length - 1;
      const vertex = path[top] as number;
      const at = nextInput[top] as number;
      if (at < (this.#inputStart[vertex + 1] as number)) {
        nextInput[top] = at + 1;
        const operand = (this.#inputs[at] as number) >> 2;
        if (this.#found[operand] === 0) enter(operand);
        else if (this.#componentOf[operand] === 0)
          this.#lower(vertex, this.#found[operand] as number);
        continue;
      }
      path.pop();
      nextInput.pop();
      if (top > 0) this.#lower(path[top - 1] as number, this.#low[vertex] as number);
      if (this.#low[vertex] === this.#found[vertex]) yield* this.#close(vertex);
    }
  }

  #lower(vertex: number, to: number): void {
    if (to < (this.#low[vertex] as number)) this.#low[vertex] = to;
  }

  /** The component of which `first` was discovered first. */
  *#close(first: number): Steps<void> {
    const start = this.#open.lastIndexOf(first);
    const vertices = Int32Array.from(this.#open.slice(start)).toReversed();
    this.#open.length = start;
    const id = this.components.length + 1;
    for (const vertex of vertices) this.#componentOf[vertex] = id;
    const { gate, isUserset } = this.#graph;
    let [height, cyclic, usersets] = [0, 0, 0];
    let [isCyclic, isNegative, hasOperators] = [vertices.length > 1, false, false];
    let work = 0;
    for (const vertex of vertices) {
      if (isUserset[vertex] === true) usersets++;
      // An operand of its own is of a rewrite that is no plain union: Check solves such a cycle by rounds, too.
      if (gate[vertex] !== ANY || isUserset[vertex] === false) hasOperators = true;
      const end = this.#inputStart[vertex + 1] as number;
      for (let at = this.#inputStart[vertex] as number; at < end; at++) {
        if (++work % WORK_PER_STEP === 0) yield;
        const input = this.#inputs[at] as number;
        const component = (this.#componentOf[input >> 2] as number) - 1;
        if (component === id - 1) {
          isCyclic = true;
          if ((input & 3) === EXCLUDE_ROLE) isNegative = true;
          continue;
        }
        height = Math.max(height, this.#height[component] as number);
        cyclic = Math.max(cyclic, this.#cyclic[component] as number);
      }
    }
    if (isCyclic && hasOperators) this.hasOperatorCycle = true;
    this.components.push({ vertices, isCyclic, isNegative, hasOperators });
    this.#height.push(height + usersets);
    this.#cyclic.push(cyclic + (isCyclic ? vertices.length : 0));
  }
}
