import { OP_EXCLUSION, OP_INTERSECTION, OP_LEAF, type Op, THIS_OP } from '../bound/bound-model.ts';
import { PairTable } from '../bound/pair-table.ts';
import { FALSE, type Scope, type Target, TRUE, type Value } from '../bound/scope.ts';
import { CheckRun } from '../general/check-run.ts';
import type { Steps } from '../general/gate-system.ts';
import { type EdgeIds, type LeafVisitor, walkLeaf } from './leaf-walk.ts';
import { keepProof, type Proof } from './proof.ts';

/** Combinations of operands' proofs that are tried when one of them gets a new one. */
const COMBINATIONS_MAX = 64;

type Reader = {
  readonly vertex: Vertex;
  /** Which operand of the reader this is. */
  readonly operand: number;
  /** Of a leaf: the tuple through which it reads, and what kind of step that is. */
  readonly tuple: EdgeIds | null;
  readonly isWalk: boolean;
};

type Vertex = {
  readonly kind: 'pass' | 'leaf' | 'all' | 'butNot';
  readonly entity: number;
  readonly relation: number;
  /** Usersets on the shortest path from the root, its own included. */
  readonly level: number;
  readonly op: Op | null;
  readonly operands: Vertex[];
  readonly readers: Reader[];
  readonly proofs: Proof[];
  /** Of an exclusion: levels that the refutation of what it excludes needs; Infinity: it is not refuted. */
  refutedNeed: number | undefined;
};

/** What a search starts at: a userset, or one operand of its rewrite. */
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
export class DerivationSearch {
  /** When tuples expire on which refutations may rest, in milliseconds since the epoch. */
  readonly refutationExpiries = new Set<number>();
  readonly #scope: Scope;
  readonly #target: Target;
  readonly #root: SearchRoot;
  #excludes: CheckRun | undefined;
  readonly #keys = new PairTable();
  readonly #usersets: Vertex[] = [];
  readonly #pending: { readonly vertex: Vertex; readonly proof: Proof }[] = [];
  #rootVertex: Vertex | undefined;

  constructor(scope: Scope, target: Target, root: SearchRoot) {
    this.#scope = scope;
    this.#target = target;
    this.#root = root;
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
      this.#rootVertex = yield* this.#operator(op, entity, relation, 1);
      yield* this.#settle();
    }
    for (let next = 0; next < this.#usersets.length; next++) {
      const vertex = this.#usersets[next] as Vertex;
      if (vertex.level > this.#root.levelMax || this.#isEnough(vertex.level)) break;
      yield* this.#expand(vertex);
      yield* this.#settle();
      yield;
    }
    return this.best;
  }

