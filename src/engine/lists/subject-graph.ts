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
import { UNDETERMINED, FALSE, type Scope, TRUE, type Value } from '../bound/scope.ts';
import type { Steps } from '../general/gate-system.ts';
import { laterThan } from './list-capacity.ts';
import type { ListedKind } from './listed-kind.ts';

/** How a vertex follows from its operands. */
export const ANY = 0;
const ALL = 1;
/** The operand in EXCLUDE_ROLE does not hold, and the other one does. */
const EXCLUSION = 2;
type GateVertex = 0 | 1 | 2;

/** How an operand is read. */
export const PLAIN_ROLE = 0;
/** Through a condition that could not be decided: it contributes UNDETERMINED at most. */
export const WEAK_ROLE = 1;
export const EXCLUDE_ROLE = 2;

const ENTRIES_PER_READ_SHIFT = 6;
/** Few enough that a step stays short where each entry has a condition of the model. */
const chunk = new Uint32Array(128);

/** A list of the tuples of a node that is still to be read, for the vertex that it belongs to. */
type GraphRest = {
  readonly vertex: number;
  readonly node: number;
  /** Relation on the objects of the list; -1: the usersets or objects themselves; -2: it is a list of users. */
  readonly relation: number;
  readonly level: number;
  readonly isExcluding: boolean;
  cursor: number;
};
const USER_LIST = -2;

/**
 * Everything that a userset rests on, without asking for anybody in particular: a vertex for each
 * userset and each operator below it, and the subjects of one kind that tuples name. Usersets on exclude
 * sides are apart from the same ones elsewhere, for who is named only there holds nothing by name.
 * Where usersets are listed each vertex of one holds that one, too.
 *
 * A userset further away than the depth bound is not followed and counts as undecided, as in Check. So do objects themselves,
 * which Check meets one further than what names them, for all who are no users.
 */
export class SubjectGraph {
  /** Subjects (entity, 0) in the order in which they were met: what others call a subject's index. */
  readonly subjects = new PairTable(64);
  /** By a subject's index: whether it is named outside of exclude sides. */
  readonly isNamed: boolean[] = [];
  readonly gate: GateVertex[] = [];
  readonly isUserset: boolean[] = [];
  /** Value of every subject of the kind at a vertex: the wildcard's value, UNDETERMINED beyond the depth bound. */
  readonly base: Value[] = [];
  /** Edges: the vertex that reads, the one that is read, and how. */
  readonly edgeReader: number[] = [];
  readonly edgeOperand: number[] = [];
  readonly edgeRole: number[] = [];
  /** Entries that name subjects: the vertex, and the subject's index times 2, plus 1 for an undecided tuple. */
  readonly entryVertex: number[] = [];
  readonly entrySubject: number[] = [];
  /** Whether a userset is beyond the depth bound. */
  isTruncated = false;
  hasOperators = false;
  hasWeakEdges = false;
  readonly #scope: Scope;
  readonly #isAfter: (entity: number) => boolean;
  readonly #kind: ListedKind;
  readonly #isOfUsers: boolean;
  /** Node of the wildcard that holds every subject of the kind; 0 where no tuple has it. */
  readonly #wildcard: number;
  readonly #keys = new PairTable();
  readonly #vertexOfKey: number[] = [];
  readonly #levelOfKey: number[] = [];
  readonly #rests: GraphRest[] = [];
  #rest: GraphRest | undefined;

