import { OP_EXCLUSION, OP_INTERSECTION, OP_LEAF, type Op, THIS_OP } from '../bound/bound-model.ts';
import { PairTable } from '../bound/pair-table.ts';
import { CUT, FALSE, type Scope, type Target, TRUE, type Value } from '../bound/scope.ts';
import {
  ALL,
  ANY,
  BUT_NOT,
  EXCLUDE_ROLE,
  GateSystem,
  PLAIN_ROLE,
  type Steps,
  WEAK_ROLE,
} from '../general/gate-system.ts';
import { type EdgeIds, type LeafVisitor, walkLeaf } from './leaf-walk.ts';

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
  /** Of a userset: it lies beyond the depth bound, or the read budget ended before it. */
  isBeyond: boolean;
  isUnread: boolean;
};

const NONE: number[] = [];
const NO_DIRECTS: Direct[] = [];
const NO_LINKS: Link[] = [];

/**
 * Everything that a denied userset could follow from, with its values: also what lies behind tuples
 * that do not count, on both sides of every operator. Where the read budget ends the rest is unread
 * and counts as undecided.
 */
export class BlameGraph {
  readonly vertices: Vertex[] = [];
  readonly gates = new GateSystem();
  /** The read budget ended first. */
  isExhausted = false;
  readonly #scope: Scope;
  readonly #target: Target;
  readonly #ignored: EdgeIds | null;
  readonly #keys = new PairTable();
  readonly #vertexOfKey: number[] = [];
  readonly #isQueued: boolean[] = [];
  readonly #queue: number[] = [];
  /** Reached through tuples that do not count, so far: read last, so that levels are those of the evaluation. */
  readonly #late: number[] = [];
  #nextLive = 0;
  #nextLate = 0;

  /** `ignored`: a tuple that is none, if any. */
  constructor(scope: Scope, target: Target, ignored: EdgeIds | null) {
    this.#scope = scope;
    this.#target = target;
    this.#ignored = ignored;
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
    for (;;) {
      const vertex = this.#nextUnread();
      if (vertex === undefined) break;
      yield* this.#expand(vertex);
      yield;
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

  *#expand(id: number): Steps<void> {
    const vertex = this.at(id);
    const { entity, relation, level, isExcluding } = vertex;
    const target = this.#target;
    if (level > this.#scope.depthMax || this.isExhausted) {
      vertex.isBeyond = !this.isExhausted;
      vertex.isUnread = this.isExhausted;
      this.gates.stain(id);
      return;
    }
    if (entity === target.setEntity && relation === target.setRelation && entity !== 0) {
      this.gates.seedTrue(id);
      return;
    }
    const { reader, model } = this.#scope;
    const program = model.programOf(reader.namespaceOf(entity), relation);
    const op = program === undefined ? THIS_OP : program.root;
    const root = yield* this.#operator(op, vertex, isExcluding);
    vertex.operands.push(root);
    this.gates.connect(root, id, PLAIN_ROLE);
  }

  *#operator(op: Op, userset: Vertex, isExcluding: boolean): Steps<number> {
    const { entity, relation, level } = userset;
    const gate = op.kind === OP_INTERSECTION ? ALL : op.kind === OP_EXCLUSION ? BUT_NOT : ANY;
    const kind =
      op.kind === OP_LEAF ? 'leaf' : gate === ALL ? 'all' : gate === BUT_NOT ? 'butNot' : 'any';
    const id = this.gates.add(gate, false);
    const vertex = vertexOf(kind, entity, relation, isExcluding, level, op);
    this.vertices.push(vertex);
    if (kind === 'leaf') {
      yield* this.#leaf(id, vertex, op);
      return id;
    }
    for (const [index, child] of op.children.entries()) {
      const isExclude = kind === 'butNot' && index === 1;
      const operand = yield* this.#operator(child, userset, isExcluding || isExclude);
      vertex.operands.push(operand);
      this.gates.connect(operand, id, isExclude ? EXCLUDE_ROLE : PLAIN_ROLE);
    }
    return id;
  }

  *#leaf(id: number, vertex: Vertex, leaf: Op): Steps<void> {
    const { entity, relation, isExcluding } = vertex;
    const place = { entity, relation, leaf, target: this.#target, isExcluding };
    if (!this.isExhausted) {
      try {
        yield* walkLeaf(this.#scope, place, this.#visitorOf(id, vertex));
        return;
      } catch (error) {
        if (!this.#scope.isExhausted) throw error;
        this.isExhausted = true;
      }
    }
    vertex.isUnread = true;
    this.gates.stain(id);
  }

  #visitorOf(id: number, vertex: Vertex): LeafVisitor {
    return {
      onDirect: (tuple, value) => {
        if (this.#isIgnored(tuple)) return;
        if (value === TRUE) this.gates.seedTrue(id);
        else vertex.directs.push({ tuple, value });
        if (value === CUT) this.gates.stain(id);
      },
      onChild: (entity, relation, tuple, value) => {
        if (tuple !== null && this.#isIgnored(tuple)) return;
        const isLive = value !== FALSE;
        const child = this.#userset(entity, relation, vertex.isExcluding, vertex.level + 1, isLive);
        vertex.links.push({ child, tuple, value });
        if (isLive) this.gates.connect(child, id, value === CUT ? WEAK_ROLE : PLAIN_ROLE);
      },
    };
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
  // Only leaves have tuples, only the others have operands; most of a graph is these lists.
  const lists =
    kind === 'leaf'
      ? { operands: NONE, directs: [], links: [] }
      : { operands: [], directs: NO_DIRECTS, links: NO_LINKS };
  const place = { entity, relation, isExcluding, level };
  return { kind, ...place, op, ...lists, isBeyond: false, isUnread: false };
}
