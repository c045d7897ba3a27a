import type { Rewrite } from '../../model/namespace/model-shape.ts';
import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import { PairTable } from './pair-table.ts';

/** Operators of a compiled rewrite. Unions of leaves are merged into one leaf. */
export const OP_LEAF = 0;
export const OP_UNION = 1;
export const OP_INTERSECTION = 2;
export const OP_EXCLUSION = 3;

/** One operator; names are name ids of the reader. */
export type Op = {
  readonly kind: 0 | 1 | 2 | 3;
  /** Leaf: whether the relation's own stored tuples count. */
  readonly hasThis: boolean;
  /** Leaf: relations on the same object. */
  readonly computed: Int32Array;
  /** Leaf: pairs (tupleset relation, relation on the referenced object). */
  readonly walks: Int32Array;
  /** Union and intersection: the operands. Exclusion: include, exclude. */
  readonly children: readonly Op[];
};

/** The compiled rewrite of one relation of one namespace. */
export type Program = {
  readonly namespace: number;
  readonly relation: number;
  readonly root: Op;
  /** Only unions: evaluated as plain reachability. */
  readonly isSimple: boolean;
  /**
   * Leaves of which at least one must hold whenever the relation holds: all of a union, one child
   * of an intersection, the include side of an exclusion. Backward walks and candidates use it.
   */
  readonly positive: Op;
  /** All leaves but those of exclude sides: where a member can be stored as a concrete user. */
  readonly mentioning: Op;
};

/** A relation that follows from another one on the same object. */
export type ComputedUse = { readonly relation: number; readonly isSimple: boolean };
/** A relation that follows from another one on an object referenced by `tupleset`. */
export type WalkUse = {
  readonly namespace: number;
  readonly tupleset: number;
  readonly relation: number;
  readonly isSimple: boolean;
};

const NONE = new Int32Array(0);
/** The program of everything that the model does not name. */
export const THIS_OP: Op = {
  kind: OP_LEAF,
  hasThis: true,
  computed: NONE,
  walks: NONE,
  children: [],
};

/**
 * A namespace model compiled against the name ids of one reader. Names are pinned in the index,
 * so the compiled form is valid for the life of the index. Built once per shard and model version;
 * cost O(model).
 */
export class BoundModel {
  readonly programs: Program[] = [];
  readonly #programIndex = new PairTable(64);
  readonly #computedUses = new Map<number, Map<number, ComputedUse[]>>();
  readonly #walkUses = new Map<number, WalkUse[]>();

  constructor(model: NamespaceModel, reader: TupleReader) {
    for (const [namespaceName, relations] of model.namespaces) {
      const namespace = reader.pinName(namespaceName);
      for (const [relationName, rewrite] of relations) {
        this.#add(namespace, reader.pinName(relationName), compileOp(rewrite, reader));
      }
    }
  }

  /** The program of a relation, or undefined: this(). Hot; one hash probe, does not allocate. */
  programOf(namespace: number, relation: number): Program | undefined {
    const slot = this.#programIndex.indexOf(namespace, relation);
    return slot < 0 ? undefined : this.programs[slot];
  }

  /** Relations of `namespace` whose positive leaves hold computed(relation). */
  computedUses(namespace: number, relation: number): readonly ComputedUse[] {
    return this.#computedUses.get(namespace)?.get(relation) ?? [];
  }

  /** Relations of any namespace whose positive leaves walk to `relation` on a referenced object. */
  walkUses(relation: number): readonly WalkUse[] {
    return this.#walkUses.get(relation) ?? [];
  }

