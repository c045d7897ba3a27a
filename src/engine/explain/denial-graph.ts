import { OP_EXCLUSION, OP_INTERSECTION, OP_LEAF, type Op, THIS_OP } from '../bound/bound-model.ts';
import type { PairTable } from '../bound/pair-table.ts';
import { UNDETERMINED, FALSE, type Scope, type Target, TRUE, type Value } from '../bound/scope.ts';
import {
  ALL,
  ANY,
  EXCLUSION,
  EXCLUDE_ROLE,
  GateSystem,
  PLAIN_ROLE,
  type Steps,
  WEAK_ROLE,
} from '../general/gate-system.ts';
import { type EdgeIds, type LeafVisitor, LeafWalk } from './leaf-walk.ts';

/** A tuple of the target itself that does not count for certain. */
export type Direct = { readonly tuple: EdgeIds; readonly value: Value };
/** A way from a leaf to another userset; FALSE: its tuple has expired or its condition is false. */
export type Link = {
  readonly child: number;
  readonly tuple: EdgeIds | null;
  readonly value: Value;
};

/** A userset, or one operator of its rewrite. */
export type Vertex = {
  readonly kind: 'userset' | 'leaf' | 'any' | 'all' | 'butNot';
  readonly entity: number;
  readonly relation: number;
  readonly isExcluding: boolean;
  /** Usersets on the shortest way from the root, its own included. */
  level: number;
  readonly op: Op | null;
  /** Vertices: of a userset its root operator, of an exclusion include and exclude. */
  readonly operands: number[];
  readonly directs: Direct[];
  readonly links: Link[];
  /** Whether a userset is beyond the depth bound, or unread since the read budget ended before it. */
  isBeyond: boolean;
  isUnread: boolean;
};

const NONE: number[] = [];
const NO_DIRECTS: Direct[] = [];
const NO_LINKS: Link[] = [];
/** Usersets that are read between two yields: some ten microseconds. */
const USERSETS_PER_YIELD = 4;

/**
 * Everything that a denied userset could follow from, with its values: also what is behind tuples that do not count,
 * on both sides of every operator. Where the read budget ends the rest is unread and counts as undecided.
 */
export class DenialGraph implements LeafVisitor {
  readonly vertices: Vertex[] = [];
  readonly gates = new GateSystem();
  /** The read budget ended first. */
  isExhausted = false;
  readonly #scope: Scope;
  readonly #target: Target;
  readonly #ignored: EdgeIds | null;
  readonly #keys: PairTable;
  readonly #vertexOfKey: number[] = [];
  readonly #isQueued: boolean[] = [];
  readonly #queue: number[] = [];
  /** Reached through tuples that do not count, so far: read last, so that levels are those of the evaluation. */
  readonly #late: number[] = [];
  #nextLive = 0;
  #nextLate = 0;
  /** Leaves of the userset that is expanded, in the order of its rewrite. */
  readonly #leaves: number[] = [];
  readonly #walk: LeafWalk;
  /** The leaf that is walked last, or now. */
  #leaf = 0;
  #isWalking = false;

  /** `ignored`: a tuple to treat as absent, if any. `keys`: an empty table, in use until the graph is built. */
  constructor(scope: Scope, target: Target, ignored: EdgeIds | null, keys: PairTable) {
    this.#scope = scope;
    this.#target = target;
    this.#ignored = ignored;
    this.#keys = keys;
    this.#walk = new LeafWalk(scope, target, this);
  }

  valueOf(vertex: number): Value {
    return this.gates.valueOf(vertex);
  }

  at(vertex: number): Vertex {
    return this.vertices[vertex] as Vertex;
  }

