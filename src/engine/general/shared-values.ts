import { EMPTY_NAME } from '../../model/tuple-reader.ts';
import { OP_EXCLUSION, OP_INTERSECTION, OP_LEAF, type Op, THIS_OP } from '../bound/bound-model.ts';
import { PairTable } from '../bound/pair-table.ts';
import {
  FALSE,
  type LeafSink,
  listsOf,
  type Scope,
  type Target,
  TRUE,
  UNDETERMINED,
  type Value,
} from '../bound/scope.ts';
import { CheckRun } from './check-run.ts';
import type { Outcome } from './component-solver.ts';
import type { ObjectWalk } from './object-walk.ts';

/** Left to a check of the object alone: the depth bound may decide, or a list is long. */
export const UNCLEAR = 3;
/** Not known before other usersets are. */
const PENDING = 4;
type KnownOrNot = Value | typeof UNCLEAR | typeof PENDING;

// Words of usersets: what was found plus 1, and the height above it. 0: unknown.
const OPEN = PENDING + 1;
const CODE_BITS = 3;
const CODE_MASK = (1 << CODE_BITS) - 1;
const CAPACITY_FIRST = 64;
/** Leaves, and entries of lists, that one visit meets at most: a rewrite may name the same relations over and over. */
const LEAVES_MAX = 256;
const ENTRIES_MAX = 1_024;
const NOTHING: readonly number[] = [];

/** A userset that is being evaluated. */
type OpenUserset = {
  readonly entity: number;
  readonly relation: number;
  /** Its index among the shared ones; -1 for the object that was asked about. */
  readonly at: number;
  /** Leaves of its rewrite whose lists were counted as reads, and those reads. */
  leavesCounted: number;
  reads: number;
  /** Indexes of the usersets that have to be known first. */
  waitsFor: readonly number[];
  next: number;
};

/** The userset whose rewrite is being visited. */
type Looked = {
  readonly frame: OpenUserset;
  readonly relation: number;
  /** The leaf that certainly holds, and the usersets that it rests on. */
  readonly ground: Op | undefined;
  readonly groundHeight: number;
};

/**
 * Values of usersets for one target, each found once however many objects of a list rest on it: their parents, the
 * groups that they name, and what those rest on. Each is Check's value of it with the whole depth left, with the
 * number of usersets that it rests on one below the other (`Outcome.height`). An object's own relations are visited
 * and not kept; these visits count as entries do.
 *
 * Without cycles the well-founded model (Van Gelder 1991) is found operand by operand. Cycles and long lists are left
 * to a `CheckRun`. The value is UNCLEAR, too, where more usersets are in a row than the depth bound allows.
 */
export class SharedValues {
  /** The value of the object that was started last, once `step` returned false. */
  value: Value | typeof UNCLEAR = UNCLEAR;
  readonly #scope: Scope;
  readonly #target: Target;
  readonly #walk: ObjectWalk;
  readonly #usersets = new PairTable(CAPACITY_FIRST);
  #words = new Uint32Array(CAPACITY_FIRST);
  readonly #stack: OpenUserset[] = [];
  /** Finds the value of the top of the stack. */
  #run: CheckRun | undefined;
  // State of the visit of one userset.
  #missing: number[] = [];
  #leaves = 0;
  #entriesMax = 0;
  #isLong = false;
  #height = 0;
  // State of the visit of one leaf.
  #leaf: Value = FALSE;
  #leafHeight = 0;
  #isLeafUnclear = false;

  /** `walk` began at `target`, which is a user or exact, and has ended: what is sure there holds. */
  constructor(scope: Scope, target: Target, walk: ObjectWalk) {
    this.#scope = scope;
    this.#target = target;
    this.#walk = walk;
  }

  /** Begins with a relation of an object. */
  start(entity: number, relation: number): void {
    this.#stack.length = 0;
    this.#run = undefined;
    this.#open(entity, relation, -1);
  }

