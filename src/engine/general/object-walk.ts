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
  readonly #seen = new PairTable(64);
  readonly #strength: number[] = [];
  readonly #queue: number[] = []; // quadruples entity, relation, level, strength
  /** Of the entry of the queue before #next; the next one waits for them. */
  readonly #scans: Scan[] = [];
  readonly #candidates: number[] = []; // indexes into #seen
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
    return this.#candidates.length;
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
    if (this.#next >= this.#queue.length) return false;
    const at = this.#next;
    this.#next += 4;
    const entity = this.#queue[at] as number;
    const relation = this.#queue[at + 1] as number;
    const level = (this.#queue[at + 2] as number) + 1;
    const strength = this.#queue[at + 3] as number;
    const { reader, model } = this.#scope;
    const node = reader.nodeId(entity, relation);
    if (node !== 0) this.#scanHolders(node, relation, level, strength, false);
    for (const use of model.computedUses(reader.namespaceOf(entity), relation)) {
      this.#reach(entity, use.relation, level, use.isSimple ? strength : MAYBE);
    }
    if (model.walkUses(relation).length === 0) return true;
    for (let other = reader.firstNodeOf(entity); other !== 0; other = reader.nextNodeOf(other)) {
      this.#scanHolders(other, relation, level, strength, true);
    }
    return true;
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
    const known = this.#strength[index] ?? 0;
    if (known >= strength) return;
    this.#strength[index] = strength;
    this.#queue.push(entity, relation, level, strength);
    if (known > 0 || relation !== this.#relation) return;
    if (this.#scope.reader.namespaceOf(entity) === this.#namespace) this.#candidates.push(index);
  }
}