  #add(namespace: number, relation: number, root: Op): void {
    const isSimple = root.kind === OP_LEAF;
    const positive = positiveLeaf(root);
    const mentioning = mentioningLeaf(root);
    this.#programIndex.insert(namespace, relation);
    this.programs.push({ namespace, relation, root, isSimple, positive, mentioning });
    for (const used of positive.computed) {
      const ofNamespace = getOrAdd(this.#computedUses, namespace, () => new Map());
      getOrAdd(ofNamespace, used, () => []).push({ relation, isSimple });
    }
    for (let i = 0; i < positive.walks.length; i += 2) {
      const use = { namespace, tupleset: positive.walks[i] as number, relation, isSimple };
      getOrAdd(this.#walkUses, positive.walks[i + 1] as number, () => []).push(use);
    }
  }
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

function compileOp(rewrite: Rewrite, reader: TupleReader): Op {
  switch (rewrite.op) {
    case 'this':
      return THIS_OP;
    case 'computed':
      return {
        ...THIS_OP,
        hasThis: false,
        computed: Int32Array.of(reader.pinName(rewrite.relation)),
      };
    case 'tupleToUserset': {
      const walks = Int32Array.of(
        reader.pinName(rewrite.tupleset),
        reader.pinName(rewrite.computed),
      );
      return { ...THIS_OP, hasThis: false, walks };
    }
    case 'union':
      return compileUnion(rewrite.children.map((child) => compileOp(child, reader)));
    case 'intersection': {
      const children = rewrite.children.map((child) => compileOp(child, reader));
      return children.length === 1 ? (children[0] as Op) : operator(OP_INTERSECTION, children);
    }
    case 'exclusion':
      return operator(OP_EXCLUSION, [
        compileOp(rewrite.include, reader),
        compileOp(rewrite.exclude, reader),
      ]);
  }
}

function operator(kind: Op['kind'], children: readonly Op[]): Op {
  return { kind, hasThis: false, computed: NONE, walks: NONE, children };
}

/** Merges the leaves of nested unions; operands of other kinds follow the merged leaf. */
function compileUnion(operands: readonly Op[]): Op {
  const flat = operands.flatMap((op) => (op.kind === OP_UNION ? op.children : [op]));
  const leaves = flat.filter((op) => op.kind === OP_LEAF);
  const others = flat.filter((op) => op.kind !== OP_LEAF);
  const children = leaves.length === 0 ? others : [mergeLeaves(leaves), ...others];
  return children.length === 1 ? (children[0] as Op) : operator(OP_UNION, children);
}

function mergeLeaves(leaves: readonly Op[]): Op {
  const computed = new Set<number>();
  const walks = new Map<string, readonly [number, number]>();
  for (const leaf of leaves) {
    for (const relation of leaf.computed) computed.add(relation);
    for (let i = 0; i < leaf.walks.length; i += 2) {
      const walk = [leaf.walks[i] as number, leaf.walks[i + 1] as number] as const;
      walks.set(walk.join(), walk);
    }
  }
  return {
    kind: OP_LEAF,
    hasThis: leaves.some((leaf) => leaf.hasThis),
    computed: Int32Array.from(computed),
    walks: Int32Array.from([...walks.values()].flat()),
    children: [],
  };
}

function positiveLeaf(op: Op): Op {
  switch (op.kind) {
    case OP_LEAF:
      return op;
    case OP_UNION:
      return mergeLeaves(op.children.map(positiveLeaf));
    case OP_INTERSECTION:
      return op.children.map(positiveLeaf).reduce(narrower);
    case OP_EXCLUSION:
      return positiveLeaf(op.children[0] as Op);
  }
}

function mentioningLeaf(op: Op): Op {
  if (op.kind === OP_LEAF) return op;
  if (op.kind === OP_EXCLUSION) return mentioningLeaf(op.children[0] as Op);
  return mergeLeaves(op.children.map(mentioningLeaf));
}

/** The one of two necessary leaves that is likely to hold for fewer objects. */
function narrower(a: Op, b: Op): Op {
  return breadth(b) < breadth(a) ? b : a;
}

function breadth(leaf: Op): number {
  return leaf.walks.length * 4 + leaf.computed.length * 2 + (leaf.hasThis ? 1 : 0);
}
