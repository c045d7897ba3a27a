import { EDGE_NODE_MASK, EDGE_QUALIFIED } from '../../model/tuple-reader.ts';
import { BACKSTOP_DEPTH } from '../bound/evaluator-api.ts';
import { PairTable } from '../bound/pair-table.ts';
import { FALSE, type Scope, TRUE } from '../bound/scope.ts';

const ENTRIES_PER_READ_SHIFT = 6;
/** Reached through a tuple that could not be decided, and an intersection or exclusion: undecided at most. */
const WEAK = 1;
/** Reached through unions and tuples of which one could not be decided: undecided, unless it is held in another way. */
const WEAK_SURE = 2;
/** Needs to be confirmed by a check. */
const MAYBE = 3;
/** The same, and the leaf of its rewrite through which it was reached holds for certain: `Program.positive`. */
const GROUNDED = 4;
/** Reached through unions alone: an answer. */
const SURE = 5;
type Strength = 1 | 2 | 3 | 4 | 5;
const chunk = new Uint32Array(512);
const CAPACITY_FIRST = 256;
const STRENGTH_BITS = 3;
const STRENGTH_MASK = (1 << STRENGTH_BITS) - 1;

/** A list of holders being read: holders of the set itself, or tuplesets that name its object. */
type Scan = {
  readonly subject: number;
  readonly relation: number;
  readonly level: number;
  readonly strength: Strength;
  readonly isReference: boolean;
  cursor: number;
};

/**
 * Walks backwards from subjects to the objects of a namespace on which they may hold a relation. What was
 * reached through unions alone is sure; what met an intersection or exclusion has to be confirmed.
 * Relations that no tuple and no rewrite refers to cost nothing further.
 *
 * Tuples that could not be decided are passed over, and noted where that is requested: `followUndecided` continues from them.
 */
export class ObjectWalk {
  readonly #scope: Scope;
  readonly #namespace: number;
  readonly #relation: number;
  readonly #notesUndecided: boolean;
  readonly #seen = new PairTable(CAPACITY_FIRST);
  /** By position in #seen: level and strength in one word, 0 before it is reached. */
  #words = new Uint32Array(CAPACITY_FIRST);
  /** Pairs: position in #seen, and level and strength in one word. */
  #queue = new Uint32Array(2 * CAPACITY_FIRST);
  #queued = 0;
  /** Scans of the entry of the queue before #next; the next one waits for them. */
  readonly #scans: Scan[] = [];
  #candidates = new Uint32Array(CAPACITY_FIRST); // positions in #seen
  #candidateCount = 0;
  #next = 0;
  /** Tuples that could not be decided: triples of the holder, relation times 2 plus whether it is a reference, and level and strength. */
  readonly #undecided: number[] = [];
  /** Usersets beyond the depth bound: pairs of entity and relation. */
  readonly #deep: number[] = [];
  #followsUndecided = false;

  /** Namespace and relation by name id, both above 0. */
  constructor(scope: Scope, namespace: number, relation: number, notesUndecided = false) {
    this.#scope = scope;
    this.#namespace = namespace;
    this.#relation = relation;
    this.#notesUndecided = notesUndecided;
  }

  /** Begins at whatever holds this subject by a tuple. `isSure`: whether it counts for certain. */
  fromSubject(node: number, isSure: boolean): void {
    const doubtful = this.#followsUndecided ? WEAK : MAYBE;
    this.#scanHolders(node, 0, 1, isSure ? SURE : doubtful, false);
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
    return this.#strengthAt(index) === SURE;
  }

  /** Whether an object of `followUndecided` is one that Check could not decide, without a check. */
  isUndecidedAt(index: number): boolean {
    return this.#strengthAt(index) === WEAK_SURE;
  }

  #strengthAt(index: number): number {
    return (this.#words[this.#candidates[index] as number] as number) & STRENGTH_MASK;
  }

  /**
   * Usersets on a way from the subject to one that certainly holds it, both ends included. Negative: it is `Program.positive` of the
   * userset that certainly holds; 0: neither is known.
   */
  levelOf(entity: number, relation: number): number {
    const index = this.#seen.indexOf(entity, relation);
    if (index < 0) return 0;
    const word = this.#words[index] as number;
    const strength = word & STRENGTH_MASK;
    if (strength < GROUNDED) return 0;
    return strength === SURE ? word >>> STRENGTH_BITS : -(word >>> STRENGTH_BITS);
  }

  /** Whether `followUndecided` has anything to follow. */
  get hasUndecided(): boolean {
    return this.#undecided.length > 0 || this.#deep.length > 0;
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
    if (this.#next >= this.#queued) return this.#followsUndecided && this.#stepUndecided();
    const index = this.#queue[this.#next] as number;
    const word = this.#queue[this.#next + 1] as number;
    this.#next += 2;
    this.#use(
      this.#seen.firstOf(index),
      this.#seen.secondOf(index),
      (word >>> STRENGTH_BITS) + 1,
      (word & STRENGTH_MASK) as Strength,
    );
    return true;
  }

  /**
   * From now on `step` follows what could not be decided, and to any depth: objects that it adds are not held, or could not be
   * decided. After the walk.
   */
  followUndecided(): void {
    this.#followsUndecided = true;
  }

