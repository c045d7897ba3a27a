import { OP_EXCLUSION, OP_INTERSECTION, OP_LEAF, type Op, THIS_OP } from '../bound/bound-model.ts';
import { BACKSTOP_DEPTH } from '../bound/evaluator-api.ts';
import { PairTable } from '../bound/pair-table.ts';
import {
  CUT,
  FALSE,
  type LeafSink,
  type Scope,
  type Target,
  TRUE,
  type Value,
} from '../bound/scope.ts';
import type { Outcome } from './outcome.ts';

const ANY = 0;
const ALL = 1;
const BUT_NOT = 2;
type Gate = 0 | 1 | 2;

const EDGE_PLAIN_ROLE = 0;
const EDGE_WEAK_ROLE = 1;
const EDGE_EXCLUDE_ROLE = 2;

/** Work that may be interrupted at each `yield`; what it returns is the result. */
export type Steps<T> = Generator<undefined, T, undefined>;
/** Vertices and edges that are handled between two yields. */
const WORK_PER_STEP = 64;

/**
 * Values of a userset and of everything that it depends on when those contain one another through
 * intersections or exclusions: the well-founded model (Van Gelder, Ross, Schlipf 1991) of the
 * ground equations up to `levelMax` nodes away. Rounds of simultaneous evaluation from "all cut"
 * give each value the least depth at which it follows; when a round adds nothing, the greatest
 * unfounded set (what could hold only by holding already) becomes false at once.
 * Yields after every few steps, so that a slice may end; the generator returns the outcome.
 * Errors: BUDGET_EXHAUSTED. Cost: O(reached usersets + edges) reads and time.
 */
export function* solveComponent(
  scope: Scope,
  target: Target,
  entity: number,
  relation: number,
  isExcluding: boolean,
  levelMax: number,
): Steps<Outcome> {
  const equations = new Equations(scope, target, levelMax);
  const root = yield* equations.ground(entity, relation, isExcluding);
  yield* equations.solve(levelMax);
  const value = equations.valueOf(root);
  return {
    value,
    height: Math.min(levelMax, equations.heightOf(root)),
    isDepthCut: equations.isTruncated,
  };
}

/** A long list of which the rest is to be scanned, with the vertex that it belongs to. */
type Rest = {
  readonly node: number;
  readonly relation: number;
  readonly withObjects: boolean;
  readonly cursor: number;
  readonly sink: number;
  readonly level: number;
  readonly isExcluding: boolean;
};

class Equations implements LeafSink {
  isTruncated = false;
  readonly #scope: Scope;
  readonly #target: Target;
  readonly #levelMax: number;
  // One vertex for each userset (a gate ANY over its root operator) and each operator.
  readonly #gate: Gate[] = [];
  readonly #isUserset: boolean[] = [];
  readonly #value: Value[] = [];
  readonly #height: number[] = [];
  /** Operands that are not decided yet. */
  readonly #open: number[] = [];
  /** An operand is CUT for good, or holds only through an undecided condition. */
  readonly #isStained: boolean[] = [];
  /** BUT_NOT: the include side was found TRUE. */
  readonly #hasInclude: boolean[] = [];
  /** Pairs (vertex that reads this one, role). */
  readonly #readers: number[][] = [];
  readonly #keys = new PairTable();
  readonly #vertexOfKey: number[] = [];
  readonly #levelOfKey: number[] = [];
  readonly #rests: Rest[] = [];
  #sink = 0;
  #sinkLevel = 0;
  #sinkExcluding = false;
  #decided: number[] = [];
  /** Usersets that are TRUE as the target itself: decided by the first round, as if by an operator. */
  #found: number[] = [];
  #work = 0;

  constructor(scope: Scope, target: Target, levelMax: number) {
    this.#scope = scope;
    this.#target = target;
    this.#levelMax = levelMax;
  }

  valueOf(vertex: number): Value {
    return this.#value[vertex] as Value;
  }

  heightOf(vertex: number): number {
    return this.#height[vertex] as number;
  }

  /** Builds the equations of everything reachable, nearest first. Returns the vertex of the root. */
  *ground(entity: number, relation: number, isExcluding: boolean): Steps<number> {
    const root = this.#userset(entity, relation, isExcluding, 1);
    for (let key = 0; key < this.#keys.size; key++) {
      this.#expand(key);
      yield;
      for (let rest = this.#rests.pop(); rest !== undefined; rest = this.#rests.pop()) {
        this.#sink = rest.sink;
        this.#sinkLevel = rest.level;
        this.#sinkExcluding = rest.isExcluding;
        this.#scope.scanRest(rest.node, rest.relation, rest.withObjects, rest.cursor, this);
        yield;
      }
    }
    return root;
  }

