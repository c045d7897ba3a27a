import type { TupleReader } from '../../model/tuple-reader.ts';
import { type BoundModel, OP_LEAF, type Op } from '../bound/bound-model.ts';
import type { EdgeAdmission } from '../bound/evaluator-api.ts';

/** States beyond this are not built: what needs them takes the general path. */
const STATES_MAX = 4096;
/** Name ids beyond this take the general path: the tables are indexed by them. */
const NAMES_MAX = 65_536;

/**
 * A set of relations of one object, closed under computed relations, as one thing to visit: whose
 * tuples count, and which relations are asked of the objects that its tuplesets name.
 */
export class HotState {
  /** Position in `HotModel.states`, from 1 on. */
  readonly index: number;
  /** Name id of the namespace of its objects. */
  readonly namespace: number;
  /** Usersets that a visit counts as. */
  readonly weight: number;
  /**
   * By relation name id: bit 0: its own tuples count; the rest: number of the target that its
   * tuples lead to, 0 for none.
   */
  readonly actions: Int32Array;
  /** The relations with an action. */
  readonly relations: Int32Array;
  /** All relations that checks reach, also those that are only computed: an exact userset may be one of them. */
  readonly usersets: ReadonlySet<number>;

  constructor(
    index: number,
    namespace: number,
    weight: number,
    actions: Int32Array,
    relations: Int32Array,
    usersets: ReadonlySet<number>,
  ) {
    this.index = index;
    this.namespace = namespace;
    this.weight = weight;
    this.actions = actions;
    this.relations = relations;
    this.usersets = usersets;
  }
}

/**
 * A relation of intersections and exclusions whose operands are unions all the way down. Each operand is a search of
 * its own with a result of yes or no, and the operators are those of logic.
 */
export type HotTree = {
  readonly kind: Op['kind'];
  /** Leaf: the state in which the object is searched, as in `single`. */
  readonly state: number;
  /** Leaf with HOT_PLAIN: the relation whose tuples count. */
  readonly relation: number;
  readonly children: readonly HotTree[];
  /** Which of the children decided last: the next time it is asked first, and mostly it decides again. */
  decisive: number;
};

/** Answers instead of a state. */
export const HOT_PLAIN = 0;
export const HOT_GENERAL = -1;

/**
 * Unions of a model, determinized for the hot path: one visit of an object covers all relations that a
 * check needs of it, instead of one by one (subset construction, as from an NFA to a DFA). Built lazily;
 * shared by all evaluations of one evaluator.
 */
export class HotModel {
  readonly states: (HotState | undefined)[] = [undefined];
  /** Whether some stored tuples may not count. */
  readonly isPartial: boolean;
  readonly #admission: EdgeAdmission | null;
  readonly #model: BoundModel;
  readonly #stateOfKey = new Map<string, number>();
  /** State of one relation by namespace and relation; undefined is not built yet. */
  readonly #singles: (number | undefined)[][] = [];
  readonly #targetOfKey = new Map<string, number>();
  readonly #targetRelations: (readonly number[])[] = [[]];
  /** State of a target by target and namespace. */
  readonly #targetStates: (number | undefined)[][] = [[]];

  /** By namespace and relation; null: the general path. */
  readonly #trees: (HotTree | null | undefined)[][] = [];

  /** `admission`: which stored tuples count; null: all do. */
  constructor(model: BoundModel, admission: EdgeAdmission | null = null) {
    this.#model = model;
    this.#admission = admission;
    this.isPartial = admission !== null;
  }

  /** Whether the stored tuple (node, subject) counts. Hot. */
  admits(reader: TupleReader, node: number, subject: number, isQualified: boolean): boolean {
    return this.#admission === null || this.#admission.admits(reader, node, subject, isQualified);
  }

  /** The tree of a relation that is no union alone; null where it is one, or its operands are not. Hot. */
  treeOf(namespace: number, relation: number): HotTree | null {
    const known = this.#trees[namespace]?.[relation];
    return known === undefined ? this.#buildTree(namespace, relation) : known;
  }

  #buildTree(namespace: number, relation: number): HotTree | null {
    const program = this.#model.programOf(namespace, relation);
    if (program === undefined || program.isSimple) return null;
    if (namespace >= NAMES_MAX || relation >= NAMES_MAX) return null;
    const tree = this.#treeOfOp(namespace, relation, program.root);
    (this.#trees[namespace] ??= [])[relation] = tree;
    return tree;
  }

