import { EDGE_NODE_MASK, EDGE_QUALIFIED } from '../../model/tuple-reader.ts';
import { BACKSTOP_DEPTH } from '../bound/evaluator-api.ts';
import { PairTable } from '../bound/pair-table.ts';
import { type Scope, TRUE } from '../bound/scope.ts';

const ENTRIES_PER_READ_SHIFT = 6;
/** Needs to be confirmed by a check. */
export const MAYBE = 1;
/** Reached through unions alone: an answer. */
export const SURE = 2;
export type Strength = typeof MAYBE | typeof SURE;
const chunk = new Uint32Array(512);
const CAPACITY_FIRST = 256;
const STRENGTH_BITS = 2;

/** A list of holders being read: holders of the set itself, or tuplesets that name its object. */
type Scan = {
  readonly subject: number;
  readonly relation: number;
  readonly level: number;
  readonly strength: number;
  readonly isReference: boolean;
  cursor: number;
};

/**
 * Walks backwards from subjects to the objects of a namespace on which they may hold a relation. What was
 * reached through unions alone is sure; what met an intersection or exclusion has to be confirmed.
 * Relations that no tuple and no rewrite refers to cost nothing further.
 */
export class ObjectWalk {
  readonly #scope: Scope;
  readonly #namespace: number;
  readonly #relation: number;
  readonly #seen = new PairTable(CAPACITY_FIRST);
  /** By position in #seen; as long as #queue has entries at least. */
  #strength = new Uint8Array(CAPACITY_FIRST);
  /** Pairs: position in #seen, and level and strength in one word. */
  #queue = new Uint32Array(2 * CAPACITY_FIRST);
  #queued = 0;
  /** Of the entry of the queue before #next; the next one waits for them. */
  readonly #scans: Scan[] = [];
  #candidates = new Uint32Array(CAPACITY_FIRST); // positions in #seen
  #candidateCount = 0;
  #next = 0;

  /** Namespace and relation by name id, both above 0. */
  constructor(scope: Scope, namespace: number, relation: number) {
    this.#scope = scope;
    this.#namespace = namespace;
    this.#relation = relation;
  }

  /** Begins at whatever holds this subject by a tuple. `strength`: whether it counts for certain. */
  fromSubject(node: number, strength: Strength): void {
    this.#scanHolders(node, 0, 1, strength, false);
  }

  /** Begins at a userset, which is part of itself. */
  fromUserset(entity: number, relation: number): void {
    this.#reach(entity, relation, 1, SURE);
  }

  /** Objects that were reached, in no order. */
  get count(): number {
    return this.#candidateCount;
  }

  entityAt(index: number): number {
    return this.#seen.firstOf(this.#candidates[index] as number);
  }

  isSureAt(index: number): boolean {
    return this.#strength[this.#candidates[index] as number] === SURE;
  }

  /** Whether the next step reads a piece of a long list. */
  get isReading(): boolean {
    return this.#scans.length > 0;
  }

  /** Goes one userset, or a piece of a list, further; false when nothing is left. Errors: BUDGET_EXHAUSTED. */
  step(): boolean {
    const scan = this.#scans[this.#scans.length - 1];
    if (scan !== undefined) {
      this.#stepScan(scan);
      return true;
    }
    if (this.#next >= this.#queued) return false;
    const index = this.#queue[this.#next] as number;
    const word = this.#queue[this.#next + 1] as number;
    this.#next += 2;
    this.#use(
      this.#seen.firstOf(index),
      this.#seen.secondOf(index),
      (word >>> STRENGTH_BITS) + 1,
      word & (MAYBE | SURE),
    );
    return true;
  }