  /** Subjects whose ids are not greater than `after`, in UTF-8 byte order, are left out; '' leaves out nobody. */
  constructor(scope: Scope, kind: ListedKind, after: string) {
    const { reader } = scope;
    this.#scope = scope;
    this.#kind = kind;
    this.#isOfUsers = kind.namespace === EMPTY_NAME;
    this.#isAfter = laterThan(reader, kind.namespace, after);
    const wildcard = this.#isOfUsers
      ? WILDCARD_NODE
      : reader.nodeId(kind.wildcardEntity, EMPTY_NAME);
    this.#wildcard = reader.reverseCount(wildcard) > 0 ? wildcard : 0;
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
      this.base[vertex] = UNDETERMINED;
      return;
    }
    const program = model.programOf(reader.namespaceOf(entity), relation);
    const op = program === undefined ? THIS_OP : program.root;
    const isExcluding = (this.#keys.secondOf(key) & 1) === 1;
    const of = { entity, relation, level };
    if (!this.#isOfKind(entity, relation)) {
      this.#operator(vertex, op, of, isExcluding);
      return;
    }
    // The userset holds itself besides what its rewrite makes it hold.
    if (this.#isAfter(entity)) this.#name(entity, vertex, TRUE, isExcluding);
    const operand = this.#add(false);
    this.#connect(operand, vertex, PLAIN_ROLE);
    this.#operator(operand, op, of, isExcluding);
  }

  /** Whether a userset, or an object itself, is of the kind that is listed. */
  #isOfKind(entity: number, relation: number): boolean {
    if (this.#isOfUsers || relation !== this.#kind.relation) return false;
    return this.#scope.reader.namespaceOf(entity) === this.#kind.namespace;
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
      this.gate[vertex] = op.kind === OP_INTERSECTION ? ALL : EXCLUSION;
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
        const wildcard = this.#wildcardAt(node, level);
        if (wildcard > FALSE) this.base[vertex] = wildcard;
        // An exclude side lists no names, and the wildcard already covers every user.
        if (wildcard === TRUE && isExcluding) return;
        const users = { vertex, node, relation: USER_LIST, level, isExcluding, cursor: 0 };
        if (this.#isOfUsers) this.#readList(users);
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

  /** Value of the wildcard of the kind at a node. A typed one is met where objects themselves are. */
  #wildcardAt(node: number, level: number): Value {
    if (this.#wildcard === 0 || (!this.#isOfUsers && level > this.#scope.depthMax)) return FALSE;
    return this.#scope.edge(node, this.#wildcard);
  }

  #readList(rest: GraphRest): void {
    const { reader } = this.#scope;
    const total =
      rest.relation === USER_LIST ? reader.userCount(rest.node) : reader.setCount(rest.node);
    if (total === 0) return;
    this.#scope.charge(total >> ENTRIES_PER_READ_SHIFT);
    if (rest.relation === USER_LIST && total > chunk.length) this.subjects.reserve(total);
    this.#rests.push(rest);
  }

  #readRest(rest: GraphRest): void {
    if (rest.relation === USER_LIST) {
      this.#readUsers(rest);
      return;
    }
    this.#rest = rest;
    const withObjects = rest.relation === -1 && !this.#isOfUsers;
    this.#scope.scanRest(rest.node, rest.relation, withObjects, rest.cursor, this.#sink);
  }

  /** Callbacks for `Scope.scanRest` of a list of usersets or objects. */
  readonly #sink = {
    onDirect: (): void => {
      throw new Error('assertion failed: a rest of a list holds usersets only');
    },
    onChild: (entity: number, relation: number, isWeak: boolean): void => {
      const { vertex, level, isExcluding } = this.#rest as GraphRest;
      if (relation === EMPTY_NAME) {
        this.#object(entity, isWeak);
        return;
      }
      const operand = this.#userset(entity, relation, isExcluding, level);
      this.#connect(operand, vertex, isWeak ? WEAK_ROLE : PLAIN_ROLE);
      if (isWeak) this.hasWeakEdges = true;
    },
    onRest: (_node: number, _relation: number, _withObjects: boolean, cursor: number): void => {
      this.#rests.push({ ...(this.#rest as GraphRest), cursor });
    },
  };

  /** An object itself, or a typed wildcard, in a list. */
  #object(entity: number, isWeak: boolean): void {
    const { vertex, level, isExcluding } = this.#rest as GraphRest;
    if (level > this.#scope.depthMax) {
      this.isTruncated = true;
      this.#scope.backstops |= BACKSTOP_DEPTH;
      if (this.base[vertex] === FALSE) this.base[vertex] = UNDETERMINED;
    } else if (this.#isOfKind(entity, EMPTY_NAME) && this.#isAfter(entity)) {
      this.#name(entity, vertex, isWeak ? UNDETERMINED : TRUE, isExcluding);
    }
  }

  /** Notes a subject that is named at a vertex. */
  #name(entity: number, vertex: number, value: Value, isExcluding: boolean): void {
    if (value === FALSE) return;
    const index = this.subjects.insert(entity, 0);
    if (index === this.isNamed.length) this.isNamed.push(!isExcluding);
    else if (!isExcluding) this.isNamed[index] = true;
    const base = this.base[vertex];
    if (base === TRUE || base === value) return;
    this.entryVertex.push(vertex);
    this.entrySubject.push(index * 2 + (value === UNDETERMINED ? 1 : 0));
  }

  #readUsers(rest: GraphRest): void {
    const { reader } = this.#scope;
    const { node, vertex, isExcluding } = rest;
    const count = reader.readUsers(node, rest.cursor, chunk, 0);
    rest.cursor = reader.nextCursor;
    if (rest.cursor >= 0) this.#rests.push(rest);
    for (let i = 0; i < count; i++) {
      const entry = chunk[i] as number;
      const user = entry & EDGE_NODE_MASK;
      if (user === WILDCARD_NODE) continue;
      const entity = reader.entityOf(user);
      // A condition costs more than a comparison.
      if (!this.#isAfter(entity)) continue;
      this.#name(entity, vertex, this.#scope.entryValue(node, entry), isExcluding);
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
