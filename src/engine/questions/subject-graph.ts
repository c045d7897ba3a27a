import { EDGE_NODE_MASK, EMPTY_NAME, WILDCARD_NODE } from '../../model/tuple-reader.ts';
import {
  OP_EXCLUSION,
  OP_INTERSECTION,
  OP_LEAF,
  OP_UNION,
  type Op,
  THIS_OP,
} from '../bound/bound-model.ts';
import { BACKSTOP_DEPTH } from '../bound/evaluator-api.ts';
import { PairTable } from '../bound/pair-table.ts';
import { CUT, FALSE, type Scope, TRUE, type Value } from '../bound/scope.ts';
import type { Steps } from '../general/gate-system.ts';
import { laterThan } from './later-than.ts';

/** How a vertex follows from its operands. */
export const ANY = 0;
const ALL = 1;
/** The operand in EXCLUDE_ROLE does not hold, and the other one does. */
const BUT_NOT = 2;
type Gate = 0 | 1 | 2;

/** How an operand is read. */
export const PLAIN_ROLE = 0;
/** Through a condition that could not be decided: it contributes CUT at most. */
export const WEAK_ROLE = 1;
export const EXCLUDE_ROLE = 2;

const ENTRIES_PER_READ_SHIFT = 6;
/** Few enough that a step stays short where each entry has a condition of the model. */
const chunk = new Uint32Array(128);

/** A list of the tuples of a node that is still to be read, for the vertex that it belongs to. */
type Rest = {
  readonly vertex: number;
  readonly node: number;
  /** Relation on the objects of the list; -1: the usersets themselves; -2: it is a list of users. */
  readonly relation: number;
  readonly level: number;
  readonly isExcluding: boolean;
  cursor: number;
};
const USERS = -2;

/**
 * Everything that a userset rests on, without asking for anybody in particular: a vertex for each
 * userset and each operator below it, and the concrete users that tuples name. Usersets on exclude
 * sides are apart from the same ones elsewhere, for who is named only there holds nothing by name.
 *
 * A userset further away than the depth bound is not followed and counts as undecided, as in Check.
 */
export class SubjectGraph {
  /** Users (node, 0) in the order in which they were met: what others call a user's index. */
  readonly users = new PairTable(64);
  /** By a user's index: whether a tuple outside of exclude sides names the user. */
  readonly isNamed: boolean[] = [];
  readonly gate: Gate[] = [];
  readonly isUserset: boolean[] = [];
  /** What every user has at a vertex: the wildcard's value, CUT beyond the depth bound. */
  readonly base: Value[] = [];
  /** Edges: the vertex that reads, the one that is read, and how. */
  readonly edgeReader: number[] = [];
  readonly edgeOperand: number[] = [];
  readonly edgeRole: number[] = [];
  /** Tuples that name users: the vertex, and the user's index times 2, plus 1 for an undecided one. */
  readonly entryVertex: number[] = [];
  readonly entryUser: number[] = [];
  /** Something lies beyond the depth bound. */
  isTruncated = false;
  hasOperators = false;
  hasWeakEdges = false;
  readonly #scope: Scope;
  readonly #isAfter: (entity: number) => boolean;
  readonly #hasWildcards: boolean;
  readonly #keys = new PairTable();
  readonly #vertexOfKey: number[] = [];
  readonly #levelOfKey: number[] = [];
  readonly #rests: Rest[] = [];
  #rest: Rest | undefined;

  /** Users whose ids are not greater than `after`, in UTF-8 byte order, are left out; '' leaves out nobody. */
  constructor(scope: Scope, after: string) {
    this.#scope = scope;
    this.#isAfter = laterThan(scope.reader, EMPTY_NAME, after);
    this.#hasWildcards = scope.reader.reverseCount(WILDCARD_NODE) > 0;
  }

  /**
   * Reads what the userset rests on, nearest first; the root is vertex 0. Errors: BUDGET_EXHAUSTED.
   * Cost: a read for each userset and one for 64 entries of a list.
   */
  *build(entity: number, relation: number): Steps<void> {
    this.#userset(entity, relation, false, 1);
    for (let key = 0; key < this.#keys.size; key++) {
      this.#expand(key);
      yield;
      for (let rest = this.#rests.pop(); rest !== undefined; rest = this.#rests.pop()) {
        this.#readRest(rest);
        yield;
      }
    }
  }

