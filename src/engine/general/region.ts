import { OP_LEAF, type Op, THIS_OP } from '../bound/bound-model.ts';
import { PairTable } from '../bound/pair-table.ts';
import {
  UNDETERMINED,
  FALSE,
  type LeafSink,
  type Scope,
  type Target,
  TRUE,
  type Value,
} from '../bound/scope.ts';

/** Relations with intersections or exclusions that a region leads to, evaluated by its owner. */
export type Border = {
  readonly entity: number;
  readonly relation: number;
  /** Nodes on the shortest path from the region's root, this one included. */
  readonly level: number;
  readonly isWeak: boolean;
};

const STRONG = 1;

/** A list of which the rest is to be scanned, with what its entries hang on. */
type Rest = {
  readonly node: number;
  readonly relation: number;
  readonly withObjects: boolean;
  readonly cursor: number;
  readonly from: number;
  readonly level: number;
  readonly isWeak: boolean;
};

/**
 * Plain reachability over usersets that are unions only: breadth first with one visited set, so
 * that cycles and shared parts cost nothing and every userset is seen at its least depth. What is
 * reached only through undecided conditions is searched afterwards and contributes UNDETERMINED at most.
 */
export class Region implements LeafSink {
  value: Value = FALSE;
  /** Levels that the value rests on; for UNDETERMINED without meaning. */
  height = 0;
  /** Whether the depth bound hid something. */
  isDepthExceeded = false;
  hasRevisits = false;
  readonly borders: Border[] = [];
  readonly isExcluding: boolean;
  readonly #scope: Scope;
  readonly #target: Target;
  readonly #levelMax: number;
  readonly #seen = new PairTable();
  readonly #strength: number[] = [];
  readonly #strong: number[] = []; // triples entity, relation, level
  readonly #weak: number[] = [];
  readonly #weakSeeds: number[] = [];
  readonly #edges: number[] = []; // pairs of indexes into #seen, for the search of a cycle
  /** Long lists of the userset visited last; they end before the next visit. */
  readonly #rests: Rest[] = [];
  #nextStrong = 0;
  #nextWeak = 0;
  #nextWeakSeed = 0;
  #from = -1;
  #level = 0;
  #isWeak = false;

  constructor(scope: Scope, target: Target, levelMax: number, isExcluding: boolean) {
    this.#scope = scope;
    this.#target = target;
    this.#levelMax = levelMax;
    this.isExcluding = isExcluding;
  }

  /** Starts at a userset, which is the first node of every path. */
  seed(entity: number, relation: number): void {
    this.#level = 0;
    this.onChild(entity, relation, false);
  }

  /** Starts at what one leaf of a larger rewrite leads to. */
  seedLeaf(entity: number, relation: number, leaf: Op): void {
    this.#level = 0;
    this.#scope.scanLeaf(entity, relation, leaf, this.#target, this.isExcluding, this);
  }

  /** Visits one userset, or a part of a long list. Returns false when nothing is left but the borders, or TRUE was found. */
  step(): boolean {
    if (this.value === TRUE) return false;
    const rest = this.#rests.pop();
    if (rest !== undefined) {
      this.#scanRest(rest);
      return true;
    }
    if (this.#nextStrong < this.#strong.length) {
      this.#visit(this.#strong, this.#nextStrong, false);
      this.#nextStrong += 3;
      return true;
    }
    if (this.value === UNDETERMINED) return false; // weak paths could add no more than that
    // Weak seeds and weak nodes are each in order of level: merging keeps every level least.
    const seedLevel = this.#weakSeeds[this.#nextWeakSeed + 2] ?? Number.POSITIVE_INFINITY;
    const weakLevel = this.#weak[this.#nextWeak + 2] ?? Number.POSITIVE_INFINITY;
    if (seedLevel === Number.POSITIVE_INFINITY && weakLevel === seedLevel) return false;
    if (seedLevel <= weakLevel) {
      this.#visitWeakSeed();
    } else {
      this.#visit(this.#weak, this.#nextWeak, true);
      this.#nextWeak += 3;
    }
    return true;
  }

  onDirect(value: Value): void {
    if (value === TRUE && !this.#isWeak) {
      this.value = TRUE;
      this.height = this.#level;
    } else if (this.value === FALSE) {
      this.value = UNDETERMINED;
    }
  }