  /** Whether nothing that leads through usersets of this level could be better. */
  #isEnough(level: number): boolean {
    const { best } = this;
    if (best === undefined || best.size > level) return false;
    return best.size < level || best.holdsUntilMs === Number.POSITIVE_INFINITY;
  }

  *#expand(vertex: Vertex): Steps<void> {
    const { entity, relation, level } = vertex;
    const { reader, model } = this.#scope;
    const target = this.#target;
    if (entity === target.setEntity && relation === target.setRelation && entity !== 0) {
      this.#offer(vertex, proofOf(vertex, 'identity', null, Number.POSITIVE_INFINITY, []));
      return;
    }
    const program = model.programOf(reader.namespaceOf(entity), relation);
    const op = program === undefined ? THIS_OP : program.root;
    const root = yield* this.#operator(op, entity, relation, level);
    this.#connect(root, vertex, 0);
  }

  *#operator(op: Op, entity: number, relation: number, level: number): Steps<Vertex> {
    if (op.kind === OP_LEAF) {
      const leaf = this.#vertex('leaf', entity, relation, level, op);
      const target = this.#target;
      const { isExcluding } = this.#root;
      const place = { entity, relation, leaf: op, target, isExcluding };
      yield* walkLeaf(this.#scope, place, this.#visitorOf(leaf));
      return leaf;
    }
    const kind = op.kind === OP_INTERSECTION ? 'all' : op.kind === OP_EXCLUSION ? 'butNot' : 'pass';
    const vertex = this.#vertex(kind, entity, relation, level, op);
    const children = kind === 'butNot' ? op.children.slice(0, 1) : op.children;
    for (const [index, child] of children.entries()) {
      const operand = yield* this.#operator(child, entity, relation, level);
      vertex.operands.push(operand);
      this.#connect(operand, vertex, index);
    }
    return vertex;
  }

  #visitorOf(leaf: Vertex): LeafVisitor {
    const target = this.#target;
    const directProof = (tuple: EdgeIds, need: number): void => {
      const proof = proofOf(leaf, 'direct', tuple, this.#expiryOf(tuple), []);
      this.#offer(leaf, { ...proof, need });
    };
    return {
      onDirect: (tuple, value) => {
        if (value === TRUE) directProof(tuple, 1);
      },
      onChild: (entity, relation, tuple, value: Value, isWalk) => {
        if (value !== TRUE) return;
        const isTarget = entity === target.setEntity && relation === target.setRelation;
        if (isTarget && tuple !== null && !isWalk) {
          // The evaluation counts the target as a userset of its own.
          directProof(tuple, 2);
          return;
        }
        const child = this.#userset(entity, relation, leaf.level + 1);
        const reader = { vertex: leaf, operand: 0, tuple, isWalk };
        child.readers.push(reader);
        for (const proof of child.proofs) this.#offerStep(reader, proof);
      },
    };
  }

  #userset(entity: number, relation: number, level: number): Vertex {
    const index = this.#keys.insert(entity, relation);
    const known = this.#usersets[index];
    if (known !== undefined) return known;
    const vertex = this.#vertex('pass', entity, relation, level, null);
    this.#usersets.push(vertex);
    return vertex;
  }

  #vertex(
    kind: Vertex['kind'],
    entity: number,
    relation: number,
    level: number,
    op: Op | null,
  ): Vertex {
    const lists = { operands: [], readers: [], proofs: [] };
    return { kind, entity, relation, level, op, ...lists, refutedNeed: undefined };
  }

  #connect(operand: Vertex, vertex: Vertex, index: number): void {
    operand.readers.push({ vertex, operand: index, tuple: null, isWalk: false });
    // Offers that were made before there was a reader are not yet settled, so none is lost.
  }

  #offer(vertex: Vertex, proof: Proof): void {
    this.#pending.push({ vertex, proof });
  }

  /** Spreads what was offered until nothing better follows from it. */
  *#settle(): Steps<void> {
    const { levelMax } = this.#root;
    for (let next = 0; next < this.#pending.length; next++) {
      const { vertex, proof } = this.#pending[next] as { vertex: Vertex; proof: Proof };
      const above = vertex.level - 1;
      const { best } = this;
      if (proof.need + above > levelMax) continue;
      if (best !== undefined && proof.size + above > best.size) continue;
      if (!keepProof(vertex.proofs, proof)) continue;
      for (const reader of vertex.readers) yield* this.#read(reader, proof);
      if (next % 64 === 63) yield;
    }
    this.#pending.length = 0;
  }

  *#read(reader: Reader, proof: Proof): Steps<void> {
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
        vertex.refutedNeed ??= yield* this.#refute(vertex);
        if (vertex.refutedNeed === Number.POSITIVE_INFINITY) return;
        const step = proofOf(vertex, 'exclusion', null, Number.POSITIVE_INFINITY, [proof]);
        const need = Math.max(proof.need, vertex.refutedNeed);
        this.#offer(vertex, { ...step, need, refuted: vertex.op?.children[1] ?? null });
      }
    }
  }

  #offerStep(reader: Reader, proof: Proof): void {
    const { vertex, tuple, isWalk } = reader;
    const step = tuple === null ? 'computed' : isWalk ? 'tupleToUserset' : 'userset';
    const holdsUntilMs = tuple === null ? Number.POSITIVE_INFINITY : this.#expiryOf(tuple);
    const above = proofOf(vertex, step, tuple, holdsUntilMs, [proof]);
    this.#offer(vertex, { ...above, need: proof.need + 1 });
  }

  #offerCombinations(vertex: Vertex, operand: number, proof: Proof): void {
    let combinations: readonly Proof[][] = [[]];
    for (const [index, one] of vertex.operands.entries()) {
      const choices = index === operand ? [proof] : one.proofs;
      combinations = combinations
        .flatMap((some) => choices.map((choice) => [...some, choice]))
        .slice(0, COMBINATIONS_MAX);
    }
    for (const children of combinations) {
      const step = proofOf(vertex, 'intersection', null, Number.POSITIVE_INFINITY, children);
      this.#offer(vertex, { ...step, need: Math.max(...children.map((child) => child.need)) });
    }
  }

  *#refute(vertex: Vertex): Steps<number> {
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

function proofOf(
  vertex: Vertex,
  step: Proof['step'],
  tuple: EdgeIds | null,
  holdsUntilMs: number,
  children: readonly Proof[],
): Proof {
  const { entity, relation } = vertex;
  return {
    size: children.reduce((size, child) => size + child.size, 1),
    need: 1,
    holdsUntilMs: children.reduce((ms, child) => Math.min(ms, child.holdsUntilMs), holdsUntilMs),
    step,
    entity,
    relation,
    tuple,
    children,
    refuted: null,
  };
}