  /** Reads and solves. Returns the vertex of the root. Errors: none of the budget. */
  *build(entity: number, relation: number): Steps<number> {
    const root = this.#userset(entity, relation, false, 1, true);
    for (let steps = 1; ; steps++) {
      const vertex = this.#nextUnread();
      if (vertex === undefined) break;
      this.#expand(vertex);
      while (this.#walkLeaves()) yield;
      if (steps % USERSETS_PER_YIELD === 0) yield;
    }
    yield* this.gates.solve(this.#scope.depthMax);
    return root;
  }

  #nextUnread(): number | undefined {
    if (this.#nextLive < this.#queue.length) return this.#queue[this.#nextLive++];
    while (this.#nextLate < this.#late.length) {
      const late = this.#late[this.#nextLate++] as number; // below length
      if (this.#isQueued[late] === true) continue;
      this.#isQueued[late] = true;
      return late;
    }
    return undefined;
  }

  /** Its leaves are to be walked then. */
  #expand(id: number): void {
    const vertex = this.at(id);
    const { entity, relation, level, isExcluding } = vertex;
    const target = this.#target;
    if (level > this.#scope.depthMax || this.isExhausted) {
      vertex.isBeyond = !this.isExhausted;
      vertex.isUnread = this.isExhausted;
      this.gates.markUndetermined(id);
      return;
    }
    if (this.#scope.isTarget(target, entity, relation, isExcluding)) {
      this.gates.seedTrue(id);
      return;
    }
    const { reader, model } = this.#scope;
    const program = model.programOf(reader.namespaceOf(entity), relation);
    const op = program === undefined ? THIS_OP : program.root;
    const root = this.#operator(op, vertex, isExcluding);
    vertex.operands.push(root);
    this.gates.connect(root, id, PLAIN_ROLE);
  }

  #operator(op: Op, userset: Vertex, isExcluding: boolean): number {
    const { entity, relation, level } = userset;
    const gate = op.kind === OP_INTERSECTION ? ALL : op.kind === OP_EXCLUSION ? EXCLUSION : ANY;
    const kind =
      op.kind === OP_LEAF ? 'leaf' : gate === ALL ? 'all' : gate === EXCLUSION ? 'butNot' : 'any';
    const id = this.gates.add(gate, false);
    const vertex = vertexOf(kind, entity, relation, isExcluding, level, op);
    this.vertices.push(vertex);
    if (kind === 'leaf') {
      this.#leaves.push(id);
      return id;
    }
    for (let index = 0; index < op.children.length; index++) {
      const isExclude = kind === 'butNot' && index === 1;
      const child = op.children[index] as Op;
      const operand = this.#operator(child, userset, isExcluding || isExclude);
      vertex.operands.push(operand);
      this.gates.connect(operand, id, isExclude ? EXCLUDE_ROLE : PLAIN_ROLE);
    }
    return id;
  }

  /** Walks on, or the next of the leaves that wait; whether there is more. */
  #walkLeaves(): boolean {
    try {
      if (this.#isWalking) {
        this.#isWalking = this.#walk.step();
        return this.#isWalking || this.#leaves.length > 0;
      }
      for (let id = this.#leaves.shift(); id !== undefined; id = this.#leaves.shift()) {
        this.#leaf = id;
        const { entity, relation, op, isExcluding } = this.at(id);
        if (this.isExhausted) {
          this.#leaveUnread(id);
          continue;
        }
        this.#isWalking = this.#walk.start(entity, relation, op as Op, isExcluding);
        if (this.#isWalking) return true;
      }
      return false;
    } catch (error) {
      if (!this.#scope.isExhausted) throw error;
      this.isExhausted = true;
      this.#isWalking = false;
      this.#leaveUnread(this.#leaf);
      return this.#leaves.length > 0;
    }
  }

  #leaveUnread(leaf: number): void {
    this.at(leaf).isUnread = true;
    this.gates.markUndetermined(leaf);
  }

  onDirect(tuple: EdgeIds, value: Value): void {
    if (this.#isIgnored(tuple)) return;
    if (value === TRUE) this.gates.seedTrue(this.#leaf);
    else this.at(this.#leaf).directs.push({ tuple, value });
    if (value === UNDETERMINED) this.gates.markUndetermined(this.#leaf);
  }

  onChild(entity: number, relation: number, tuple: EdgeIds | null, value: Value): void {
    if (tuple !== null && this.#isIgnored(tuple)) return;
    const leaf = this.at(this.#leaf);
    const isLive = value !== FALSE;
    const child = this.#userset(entity, relation, leaf.isExcluding, leaf.level + 1, isLive);
    leaf.links.push({ child, tuple, value });
    if (isLive)
      this.gates.connect(child, this.#leaf, value === UNDETERMINED ? WEAK_ROLE : PLAIN_ROLE);
  }

  #isIgnored({ node, subject }: EdgeIds): boolean {
    return node === this.#ignored?.node && subject === this.#ignored.subject;
  }

  #userset(
    entity: number,
    relation: number,
    isExcluding: boolean,
    level: number,
    isLive: boolean,
  ): number {
    // Only for sets does it matter on which side of an exclusion a wildcard is.
    const side = isExcluding && this.#target.setEntity !== 0;
    const size = this.#keys.size;
    const key = this.#keys.insert(entity, relation * 2 + (side ? 1 : 0));
    if (key === size) {
      const id = this.gates.add(ANY, true);
      this.vertices.push(vertexOf('userset', entity, relation, side, level, null));
      this.#vertexOfKey.push(id);
    }
    const id = this.#vertexOfKey[key] as number;
    if (this.#isQueued[id] === true) return id;
    if (isLive) {
      this.#isQueued[id] = true;
      this.at(id).level = level;
      this.#queue.push(id);
    } else {
      this.#late.push(id);
    }
    return id;
  }
}

function vertexOf(
  kind: Vertex['kind'],
  entity: number,
  relation: number,
  isExcluding: boolean,
  level: number,
  op: Op | null,
): Vertex {
  const isLeaf = kind === 'leaf';
  return {
    kind,
    entity,
    relation,
    isExcluding,
    level,
    op,
    // Only leaves have tuples, only the others have operands; most of a graph is these lists.
    operands: isLeaf ? NONE : [],
    directs: isLeaf ? [] : NO_DIRECTS,
    links: isLeaf ? [] : NO_LINKS,
    isBeyond: false,
    isUnread: false,
  };
}