  /** Follows whatever refers to a userset that was reached: tuples, rewrites of its object, and walks over tuplesets that name it. */
  #use(entity: number, relation: number, level: number, strength: number): void {
    const { reader, model } = this.#scope;
    for (const use of model.computedUses(reader.namespaceOf(entity), relation)) {
      this.#reach(entity, use.relation, level, use.isSimple ? strength : MAYBE);
    }
    if (model.walkUses(relation).length === 0) {
      const node = reader.nodeId(entity, relation);
      if (node !== 0) this.#scanHolders(node, relation, level, strength, false);
      return;
    }
    // All of the object's nodes are looked at: the one of the userset is among them.
    for (let node = reader.firstNodeOf(entity); node !== 0; node = reader.nextNodeOf(node)) {
      if (reader.reverseCount(node) === 0) continue;
      if (reader.relationOf(node) === relation) {
        this.#scanHolders(node, relation, level, strength, false);
      }
      this.#scanHolders(node, relation, level, strength, true);
    }
  }

  /** Reads the nodes that hold `subject`, one piece a step. */
  #scanHolders(
    subject: number,
    relation: number,
    level: number,
    strength: number,
    isReference: boolean,
  ): void {
    const total = this.#scope.reader.reverseCount(subject);
    if (total === 0) return;
    this.#scope.charge(1 + (total >> ENTRIES_PER_READ_SHIFT));
    if (total > chunk.length) this.#seen.reserve(total);
    this.#scans.push({ subject, relation, level, strength, isReference, cursor: 0 });
  }

  /** Holders by a tuple that counts now; an undecided one never makes TRUE. */
  #stepScan(scan: Scan): void {
    const { reader } = this.#scope;
    const { subject } = scan;
    const count = reader.readReverse(subject, scan.cursor, chunk, 0);
    scan.cursor = reader.nextCursor;
    if (scan.cursor < 0) this.#scans.pop();
    for (let i = 0; i < count; i++) {
      const entry = chunk[i] as number;
      const holder = entry & EDGE_NODE_MASK;
      if (entry >= EDGE_QUALIFIED && this.#scope.qualify(holder, subject) !== TRUE) continue;
      if (scan.isReference) this.#reachReference(holder, scan);
      else this.#reachHolder(holder, scan);
    }
  }

  /** A userset whose own tuples hold the subject. */
  #reachHolder(holder: number, { level, strength }: Scan): void {
    const { reader, model } = this.#scope;
    const entity = reader.entityOf(holder);
    const relation = reader.relationOf(holder);
    const program = model.programOf(reader.namespaceOf(entity), relation);
    if (program === undefined) this.#reach(entity, relation, level, strength);
    else if (program.positive.hasThis) {
      this.#reach(entity, relation, level, program.isSimple ? strength : MAYBE);
    }
  }

  /** Usersets that walk to `relation` on the object of the subject, which a tupleset names. */
  #reachReference(holder: number, { relation, level, strength }: Scan): void {
    const { reader, model } = this.#scope;
    const entity = reader.entityOf(holder);
    const namespace = reader.namespaceOf(entity);
    const tupleset = reader.relationOf(holder);
    for (const use of model.walkUses(relation)) {
      if (use.namespace !== namespace || use.tupleset !== tupleset) continue;
      this.#reach(entity, use.relation, level, use.isSimple ? strength : MAYBE);
    }
  }

  #reach(entity: number, relation: number, level: number, strength: number): void {
    if (level > this.#scope.depthMax) {
      this.#scope.backstops |= BACKSTOP_DEPTH;
      return;
    }
    const index = this.#seen.insert(entity, relation);
    if (index >= this.#strength.length) this.#strength = grown(this.#strength);
    const known = this.#strength[index] as number;
    if (known >= strength) return;
    this.#strength[index] = strength;
    if (this.#queued === this.#queue.length) this.#queue = grown(this.#queue);
    this.#queue[this.#queued] = index;
    this.#queue[this.#queued + 1] = (level << STRENGTH_BITS) | strength;
    this.#queued += 2;
    if (known > 0 || relation !== this.#relation) return;
    if (this.#scope.reader.namespaceOf(entity) !== this.#namespace) return;
    if (this.#candidateCount === this.#candidates.length) {
      this.#candidates = grown(this.#candidates);
    }
    this.#candidates[this.#candidateCount++] = index;
  }
}

function grown<T extends Uint8Array | Uint32Array>(capacity: T): T {
  const larger = new (capacity.constructor as new (length: number) => T)(capacity.length * 2);
  larger.set(capacity);
  return larger;
}