  #stepUndecided(): boolean {
    const word = this.#undecided.pop();
    const relationWord = this.#undecided.pop();
    const holder = this.#undecided.pop();
    if (word === undefined || relationWord === undefined || holder === undefined) {
      return this.#stepDeep();
    }
    const [level, strength] = [word >>> STRENGTH_BITS, (word & STRENGTH_MASK) as Strength];
    const of = { relation: relationWord >>> 1, level, strength: weakened(strength) };
    if ((relationWord & 1) === 1) this.#reachReference(holder, of);
    else this.#reachHolder(holder, of);
    return true;
  }

  #stepDeep(): boolean {
    const relation = this.#deep.pop();
    const entity = this.#deep.pop();
    if (relation === undefined || entity === undefined) return false;
    this.#reach(entity, relation, this.#scope.depthMax + 1, WEAK);
    return true;
  }

  /** Follows whatever refers to a userset that was reached: tuples, rewrites of its object, and walks over tuplesets that name it. */
  #use(entity: number, relation: number, level: number, strength: Strength): void {
    const { reader, model } = this.#scope;
    for (const use of model.computedUses(reader.namespaceOf(entity), relation)) {
      this.#reach(entity, use.relation, level, through(strength, use.isSimple));
    }
    if (model.walkUses(relation).length === 0) {
      const node = reader.nodeId(entity, relation);
      if (node !== 0) this.#scanHolders(node, relation, level, strength, false);
      return;
    }
    // All of the object's nodes are visited: the one of the userset is among them.
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
    strength: Strength,
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
      const value = entry >= EDGE_QUALIFIED ? this.#scope.qualify(holder, subject) : TRUE;
      if (value === FALSE) continue;
      if (value === TRUE) this.#reachBy(holder, scan);
      else this.#addHolder(holder, scan);
    }
  }

  #reachBy(holder: number, scan: Scan): void {
    if (scan.isReference) this.#reachReference(holder, scan);
    else this.#reachHolder(holder, scan);
  }

  #addHolder(holder: number, { relation, level, strength, isReference }: Scan): void {
    if (!this.#notesUndecided) return;
    const word = (level << STRENGTH_BITS) | strength;
    this.#undecided.push(holder, relation * 2 + (isReference ? 1 : 0), word);
  }

  /** A userset whose own tuples hold the subject. */
  #reachHolder(holder: number, { level, strength }: Pick<Scan, 'level' | 'strength'>): void {
    const { reader, model } = this.#scope;
    const entity = reader.entityOf(holder);
    const relation = reader.relationOf(holder);
    const program = model.programOf(reader.namespaceOf(entity), relation);
    if (program === undefined) this.#reach(entity, relation, level, through(strength, true));
    else if (program.positive.hasThis) {
      this.#reach(entity, relation, level, through(strength, program.isSimple));
    }
  }

  /** Usersets that walk to `relation` on the object of the subject, which a tupleset names. */
  #reachReference(
    holder: number,
    { relation, level, strength }: Pick<Scan, 'relation' | 'level' | 'strength'>,
  ): void {
    const { reader, model } = this.#scope;
    const entity = reader.entityOf(holder);
    const namespace = reader.namespaceOf(entity);
    const tupleset = reader.relationOf(holder);
    for (const use of model.walkUses(relation)) {
      if (use.namespace !== namespace || use.tupleset !== tupleset) continue;
      this.#reach(entity, use.relation, level, through(strength, use.isSimple));
    }
  }

  #reach(entity: number, relation: number, level: number, strength: Strength): void {
    if (level > this.#scope.depthMax && !this.#followsUndecided) {
      this.#scope.backstops |= BACKSTOP_DEPTH;
      if (this.#notesUndecided) this.#deep.push(entity, relation);
      return;
    }
    const index = this.#seen.insert(entity, relation);
    if (index >= this.#words.length) this.#words = grown(this.#words);
    const known = (this.#words[index] as number) & STRENGTH_MASK;
    if (known >= strength) return;
    const word = (level << STRENGTH_BITS) | strength;
    this.#words[index] = word;
    // An entry raised from MAYBE to GROUNDED reaches nothing new.
    if (known === MAYBE && strength === GROUNDED) return;
    if (this.#queued === this.#queue.length) this.#queue = grown(this.#queue);
    this.#queue[this.#queued] = index;
    this.#queue[this.#queued + 1] = word;
    this.#queued += 2;
    if (known > 0 || relation !== this.#relation) return;
    if (this.#scope.reader.namespaceOf(entity) !== this.#namespace) return;
    if (this.#candidateCount === this.#candidates.length) {
      this.#candidates = grown(this.#candidates);
    }
    this.#candidates[this.#candidateCount++] = index;
  }
}

/** How a userset is held that follows from one that is held with `strength`. */
function through(strength: Strength, isSimple: boolean): Strength {
  if (isSimple) return strength === GROUNDED ? MAYBE : strength;
  if (strength === SURE) return GROUNDED;
  return strength > MAYBE ? MAYBE : strength === WEAK_SURE ? WEAK : strength;
}

/** How it is held where a tuple on the way could not be decided. */
function weakened(strength: Strength): Strength {
  return strength === SURE || strength === WEAK_SURE ? WEAK_SURE : WEAK;
}

function grown(capacity: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(capacity.length * 2);
  larger.set(capacity);
  return larger;
}
