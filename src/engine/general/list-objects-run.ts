import { EDGE_NODE_MASK, EDGE_QUALIFIED, WILDCARD_NODE } from '../../model/tuple-reader.ts';
import { BACKSTOP_DEPTH, type EvaluationTask } from '../bound/evaluator-api.ts';
import { PairTable } from '../bound/pair-table.ts';
import { type Scope, TRUE } from '../bound/scope.ts';
import { CheckRun } from './check-run.ts';
import { SlicedSort } from './sliced-sort.ts';

const ENTRIES_PER_READ_SHIFT = 6;
const STEPS_PER_CLOCK_LOOK = 32;
const TEXTS_PER_STEP = 64;
const MAYBE = 1;
const SURE = 2;
/** Steps that a piece of a list, of a sort or of texts counts for. */
const STEPS_OF_PIECE = 8;
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

type Phase = 'start' | 'walk' | 'confirm' | 'sort' | 'text' | 'done';

/**
 * The objects of a namespace on which a user holds a relation, found backwards from the tuples of
 * the user and of the wildcard. What was reached through unions alone is an answer; what met an
 * intersection or exclusion is confirmed forward. Relations that no tuple and no rewrite refers to
 * cost nothing further. Sorted by the objects' ids in UTF-8 byte order.
 */
export class ListObjectsRun implements EvaluationTask<readonly string[]> {
  readonly #scope: Scope;
  readonly #namespace: number;
  readonly #relation: number;
  readonly #userNode: number;
  readonly #confirmation: CheckRun;
  readonly #seen = new PairTable(64);
  readonly #strength: number[] = [];
  readonly #queue: number[] = []; // quadruples entity, relation, level, strength
  /** Of the entry of the queue before #next; the next one waits for them. */
  readonly #scans: Scan[] = [];
  readonly #candidates: number[] = []; // indexes into #seen
  readonly #found: number[] = [];
  readonly #texts: string[] = [];
  #sort: SlicedSort | undefined;
  #phase: Phase = 'start';
  #next = 0;
  #isConfirming = false;

  /** Namespace and relation by name id; 0 or less: no tuple and no model mentions it. */
  constructor(scope: Scope, namespace: number, relation: number, userNode: number) {
    this.#scope = scope;
    this.#namespace = namespace;
    this.#relation = relation;
    this.#userNode = userNode;
    this.#confirmation = new CheckRun(scope, { userNode, setEntity: 0, setRelation: 0 });
  }

  get backstops(): number {
    return this.#scope.backstops;
  }

  result(): readonly string[] {
    return this.#texts;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    let steps = 0;
    while (this.#phase !== 'done') {
      const isPiece = this.#scans.length > 0 || this.#phase === 'sort' || this.#phase === 'text';
      if (!this.#step(sliceEndMs)) return 'more';
      steps += isPiece ? STEPS_OF_PIECE : 1;
      if (steps < STEPS_PER_CLOCK_LOOK) continue;
      steps = 0;
      if (this.#scope.clock.monotonicMs() >= sliceEndMs) return 'more';
    }
    return 'done';
  }

  #step(sliceEndMs: number): boolean {
    switch (this.#phase) {
      case 'start':
        this.#phase = this.#namespace > 0 && this.#relation > 0 ? 'walk' : 'done';
        if (this.#phase === 'walk') this.#start();
        return true;
      case 'walk':
        this.#stepWalk();
        return true;
      case 'confirm':
        return this.#stepConfirm(sliceEndMs);
      case 'sort':
        this.#sort ??= new SlicedSort(Uint32Array.from(this.#found), (a, b) =>
          this.#scope.reader.compareEntityIds(a, b),
        );
        if (!this.#sort.step()) this.#phase = 'text';
        return true;
      case 'text':
        this.#stepText();
        return true;
      case 'done':
        return true;
    }
  }

  #start(): void {
    if (this.#userNode !== 0) this.#scanHolders(this.#userNode, 0, 1, SURE, false);
    this.#scanHolders(WILDCARD_NODE, 0, 1, SURE, false);
  }

  #stepWalk(): void {
    const scan = this.#scans[this.#scans.length - 1];
    if (scan !== undefined) {
      this.#stepScan(scan);
      return;
    }
    if (this.#next >= this.#queue.length) {
      this.#next = 0;
      this.#phase = 'confirm';
      return;
    }
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
    if (model.walkUses(relation).length === 0) return;
    for (let other = reader.firstNodeOf(entity); other !== 0; other = reader.nextNodeOf(other)) {
      this.#scanHolders(other, relation, level, strength, true);
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
    const known = this.#strength[index] ?? 0;
    if (known >= strength) return;
    this.#strength[index] = strength;
    this.#queue.push(entity, relation, level, strength);
    if (known > 0 || relation !== this.#relation) return;
    if (this.#scope.reader.namespaceOf(entity) === this.#namespace) this.#candidates.push(index);
  }

  #stepConfirm(sliceEndMs: number): boolean {
    const index = this.#candidates[this.#next];
    if (index === undefined) {
      this.#next = 0;
      this.#phase = 'sort';
      return true;
    }
    const entity = this.#seen.firstOf(index);
    if (this.#strength[index] !== SURE) {
      if (!this.#isConfirming) this.#confirmation.start(entity, this.#relation);
      this.#isConfirming = true;
      if (this.#confirmation.run(sliceEndMs) === 'more') return false;
      this.#isConfirming = false;
      if (this.#confirmation.outcome.value === TRUE) this.#found.push(entity);
    } else {
      this.#found.push(entity);
    }
    this.#next++;
    return true;
  }

  #stepText(): void {
    const sorted = (this.#sort as SlicedSort).values;
    const end = Math.min(sorted.length, this.#next + TEXTS_PER_STEP);
    for (; this.#next < end; this.#next++) {
      this.#texts.push(this.#scope.reader.entityText(sorted[this.#next] as number));
    }
    if (this.#next === sorted.length) this.#phase = 'done';
  }
}