  onChild(entity: number, relation: number, isWeak: boolean): void {
    if (isWeak && !this.#isWeak) {
      this.#weakSeeds.push(entity, relation, this.#level + 1);
      return;
    }
    const index = this.#seen.insert(entity, relation);
    const isNew = index === this.#strength.length;
    if (this.#from >= 0) this.#edges.push(this.#from, index);
    if (!isNew) {
      this.hasRevisits = true;
      return;
    }
    this.#strength.push(STRONG);
    (this.#isWeak ? this.#weak : this.#strong).push(entity, relation, this.#level + 1);
  }

  onRest(node: number, relation: number, withObjects: boolean, cursor: number): void {
    const [from, level, isWeak] = [this.#from, this.#level, this.#isWeak];
    this.#rests.push({ node, relation, withObjects, cursor, from, level, isWeak });
  }

  #scanRest(rest: Rest): void {
    this.#from = rest.from;
    this.#level = rest.level;
    this.#isWeak = rest.isWeak;
    this.#scope.scanRest(rest.node, rest.relation, rest.withObjects, rest.cursor, this);
    this.#from = -1;
  }

  /** Takes the value of a border that its owner evaluated. */
  acceptBorder(border: Border, value: Value, height: number, isDepthExceeded: boolean): void {
    if (isDepthExceeded && value === UNDETERMINED) this.isDepthExceeded = true;
    if (value === TRUE && !border.isWeak) {
      this.value = TRUE;
      this.height = border.level - 1 + height;
    } else if (value !== FALSE) {
      if (this.value === FALSE) this.value = UNDETERMINED;
    } else if (border.level - 1 + height > this.height) {
      this.height = border.level - 1 + height;
    }
  }

  /** Whether the visited usersets contain one another. O(visited + edges), reads nothing. */
  hasCycle(): boolean {
    if (!this.hasRevisits) return false;
    // Kahn: what cannot be removed by repeatedly taking nodes without predecessors is on a cycle.
    const edges = this.#edges;
    const count = this.#seen.size;
    const first = new Int32Array(count).fill(-1);
    const next = new Int32Array(edges.length / 2);
    const incoming = new Int32Array(count);
    for (let i = 0; i < edges.length; i += 2) {
      const from = edges[i] as number;
      next[i / 2] = first[from] as number;
      first[from] = i / 2;
      const to = edges[i + 1] as number;
      incoming[to] = (incoming[to] as number) + 1;
    }
    const free: number[] = [];
    for (let index = 0; index < count; index++) if (incoming[index] === 0) free.push(index);
    for (let taken = 0; taken < free.length; taken++) {
      let edge = first[free[taken] as number] as number;
      for (; edge >= 0; edge = next[edge] as number) {
        const to = edges[edge * 2 + 1] as number;
        incoming[to] = (incoming[to] as number) - 1;
        if (incoming[to] === 0) free.push(to);
      }
    }
    return free.length < count;
  }

  #visitWeakSeed(): void {
    const at = this.#nextWeakSeed;
    this.#nextWeakSeed += 3;
    this.#from = -1;
    this.#isWeak = true;
    this.#level = (this.#weakSeeds[at + 2] as number) - 1;
    const size = this.#seen.size;
    this.onChild(this.#weakSeeds[at] as number, this.#weakSeeds[at + 1] as number, false);
    if (this.#seen.size === size) return; // its strong or earlier visit found what there is
    // A new node of the least level: visit it before the queue grows past it.
    const start = this.#weak.length - 3;
    this.#weak.length = start;
    const [entity, relation] = [this.#weakSeeds[at] as number, this.#weakSeeds[at + 1] as number];
    this.#visit([entity, relation, this.#level + 1], 0, true);
  }

  #visit(queue: readonly number[], at: number, isWeak: boolean): void {
    const entity = queue[at] as number;
    const relation = queue[at + 1] as number;
    const level = queue[at + 2] as number;
    if (level > this.#levelMax) {
      this.isDepthExceeded = true;
      if (this.value === FALSE) this.value = UNDETERMINED;
      return;
    }
    this.#isWeak = isWeak;
    this.#level = level;
    if (this.#scope.isTarget(this.#target, entity, relation, this.isExcluding)) {
      this.onDirect(TRUE);
      return;
    }
    const program = this.#scope.model.programOf(this.#scope.reader.namespaceOf(entity), relation);
    if (program !== undefined && program.root.kind !== OP_LEAF) {
      this.borders.push({ entity, relation, level, isWeak });
      return;
    }
    if (level > this.height) this.height = level;
    this.#from = this.#seen.indexOf(entity, relation);
    const leaf = program === undefined ? THIS_OP : program.root;
    this.#scope.scanLeaf(entity, relation, leaf, this.#target, this.isExcluding, this);
    this.#from = -1;
  }
}
