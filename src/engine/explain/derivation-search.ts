import { OP_EXCLUSION, OP_INTERSECTION, OP_LEAF, type Op, THIS_OP } from '../bound/bound-model.ts';
import type { PairTable } from '../bound/pair-table.ts';
import { FALSE, type Scope, type Target, TRUE, type Value } from '../bound/scope.ts';
import { CheckRun } from '../general/check-run.ts';
import type { Steps } from '../general/gate-system.ts';
import { type EdgeIds, type LeafVisitor, LeafWalk } from './leaf-walk.ts';
import { keepProof, type Proof } from './proof.ts';

/** Combinations of operands' proofs that are tried when one of them gets a new one. */
const COMBINATIONS_MAX = 64;
/** Usersets that are read between two yields: some ten microseconds. */
const USERSETS_PER_YIELD = 4;

const NO_PROOFS: readonly Proof[] = [];
const NO_VERTICES: SearchVertex[] = [];

type Reader = {
  readonly vertex: SearchVertex;
  /** Which operand of the reader this is. */
  readonly operand: number;
  /** The tuple through which a leaf reads, and what kind of step that is. */
  readonly tuple: EdgeIds | null;
  readonly isWalk: boolean;
};

type SearchVertex = {
  readonly kind: 'pass' | 'leaf' | 'all' | 'butNot';
  readonly entity: number;
  readonly relation: number;
  /** Usersets on the shortest path from the root, its own included. */
  readonly level: number;
  readonly op: Op | null;
  readonly operands: SearchVertex[];
  readonly readers: Reader[];
  readonly proofs: Proof[];
  /** Levels that the refutation of an exclusion's excluded side needs; Infinity: it is not refuted. */
  refutedNeed: number | undefined;
};

/** Start of a search: a userset, or one operand of its rewrite. */
export type SearchRoot = {
  readonly entity: number;
  readonly relation: number;
  readonly op?: Op | undefined;
  readonly isExcluding: boolean;
  /** Usersets that a path may have. */
  readonly levelMax: number;
};

/**
 * The smallest derivation of a userset by the number of its nodes, of those the one that holds longest.
 * Usersets are read nearest first, and no farther than a smaller derivation could reach; proofs
 * spread back from tuples that name the target (as in Knuth's generalisation of Dijkstra's algorithm,
 * 1977, but corrected as more is read). Of each userset the smallest proofs are kept, larger ones only
 * where they need less depth. What is excluded is refuted by the evaluation itself.
 */
export class DerivationSearch implements LeafVisitor {
  /** When tuples expire on which refutations may rest, in milliseconds since the epoch. */
  readonly refutationExpiries = new Set<number>();
  readonly #scope: Scope;
  readonly #target: Target;
  readonly #root: SearchRoot;
  #excludes: CheckRun | undefined;
  readonly #keys: PairTable;
  readonly #usersets: SearchVertex[] = [];
  /** Offers: of each the vertex, and its proof at the same index. */
  readonly #pendingVertices: SearchVertex[] = [];
  readonly #pendingProofs: Proof[] = [];
  /** Leaves of the userset that is expanded, in the order of its rewrite. */
  readonly #leaves: SearchVertex[] = [];
  /** The one that is walked. */
  #leaf: SearchVertex | undefined;
  readonly #walk: LeafWalk;
  #rootVertex: SearchVertex | undefined;

  /** `keys`: an empty table, the search's own from now on. */
  constructor(scope: Scope, target: Target, root: SearchRoot, keys: PairTable) {
    this.#scope = scope;
    this.#target = target;
    this.#root = root;
    this.#keys = keys;
    this.#walk = new LeafWalk(scope, target, this);
  }

  /** The smallest that was found so far. */
  get best(): Proof | undefined {
    return this.#rootVertex?.proofs[0];
  }

