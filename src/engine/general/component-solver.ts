import { OP_EXCLUSION, OP_INTERSECTION, OP_LEAF, type Op, THIS_OP } from '../bound/bound-model.ts';
import { BACKSTOP_DEPTH } from '../bound/evaluator-api.ts';
import { PairTable } from '../bound/pair-table.ts';
import { type LeafSink, type Scope, type Target, TRUE, type Value } from '../bound/scope.ts';
import {
  ALL,
  ANY,
  EXCLUSION,
  EXCLUDE_ROLE,
  GateSystem,
  PLAIN_ROLE,
  type Steps,
  WEAK_ROLE,
} from './gate-system.ts';

export type { Steps } from './gate-system.ts';

/**
 * Values of a userset and of everything that it depends on when those contain one another through
 * intersections or exclusions: the equations up to `levelMax` nodes away, solved as a whole
 * (gate-system.ts). Yields after every few steps, so that a slice may end; the generator returns the outcome.
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
  yield* equations.gates.solve(levelMax);
  const value = equations.gates.valueOf(root);
  // Heights of these values count rounds: only those of small cycles are good enough for a check that begins
  // elsewhere.
  if (2 * equations.size >= scope.depthMax) scope.hasDeepCycle = true;
  return {
    value,
    height: Math.min(levelMax, equations.gates.heightOf(root)),
    isDepthExceeded: equations.isTruncated || equations.gates.isTruncated,
  };
}

/** A long list of which the rest is to be scanned, with the vertex that it belongs to. */
type SolverRest = {
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
  readonly gates = new GateSystem();
  readonly #scope: Scope;
  readonly #target: Target;
  readonly #levelMax: number;
  readonly #keys = new PairTable();
  readonly #vertexOfKey: number[] = [];
  readonly #levelOfKey: number[] = [];
  readonly #rests: SolverRest[] = [];
  #sink = 0;
  #sinkLevel = 0;
  #sinkExcluding = false;

  constructor(scope: Scope, target: Target, levelMax: number) {
    this.#scope = scope;
    this.#target = target;
    this.#levelMax = levelMax;
  }

  /** Usersets that the equations are of. */
  get size(): number {
    return this.#vertexOfKey.length;
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
      this.gates.markUndetermined(vertex);
      return;
    }
    if (this.#scope.isTarget(this.#target, entity, relation, isExcluding)) {
      this.gates.seedTrue(vertex);
      return;
    }
    const program = model.programOf(reader.namespaceOf(entity), relation);
    const op = program === undefined ? THIS_OP : program.root;
    const root = this.#operator(op, entity, relation, level, isExcluding);
    this.gates.connect(root, vertex, PLAIN_ROLE);
  }

  #operator(op: Op, entity: number, relation: number, level: number, isExcluding: boolean): number {
    if (op.kind === OP_LEAF) {
      const vertex = this.gates.add(ANY, false);
      this.#sink = vertex;
      this.#sinkLevel = level + 1;
      this.#sinkExcluding = isExcluding;
      this.#scope.scanLeaf(entity, relation, op, this.#target, isExcluding, this);
      return vertex;
    }
    const gate = op.kind === OP_INTERSECTION ? ALL : op.kind === OP_EXCLUSION ? EXCLUSION : ANY;
    const vertex = this.gates.add(gate, false);
    for (let i = 0; i < op.children.length; i++) {
      const isExclude = gate === EXCLUSION && i === 1;
      const child = op.children[i] as Op;
      const operand = this.#operator(child, entity, relation, level, isExcluding || isExclude);
      this.gates.connect(operand, vertex, isExclude ? EXCLUDE_ROLE : PLAIN_ROLE);
    }
    return vertex;
  }

  onDirect(value: Value): void {
    if (value === TRUE) this.gates.seedTrue(this.#sink);
    else this.gates.markUndetermined(this.#sink);
  }

  onChild(entity: number, relation: number, isWeak: boolean): void {
    const child = this.#userset(entity, relation, this.#sinkExcluding, this.#sinkLevel);
    this.gates.connect(child, this.#sink, isWeak ? WEAK_ROLE : PLAIN_ROLE);
  }

  onRest(node: number, relation: number, withObjects: boolean, cursor: number): void {
    const [sink, level, isExcluding] = [this.#sink, this.#sinkLevel, this.#sinkExcluding];
    this.#rests.push({ node, relation, withObjects, cursor, sink, level, isExcluding });
  }

  #userset(entity: number, relation: number, isExcluding: boolean, level: number): number {
    const size = this.#keys.size;
    const key = this.#keys.insert(entity, relation * 2 + (isExcluding ? 1 : 0));
    if (key < size) return this.#vertexOfKey[key] as number;
    const vertex = this.gates.add(ANY, true);
    this.#vertexOfKey.push(vertex);
    this.#levelOfKey.push(level);
    return vertex;
  }
}

/** A value with what it rests on; see `Memo`. */
export type Outcome = {
  readonly value: Value;
  /** TRUE and FALSE: nodes that a path needs for the value to be found. */
  readonly height: number;
  /** UNDETERMINED: whether a larger depth bound could decide it. */
  readonly isDepthExceeded: boolean;
};