  #treeOfOp(namespace: number, relation: number, op: Op): HotTree | null {
    if (op.kind === OP_LEAF) return this.#treeOfLeaf(namespace, relation, op);
    const children: HotTree[] = [];
    for (const child of op.children) {
      const tree = this.#treeOfOp(namespace, relation, child);
      if (tree === null) return null;
      children.push(tree);
    }
    return { kind: op.kind, state: HOT_GENERAL, relation, children, decisive: 0 };
  }

  #treeOfLeaf(namespace: number, relation: number, leaf: Op): HotTree | null {
    const { hasThis, computed, walks } = leaf;
    const isAlone = walks.length === 0 && computed.length + (hasThis ? 1 : 0) === 1;
    const asked = isAlone && !hasThis ? (computed[0] as number) : relation;
    const state = !isAlone
      ? this.#stateOf(namespace, [...computed], { relation, leaf })
      : hasThis
        ? HOT_PLAIN
        : this.single(namespace, asked);
    if (state < 0) return null;
    return { kind: OP_LEAF, state, relation: asked, children: [], decisive: 0 };
  }

  /** State index of one relation; HOT_PLAIN if only its own tuples count; HOT_GENERAL. Hot. */
  single(namespace: number, relation: number): number {
    const known = this.#singles[namespace]?.[relation];
    return known === undefined ? this.#buildSingle(namespace, relation) : known;
  }

  /** State index of a target on objects of a namespace, or HOT_GENERAL. Hot. */
  ofTarget(target: number, namespace: number): number {
    const known = (this.#targetStates[target] as (number | undefined)[])[namespace];
    return known === undefined ? this.#buildTarget(target, namespace) : known;
  }

  #buildSingle(namespace: number, relation: number): number {
    const program = this.#model.programOf(namespace, relation);
    // Names without a program are data without bound: nothing is stored for them.
    if (program === undefined) return HOT_PLAIN;
    if (namespace >= NAMES_MAX || relation >= NAMES_MAX) return HOT_GENERAL;
    const { root } = program;
    const isPlain =
      program.isSimple && root.hasThis && root.computed.length === 0 && root.walks.length === 0;
    const state = isPlain ? HOT_PLAIN : this.#stateOf(namespace, [relation]);
    (this.#singles[namespace] ??= [])[relation] = state;
    return state;
  }

  #buildTarget(target: number, namespace: number): number {
    if (namespace >= NAMES_MAX) return HOT_GENERAL;
    const relations = this.#targetRelations[target] as readonly number[];
    const state = this.#stateOf(namespace, relations);
    (this.#targetStates[target] as (number | undefined)[])[namespace] = state;
    return state;
  }

  /** `operand`: a leaf of an operator of its relation, whose own tuples and walks are read besides. */
  #stateOf(
    namespace: number,
    relations: readonly number[],
    operand?: { readonly relation: number; readonly leaf: Op },
  ): number {
    const closed = new Set(relations);
    const walks = new Map<number, Set<number>>();
    const own: number[] = operand?.leaf.hasThis === true ? [operand.relation] : [];
    if (operand !== undefined) addWalks(walks, operand.leaf);
    for (const relation of closed) {
      const program = this.#model.programOf(namespace, relation);
      if (program === undefined) {
        own.push(relation);
        continue;
      }
      if (!program.isSimple) return HOT_GENERAL;
      const { root } = program;
      if (root.hasThis) own.push(relation);
      for (const computed of root.computed) closed.add(computed);
      addWalks(walks, root);
    }
    const ofOperand =
      operand === undefined
        ? ''
        : `:${operand.leaf.hasThis ? operand.relation : ''}:${operand.leaf.walks.join()}`;
    const key = `${namespace}:${[...closed].sort((a, b) => a - b).join()}${ofOperand}`;
    const known = this.#stateOfKey.get(key);
    if (known !== undefined) return known;
    const names = [...new Set([...own, ...walks.keys()])];
    const width = Math.max(...names, 0) + 1;
    if (this.states.length > STATES_MAX || width > NAMES_MAX) return HOT_GENERAL;
    const actions = new Int32Array(width);
    for (const relation of own) actions[relation] = 1;
    for (const [tupleset, asked] of walks) {
      actions[tupleset] = (actions[tupleset] as number) | (this.#targetOf(asked) << 1);
    }
    const weight = closed.size + (operand === undefined ? 0 : 1);
    const index = this.states.length;
    const relationsWithAction = Int32Array.from(names);
    this.states.push(new HotState(index, namespace, weight, actions, relationsWithAction, closed));
    this.#stateOfKey.set(key, index);
    return index;
  }

  #targetOf(relations: ReadonlySet<number>): number {
    const sorted = [...relations].sort((a, b) => a - b);
    const key = sorted.join();
    let target = this.#targetOfKey.get(key);
    if (target === undefined) {
      target = this.#targetRelations.push(sorted) - 1;
      this.#targetStates.push([]);
      this.#targetOfKey.set(key, target);
    }
    return target;
  }
}

function addWalks(walks: Map<number, Set<number>>, leaf: Op): void {
  for (let i = 0; i < leaf.walks.length; i += 2) {
    const tupleset = leaf.walks[i] as number;
    let asked = walks.get(tupleset);
    if (asked === undefined) walks.set(tupleset, (asked = new Set()));
    asked.add(leaf.walks[i + 1] as number);
  }
}