  #expand(key: number): void {
    const { reader, model } = this.#scope;
    const vertex = this.#vertexOfKey[key] as number;
    const level = this.#levelOfKey[key] as number;
    const entity = this.#keys.firstOf(key);
    const relation = this.#keys.secondOf(key) >>> 1;
    const isExcluding = (this.#keys.secondOf(key) & 1) === 1;
    if (level > this.#levelMax) {
      this.isTruncated = true;
      this.#scope.backstops |= BACKSTOP_DEPTH;
      this.#isStained[vertex] = true;
      return;
    }
    if (
      entity === this.#target.setEntity &&
      relation === this.#target.setRelation &&
      entity !== 0
    ) {
      this.#isStained[vertex] = false;
      this.#seedTrue(vertex);
      return;
    }
    const program = model.programOf(reader.namespaceOf(entity), relation);
    const op = program === undefined ? THIS_OP : program.root;
    const root = this.#operator(op, entity, relation, level, isExcluding);
    this.#connect(root, vertex, EDGE_PLAIN_ROLE);
  }

  #operator(op: Op, entity: number, relation: number, level: number, isExcluding: boolean): number {
    if (op.kind === OP_LEAF) {
      const vertex = this.#add(ANY, false);
      this.#sink = vertex;
      this.#sinkLevel = level + 1;
      this.#sinkExcluding = isExcluding;
      this.#scope.scanLeaf(entity, relation, op, this.#target, isExcluding, this);
      return vertex;
    }
    const gate = op.kind === OP_INTERSECTION ? ALL : op.kind === OP_EXCLUSION ? BUT_NOT : ANY;
    const vertex = this.#add(gate, false);
    for (let i = 0; i < op.children.length; i++) {
      const isExclude = gate === BUT_NOT && i === 1;
      const child = op.children[i] as Op;
      const operand = this.#operator(child, entity, relation, level, isExcluding || isExclude);
      this.#connect(operand, vertex, isExclude ? EDGE_EXCLUDE_ROLE : EDGE_PLAIN_ROLE);
    }
    return vertex;
  }

  onDirect(value: Value): void {
    if (value === TRUE) this.#seedTrue(this.#sink);
    else this.#isStained[this.#sink] = true;
  }

  onChild(entity: number, relation: number, isWeak: boolean): void {
    const child = this.#userset(entity, relation, this.#sinkExcluding, this.#sinkLevel);
    this.#connect(child, this.#sink, isWeak ? EDGE_WEAK_ROLE : EDGE_PLAIN_ROLE);
  }

  onRest(node: number, relation: number, withObjects: boolean, cursor: number): void {
    const [sink, level, isExcluding] = [this.#sink, this.#sinkLevel, this.#sinkExcluding];
    this.#rests.push({ node, relation, withObjects, cursor, sink, level, isExcluding });
  }

  #userset(entity: number, relation: number, isExcluding: boolean, level: number): number {
    const size = this.#keys.size;
    const key = this.#keys.insert(entity, relation * 2 + (isExcluding ? 1 : 0));
    if (key < size) return this.#vertexOfKey[key] as number;
    const vertex = this.#add(ANY, true);
    this.#vertexOfKey.push(vertex);
    this.#levelOfKey.push(level);
    return vertex;
  }

  #add(gate: Gate, isUserset: boolean): number {
    this.#gate.push(gate);
    this.#isUserset.push(isUserset);
    this.#height.push(0);
    this.#open.push(0);
    this.#isStained.push(false);
    this.#hasInclude.push(false);
    this.#readers.push([]);
    return this.#value.push(CUT) - 1;
  }

  #connect(operand: number, reader: number, role: number): void {
    (this.#readers[operand] as number[]).push(reader, role);
    this.#open[reader] = (this.#open[reader] as number) + 1;
  }

  /** A stored tuple of the target itself: TRUE before the first round. */
  #seedTrue(vertex: number): void {
    if (this.#value[vertex] !== CUT) return;
    const isUserset = this.#isUserset[vertex] === true;
    this.#value[vertex] = TRUE;
    this.#height[vertex] = isUserset ? 1 : 0;
    (isUserset ? this.#found : this.#decided).push(vertex);
  }

  /** Whether it is time to yield. */
  #isStep(): boolean {
    this.#work++;
    return this.#work % WORK_PER_STEP === 0;
  }

  *solve(roundMax: number): Steps<void> {
    for (let vertex = 0; vertex < this.#value.length; vertex++) {
      if (this.#isStep()) yield;
      // A leaf that leads nowhere is false; a userset always has an operator below or is stained.
      const isEmpty = this.#open[vertex] === 0 && this.#isStained[vertex] === false;
      if (isEmpty && this.#value[vertex] === CUT) this.#decide(vertex, FALSE, 0);
    }
    let round = 1;
    for (;;) {
      const usersets = yield* this.#propagate(round);
      if (usersets.length > 0) {
        this.#decided = usersets;
      } else if (!(yield* this.#refuteUnfounded(round))) {
        return;
      }
      if (++round > roundMax) {
        this.isTruncated = true;
        return;
      }
    }
  }

  /** Spreads decided values through the operators; returns the usersets that they decide. */
  *#propagate(round: number): Steps<number[]> {
    const usersets = this.#found;
    this.#found = [];
    const queue = this.#decided;
    this.#decided = [];
    for (let at = 0; at < queue.length; at++) {
      const vertex = queue[at] as number;
      const value = this.#value[vertex] as Value;
      const readers = this.#readers[vertex] as number[];
      for (let i = 0; i < readers.length; i += 2) {
        if (this.#isStep()) yield;
        const reader = readers[i] as number;
        if (this.#value[reader] !== CUT) continue;
        const outcome = this.#feed(reader, readers[i + 1] as number, value);
        if (outcome === CUT) continue;
        this.#value[reader] = outcome;
        this.#height[reader] = round;
        (this.#isUserset[reader] === true ? usersets : queue).push(reader);
      }
    }
    return usersets;
  }

  /** Gives a gate the decided value of one operand; returns what the gate becomes. */
  #feed(gate: number, role: number, value: Value): Value {
    const open = (this.#open[gate] as number) - 1;
    this.#open[gate] = open;
    switch (this.#gate[gate]) {
      case ALL:
        if (value === FALSE) return FALSE;
        return open === 0 ? TRUE : CUT;
      case BUT_NOT:
        if (role === EDGE_EXCLUDE_ROLE ? value === TRUE : value === FALSE) return FALSE;
        if (role !== EDGE_EXCLUDE_ROLE) this.#hasInclude[gate] = true;
        return open === 0 ? TRUE : CUT;
      default:
        if (value === TRUE && role !== EDGE_WEAK_ROLE) return TRUE;
        if (value === TRUE) this.#isStained[gate] = true;
        return open === 0 && this.#isStained[gate] === false ? FALSE : CUT;
    }
  }

  #decide(vertex: number, value: Value, height: number): void {
    this.#value[vertex] = value;
    this.#height[vertex] = height;
    this.#decided.push(vertex);
  }

  /** Makes everything FALSE that is open and could not be TRUE whatever the cut ones were. */
  *#refuteUnfounded(round: number): Steps<boolean> {
    const count = this.#value.length;
    const isPossible = new Uint8Array(count);
    const closed = new Int32Array(count); // operands of an ALL that are possible
    const queue: number[] = [];
    const add = (vertex: number): void => {
      if (this.#value[vertex] !== CUT || isPossible[vertex] === 1) return;
      isPossible[vertex] = 1;
      queue.push(vertex);
    };
    for (let vertex = 0; vertex < count; vertex++) {
      if (this.#isStep()) yield;
      const gate = this.#gate[vertex];
      if (gate === ANY && this.#isStained[vertex] === true) add(vertex);
      if (gate === BUT_NOT && this.#hasInclude[vertex] === true) add(vertex);
    }
    for (let at = 0; at < queue.length; at++) {
      const readers = this.#readers[queue[at] as number] as number[];
      for (let i = 0; i < readers.length; i += 2) {
        if (this.#isStep()) yield;
        const reader = readers[i] as number;
        if (readers[i + 1] === EDGE_EXCLUDE_ROLE) continue;
        if (this.#gate[reader] === ALL) {
          closed[reader] = (closed[reader] as number) + 1;
          if (closed[reader] !== this.#open[reader]) continue;
        }
        add(reader);
      }
    }
    let found = false;
    for (let vertex = 0; vertex < count; vertex++) {
      if (this.#isStep()) yield;
      if (this.#value[vertex] !== CUT || isPossible[vertex] === 1) continue;
      this.#decide(vertex, FALSE, round);
      found = true;
    }
    return found;
  }
}