  /** Searches to the end; undefined if nothing derives it. Errors: BUDGET_EXHAUSTED. */
  *search(): Steps<Proof | undefined> {
    const { entity, relation, op } = this.#root;
    if (op === undefined) {
      this.#rootVertex = this.#userset(entity, relation, 1);
    } else {
      this.#rootVertex = this.#operator(op, entity, relation, 1);
      if (this.#walkLeaves()) yield* this.#walkOn();
      if (this.#pendingVertices.length > 0) yield* this.#settle();
    }
    for (let next = 0; next < this.#usersets.length; next++) {
      const vertex = this.#usersets[next] as SearchVertex;
      if (vertex.level > this.#root.levelMax || this.#isEnough(vertex.level)) break;
      this.#expand(vertex);
      if (this.#walkLeaves()) yield* this.#walkOn();
      if (this.#pendingVertices.length > 0) yield* this.#settle();
      if (next % USERSETS_PER_YIELD === USERSETS_PER_YIELD - 1) yield;
    }
    return this.best;
  }

  /** Whether nothing that leads through usersets of this level could be better. */
  #isEnough(level: number): boolean {
    const { best } = this;
    if (best === undefined || best.size > level) return false;
    return best.size < level || best.holdsUntilMs === Number.POSITIVE_INFINITY;
  }

  /** Its leaves are to be walked then. */
  #expand(vertex: SearchVertex): void {
    const { entity, relation, level } = vertex;
    const { reader, model } = this.#scope;
    const target = this.#target;
    if (this.#scope.isTarget(target, entity, relation, this.#root.isExcluding)) {
      this.#offer(vertex, proofOf(vertex, 'identity', null, Number.POSITIVE_INFINITY, NO_PROOFS));
      return;
    }
    const program = model.programOf(reader.namespaceOf(entity), relation);
    const op = program === undefined ? THIS_OP : program.root;
    connect(this.#operator(op, entity, relation, level), vertex, 0);
  }

  #operator(op: Op, entity: number, relation: number, level: number): SearchVertex {
    if (op.kind === OP_LEAF) {
      const leaf = vertexOf('leaf', entity, relation, level, op);
      this.#leaves.push(leaf);
      return leaf;
    }
    const kind = op.kind === OP_INTERSECTION ? 'all' : op.kind === OP_EXCLUSION ? 'butNot' : 'pass';
    const vertex = vertexOf(kind, entity, relation, level, op);
    const count = kind === 'butNot' ? 1 : op.children.length;
    for (let index = 0; index < count; index++) {
      const operand = this.#operator(op.children[index] as Op, entity, relation, level);
      vertex.operands.push(operand);
      connect(operand, vertex, index);
    }
    return vertex;
  }

  /** Walks the leaves that wait; whether a long list is to be walked on. Errors: BUDGET_EXHAUSTED. */
  #walkLeaves(): boolean {
    const { isExcluding } = this.#root;
    for (;;) {
      const leaf = this.#leaves.shift();
      if (leaf === undefined) return false;
      this.#leaf = leaf;
      if (this.#walk.start(leaf.entity, leaf.relation, leaf.op as Op, isExcluding)) return true;
    }
  }

  *#walkOn(): Steps<void> {
    do {
      do yield;
      while (this.#walk.step());
    } while (this.#walkLeaves());
  }

  onDirect(tuple: EdgeIds, value: Value): void {
    if (value === TRUE) this.#offerDirect(this.#leaf as SearchVertex, tuple, 1);
  }

  onChild(
    entity: number,
    relation: number,
    tuple: EdgeIds | null,
    value: Value,
    isWalk: boolean,
  ): void {
    if (value !== TRUE) return;
    const leaf = this.#leaf as SearchVertex;
    const { isExcluding } = this.#root;
    const isTarget = this.#scope.isTarget(this.#target, entity, relation, isExcluding);
    if (isTarget && tuple !== null && !isWalk) {
      // The evaluation counts the target as a userset of its own.
      this.#offerDirect(leaf, tuple, 2);
      return;
    }
    const child = this.#userset(entity, relation, leaf.level + 1);
    const reader = { vertex: leaf, operand: 0, tuple, isWalk };
    child.readers.push(reader);
    for (const proof of child.proofs) this.#offerStep(reader, proof);
  }

  #userset(entity: number, relation: number, level: number): SearchVertex {
    const index = this.#keys.insert(entity, relation);
    const known = this.#usersets[index];
    if (known !== undefined) return known;
    const vertex = vertexOf('pass', entity, relation, level, null);
    this.#usersets.push(vertex);
    return vertex;
  }

  #offer(vertex: SearchVertex, proof: Proof): void {
    this.#pendingVertices.push(vertex);
    this.#pendingProofs.push(proof);
  }

  #offerDirect(leaf: SearchVertex, tuple: EdgeIds, need: number): void {
    this.#offer(leaf, proofOf(leaf, 'direct', tuple, this.#expiryOf(tuple), NO_PROOFS, need));
  }

  /** Spreads what was offered until nothing better follows from it. */
  *#settle(): Steps<void> {
    const { levelMax } = this.#root;
    for (let next = 0; next < this.#pendingVertices.length; next++) {
      const vertex = this.#pendingVertices[next] as SearchVertex;
      const proof = this.#pendingProofs[next] as Proof;
      const above = vertex.level - 1;
      const { best } = this;
      if (proof.need + above > levelMax) continue;
      if (best !== undefined && proof.size + above > best.size) continue;
      if (!keepProof(vertex.proofs, proof)) continue;
      for (const reader of vertex.readers) {
        const gate = reader.vertex;
        if (gate.kind === 'butNot') gate.refutedNeed ??= yield* this.#refute(gate);
        this.#read(reader, proof);
      }
      if (next % 64 === 63) yield;
    }
    this.#pendingVertices.length = 0;
    this.#pendingProofs.length = 0;
  }