  #expand(key: number): void {
    const { reader, model } = this.#scope;
    const vertex = this.#vertexOfKey[key] as number;
    const level = this.#levelOfKey[key] as number;
    const entity = this.#keys.firstOf(key);
    const relation = this.#keys.secondOf(key) >>> 1;
    if (level > this.#scope.depthMax) {
      this.isTruncated = true;
      this.#scope.backstops |= BACKSTOP_DEPTH;
      this.base[vertex] = CUT;
      return;
    }
    const program = model.programOf(reader.namespaceOf(entity), relation);
    const op = program === undefined ? THIS_OP : program.root;
    this.#operator(vertex, op, { entity, relation, level }, (this.#keys.secondOf(key) & 1) === 1);
  }

  /** Makes `vertex` the operator `op` of a userset. */
  #operator(
    vertex: number,
    op: Op,
    of: { readonly entity: number; readonly relation: number; readonly level: number },
    isExcluding: boolean,
  ): void {
    if (op.kind === OP_LEAF) {
      this.#leaf(vertex, op, of, isExcluding);
      return;
    }
    if (op.kind !== OP_UNION) {
      this.hasOperators = true;
      this.gate[vertex] = op.kind === OP_INTERSECTION ? ALL : BUT_NOT;
    }
    for (let i = 0; i < op.children.length; i++) {
      const isExclude = op.kind === OP_EXCLUSION && i === 1;
      const operand = this.#add(false);
      this.#connect(operand, vertex, isExclude ? EXCLUDE_ROLE : PLAIN_ROLE);
      this.#operator(operand, op.children[i] as Op, of, isExcluding || isExclude);
    }
  }

  #leaf(
    vertex: number,
    leaf: Op,
    of: { readonly entity: number; readonly relation: number; readonly level: number },
    isExcluding: boolean,
  ): void {
    const { reader } = this.#scope;
    const { entity, relation } = of;
    const level = of.level + 1;
    this.#scope.charge(1 + (leaf.walks.length >> 1));
    if (leaf.hasThis) {
      const node = reader.nodeId(entity, relation);
      if (node !== 0) {
        const wildcard = this.#hasWildcards ? this.#scope.edge(node, WILDCARD_NODE) : FALSE;
        if (wildcard > FALSE) this.base[vertex] = wildcard;
        // Of an exclude side nobody is listed by name, and there is nobody left to find.
        if (wildcard === TRUE && isExcluding) return;
        this.#readList({ vertex, node, relation: USERS, level, isExcluding, cursor: 0 });
        this.#readList({ vertex, node, relation: -1, level, isExcluding, cursor: 0 });
      }
    }
    for (const computed of leaf.computed) {
      this.#connect(this.#userset(entity, computed, isExcluding, level), vertex, PLAIN_ROLE);
    }
    for (let i = 0; i < leaf.walks.length; i += 2) {
      const node = reader.nodeId(entity, leaf.walks[i] as number);
      const walked = leaf.walks[i + 1] as number;
      if (node === 0) continue;
      this.#readList({ vertex, node, relation: walked, level, isExcluding, cursor: 0 });
    }
  }

  #readList(rest: Rest): void {
    const { reader } = this.#scope;
    const total =
      rest.relation === USERS ? reader.userCount(rest.node) : reader.setCount(rest.node);
    if (total === 0) return;
    this.#scope.charge(total >> ENTRIES_PER_READ_SHIFT);
    if (rest.relation === USERS && total > chunk.length) this.users.reserve(total);
    this.#rests.push(rest);
  }

  #readRest(rest: Rest): void {
    if (rest.relation === USERS) {
      this.#readUsers(rest);
      return;
    }
    this.#rest = rest;
    this.#scope.scanRest(rest.node, rest.relation, false, rest.cursor, this.#sink);
  }

  /** What `Scope.scanRest` tells of a list of usersets or objects. */
  readonly #sink = {
    onDirect: (): void => {
      throw new Error('assertion failed: a rest of a list holds usersets only');
    },
    onChild: (entity: number, relation: number, isWeak: boolean): void => {
      const { vertex, level, isExcluding } = this.#rest as Rest;
      const operand = this.#userset(entity, relation, isExcluding, level);
      this.#connect(operand, vertex, isWeak ? WEAK_ROLE : PLAIN_ROLE);
      if (isWeak) this.hasWeakEdges = true;
    },
    onRest: (_node: number, _relation: number, _withObjects: boolean, cursor: number): void => {
      this.#rests.push({ ...(this.#rest as Rest), cursor });
    },
  };

  #readUsers(rest: Rest): void {
    const { reader } = this.#scope;
    const { node, vertex, isExcluding } = rest;
    const count = reader.readUsers(node, rest.cursor, chunk, 0);
    rest.cursor = reader.nextCursor;
    if (rest.cursor >= 0) this.#rests.push(rest);
    const base = this.base[vertex];
    for (let i = 0; i < count; i++) {
      const entry = chunk[i] as number;
      const user = entry & EDGE_NODE_MASK;
      if (user === WILDCARD_NODE || !this.#isAfter(reader.entityOf(user))) continue;
      const value = this.#scope.entryValue(node, entry);
      if (value === FALSE) continue;
      const index = this.users.insert(user, 0);
      if (index === this.isNamed.length) this.isNamed.push(!isExcluding);
      else if (!isExcluding) this.isNamed[index] = true;
      if (base === TRUE || base === value) continue;
      this.entryVertex.push(vertex);
      this.entryUser.push(index * 2 + (value === CUT ? 1 : 0));
    }
  }

  #userset(entity: number, relation: number, isExcluding: boolean, level: number): number {
    const size = this.#keys.size;
    const key = this.#keys.insert(entity, relation * 2 + (isExcluding ? 1 : 0));
    if (key < size) return this.#vertexOfKey[key] as number;
    const vertex = this.#add(true);
    this.#vertexOfKey.push(vertex);
    this.#levelOfKey.push(level);
    return vertex;
  }

  #add(isUserset: boolean): number {
    this.gate.push(ANY);
    this.isUserset.push(isUserset);
    return this.base.push(FALSE) - 1;
  }

  #connect(operand: number, reader: number, role: number): void {
    this.edgeOperand.push(operand);
    this.edgeReader.push(reader);
    this.edgeRole.push(role);
  }
}