  /** Visits one userset; false when the value is found. Errors: BUDGET_EXHAUSTED. */
  step(): boolean {
    const frame = this.#stack[this.#stack.length - 1];
    if (frame === undefined) return false;
    if (this.#run !== undefined) this.#stepRun(frame, this.#run);
    else if (frame.next < frame.waitsFor.length) this.#wait(frame);
    else this.#visit(frame);
    return this.#stack.length > 0;
  }

  #open(entity: number, relation: number, at: number): void {
    this.#stack.push({
      entity,
      relation,
      at,
      leavesCounted: 0,
      reads: 0,
      waitsFor: NOTHING,
      next: 0,
    });
    if (at >= 0) this.#words[at] = OPEN;
  }

  #wait(frame: OpenUserset): void {
    const at = frame.waitsFor[frame.next] as number;
    const code = (this.#words[at] as number) & CODE_MASK;
    if (code === 0) {
      if (this.#stack.length > this.#scope.depthMax) this.#giveUp(false);
      else this.#open(this.#usersets.firstOf(at), this.#usersets.secondOf(at), at);
    } else if (code === OPEN) {
      this.#giveUp(true);
    } else {
      frame.next = code === TRUE + 1 ? frame.waitsFor.length : frame.next + 1;
    }
  }

  /**
   * Ends what was begun: usersets rest on themselves, too many are in a row, or a list is long. What the object waits for is left to one
   * check if it is a single userset, which others may share; else to the check of the object. Their reads are those of that check.
   */
  #giveUp(mayShare: boolean): void {
    const isShared = mayShare && this.#stack.length > 1 && this.#stack[0]?.waitsFor.length === 1;
    let reads = 0;
    for (let at = this.#stack.length - 1; at > 0; at--) {
      const frame = this.#stack[at] as OpenUserset;
      reads += frame.reads;
      if (isShared && at === 1) {
        this.#run = new CheckRun(this.#scope, this.#target);
        this.#run.start(frame.entity, frame.relation);
        break;
      }
      this.#words[frame.at] = isShared ? 0 : UNCLEAR + 1;
      this.#stack.pop();
    }
    this.#scope.uncharge(reads);
    if (isShared) return;
    this.#stack.length = 0;
    this.value = UNCLEAR;
  }

  #stepRun(frame: OpenUserset, run: CheckRun): void {
    if (run.run(0) === 'more') return;
    this.#run = undefined;
    const { value, height, isDepthExceeded } = run.outcome;
    const isUnclear = this.#scope.hasDeepCycle || (value === UNDETERMINED && isDepthExceeded);
    this.#close(frame, isUnclear ? UNCLEAR : value, height);
  }

  #close(frame: OpenUserset, found: Value | typeof UNCLEAR, height: number): void {
    this.#stack.pop();
    if (frame.at >= 0) {
      this.#words[frame.at] = (height << CODE_BITS) | (found + 1);
      return;
    }
    const isTooHigh = found !== UNDETERMINED && height > this.#scope.depthMax;
    this.value = isTooHigh ? UNCLEAR : found;
  }

  #visit(frame: OpenUserset): void {
    if (this.#missing.length > 0) this.#missing = [];
    this.#leaves = 0;
    this.#entriesMax = this.#scope.entriesSeen + ENTRIES_MAX;
    this.#isLong = false;
    const found = this.#userset(frame, frame.relation);
    if (this.#isLong && (found === PENDING || found === UNCLEAR)) {
      this.#giveUp(true);
    } else if (found === PENDING) {
      frame.waitsFor = this.#missing;
      frame.next = 0;
    } else {
      this.#close(frame, found, this.#height);
    }
  }

  /** A relation of the object at work; sets #height. */
  #userset(frame: OpenUserset, relation: number): KnownOrNot {
    const { entity } = frame;
    const level = this.#walk.levelOf(entity, relation);
    if (level > 0) {
      this.#height = level;
      return TRUE;
    }
    const { model, reader } = this.#scope;
    const program = model.programOf(reader.namespaceOf(entity), relation);
    let found: KnownOrNot;
    if (program === undefined || program.root.kind === OP_LEAF) {
      found = this.#leafOf(program === undefined ? THIS_OP : program.root, frame, relation);
    } else {
      const ground = level < 0 ? program.positive : undefined;
      found = this.#operand(program.root, { frame, relation, ground, groundHeight: -level - 1 });
    }
    this.#height++;
    return found;
  }

  #operand(op: Op, looked: Looked): KnownOrNot {
    if (op === looked.ground) {
      this.#height = looked.groundHeight;
      return TRUE;
    }
    if (op.kind === OP_LEAF) return this.#leafOf(op, looked.frame, looked.relation);
    if (op.kind === OP_EXCLUSION) return this.#exclusion(op, looked);
    // A union ends at TRUE, an intersection at FALSE; otherwise UNDETERMINED outweighs.
    const ending = op.kind === OP_INTERSECTION ? FALSE : TRUE;
    let value: Value = ending === TRUE ? FALSE : TRUE;
    let height = 0;
    for (const child of op.children) {
      const found = this.#operand(child, looked);
      if (found === PENDING || found === UNCLEAR || found === ending) return found;
      if (found === UNDETERMINED) value = UNDETERMINED;
      height = Math.max(height, this.#height);
    }
    this.#height = height;
    return value;
  }

  #exclusion({ children }: Op, looked: Looked): KnownOrNot {
    const include = this.#operand(children[0] as Op, looked);
    if (include !== TRUE && include !== UNDETERMINED) return include;
    const height = this.#height;
    const exclude = this.#operand(children[1] as Op, looked);
    if (exclude === TRUE) return FALSE;
    if (exclude !== FALSE) return exclude;
    this.#height = Math.max(height, this.#height);
    return include;
  }

  #leafOf(leaf: Op, frame: OpenUserset, relation: number): KnownOrNot {
    if (this.#leaves === LEAVES_MAX || this.#scope.entriesSeen > this.#entriesMax) {
      this.#isLong = true;
      return UNCLEAR;
    }
    const isVisit = this.#count(frame, leaf);
    const missing = this.#missing.length;
    this.#beginLeaf(FALSE, 0, false);
    const isHeld =
      leaf.hasThis &&
      this.#scope.scanThis(frame.entity, relation, this.#target, false, this.#sink, isVisit);
    if (!isHeld) {
      for (const computed of leaf.computed) this.#computed(frame, computed);
      this.#scope.scanWalks(frame.entity, leaf, this.#sink, isVisit);
    }
    this.#height = this.#leafHeight;
    if (this.#leaf === TRUE) this.#missing.length = missing;
    else if (this.#missing.length > missing) return PENDING;
    else if (this.#isLeafUnclear) return UNCLEAR;
    return this.#leaf;
  }

  #beginLeaf(value: Value, height: number, isUnclear: boolean): void {
    this.#leaf = value;
    this.#leafHeight = height;
    this.#isLeafUnclear = isUnclear;
  }

  /** Counts the lists of a leaf; returns whether they count as visits, as they do the second time. */
  #count(frame: OpenUserset, leaf: Op): boolean {
    this.#leaves++;
    const lists = listsOf(leaf);
    if (frame.at < 0 || this.#leaves <= frame.leavesCounted) {
      this.#scope.chargePartialReads(lists);
      return true;
    }
    this.#scope.charge(lists);
    frame.leavesCounted = this.#leaves;
    frame.reads += lists;
    return false;
  }

  /** Visits another relation of the same object, or waits for it where values are kept. */
  #computed(frame: OpenUserset, relation: number): void {
    if (this.#leaf === TRUE) return;
    if (frame.at >= 0) {
      this.#meet(frame.entity, relation, false);
      return;
    }
    const [leaf, height, isUnclear] = [this.#leaf, this.#leafHeight, this.#isLeafUnclear];
    const found = this.#userset(frame, relation);
    this.#beginLeaf(leaf, height, isUnclear);
    // The usersets that it waits for are in `#missing`.
    if (found !== PENDING) this.#accept(found, this.#height, false);
  }

  /** Callbacks for `Scope`'s scan of a leaf. */
  readonly #sink: LeafSink = {
    onDirect: (value) => this.#accept(value, 0, false),
    onChild: (entity, relation, isWeak) => this.#meet(entity, relation, isWeak),
    onRest: () => {
      this.#isLeafUnclear = true;
      this.#isLong = true;
    },
  };

  /** A userset that a tuple leads to; `isWeak` when the tuple could not be decided. */
  #meet(entity: number, relation: number, isWeak: boolean): void {
    if (this.#leaf === TRUE || (isWeak && this.#leaf === UNDETERMINED)) return;
    const at = this.#usersets.insert(entity, relation);
    if (at >= this.#words.length) this.#words = grown(this.#words);
    let word = this.#words[at] as number;
    if (word === 0) {
      word = this.#known(entity, relation);
      this.#words[at] = word;
    }
    const code = word & CODE_MASK;
    if (code === 0 || code === OPEN) this.#missing.push(at);
    else this.#accept((code - 1) as Value | typeof UNCLEAR, word >>> CODE_BITS, isWeak);
  }

  /** The word of a userset that needs no visit. */
  #known(entity: number, relation: number): number {
    const level = this.#walk.levelOf(entity, relation);
    if (level > 0) return (level << CODE_BITS) | (TRUE + 1);
    // An object itself holds nobody.
    return relation === EMPTY_NAME ? (1 << CODE_BITS) | (FALSE + 1) : 0;
  }

  #accept(found: Value | typeof UNCLEAR, height: Outcome['height'], isWeak: boolean): void {
    if (found === UNCLEAR) {
      this.#isLeafUnclear = true;
    } else if (found === TRUE && !isWeak) {
      this.#leaf = TRUE;
      this.#leafHeight = height;
    } else if (found !== FALSE) {
      if (this.#leaf === FALSE) this.#leaf = UNDETERMINED;
    } else if (height > this.#leafHeight) {
      this.#leafHeight = height;
    }
  }
}

function grown(words: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(words.length * 2);
  larger.set(words);
  return larger;
}