  #read(reader: Reader, proof: Proof): void {
    const { vertex } = reader;
    switch (vertex.kind) {
      case 'pass':
        this.#offer(vertex, proof);
        return;
      case 'leaf':
        this.#offerStep(reader, proof);
        return;
      case 'all':
        this.#offerCombinations(vertex, reader.operand, proof);
        return;
      case 'butNot': {
        const { refutedNeed = Number.POSITIVE_INFINITY, op } = vertex;
        if (refutedNeed === Number.POSITIVE_INFINITY) return;
        const need = Math.max(proof.need, refutedNeed);
        const step = proofOf(vertex, 'exclusion', null, Number.POSITIVE_INFINITY, [proof], need);
        this.#offer(vertex, { ...step, refuted: op?.children[1] ?? null });
      }
    }
  }

  #offerStep(reader: Reader, proof: Proof): void {
    const { vertex, tuple, isWalk } = reader;
    const step = tuple === null ? 'computed' : isWalk ? 'tupleToUserset' : 'userset';
    const holdsUntilMs = tuple === null ? Number.POSITIVE_INFINITY : this.#expiryOf(tuple);
    this.#offer(vertex, proofOf(vertex, step, tuple, holdsUntilMs, [proof], proof.need + 1));
  }

  #offerCombinations(vertex: SearchVertex, operand: number, proof: Proof): void {
    let combinations: readonly Proof[][] = [[]];
    for (const [index, one] of vertex.operands.entries()) {
      const choices = index === operand ? [proof] : one.proofs;
      combinations = combinations
        .flatMap((some) => choices.map((choice) => [...some, choice]))
        .slice(0, COMBINATIONS_MAX);
    }
    for (const children of combinations) {
      const need = Math.max(...children.map((child) => child.need));
      const until = Number.POSITIVE_INFINITY;
      this.#offer(vertex, proofOf(vertex, 'intersection', null, until, children, need));
    }
  }

  *#refute(vertex: SearchVertex): Steps<number> {
    const { entity, relation, op, level } = vertex;
    const exclude = op?.children[1];
    if (exclude === undefined) throw new Error('assertion failed: an exclusion has two operands');
    const levelMax = this.#root.levelMax - level + 1;
    this.#scope.notedExpiries = this.refutationExpiries;
    const run = (this.#excludes ??= new CheckRun(this.#scope, this.#target));
    run.startOperand({ entity, relation }, exclude, true, levelMax);
    while (run.run(0) === 'more') yield;
    this.#scope.notedExpiries = undefined;
    const { value, height } = run.outcome;
    return value === FALSE ? height + 1 : Number.POSITIVE_INFINITY;
  }

  #expiryOf({ node, subject }: EdgeIds): number {
    const { reader } = this.#scope;
    return reader.edge(node, subject) === 1
      ? Number.POSITIVE_INFINITY
      : reader.qualifier(node, subject).expiresAtMs;
  }
}

function vertexOf(
  kind: SearchVertex['kind'],
  entity: number,
  relation: number,
  level: number,
  op: Op | null,
): SearchVertex {
  return {
    kind,
    entity,
    relation,
    level,
    op,
    operands: kind === 'leaf' || op === null ? NO_VERTICES : [],
    readers: [],
    proofs: [],
    refutedNeed: undefined,
  };
}

/** Offers that were made before there was a reader are not yet settled, so none is lost. */
function connect(operand: SearchVertex, vertex: SearchVertex, index: number): void {
  operand.readers.push({ vertex, operand: index, tuple: null, isWalk: false });
}

function proofOf(
  { entity, relation }: SearchVertex,
  step: Proof['step'],
  tuple: EdgeIds | null,
  ownUntilMs: number,
  children: readonly Proof[],
  need = 1,
): Proof {
  let size = 1;
  let holdsUntilMs = ownUntilMs;
  for (const child of children) {
    size += child.size;
    if (child.holdsUntilMs < holdsUntilMs) holdsUntilMs = child.holdsUntilMs;
  }
  return { size, need, holdsUntilMs, step, entity, relation, tuple, children, refuted: null };
}
