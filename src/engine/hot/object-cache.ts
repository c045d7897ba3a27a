import {
  EDGE_NODE_MASK,
  EDGE_QUALIFIED,
  OBJECT_NODE,
  OBJECT_RELATION,
  OBJECT_SETS,
  OBJECT_STRIDE,
  OBJECT_USERS,
  type TupleReader,
  WILDCARD_NODE,
  WORD_LIST,
} from '../../model/tuple-reader.ts';
import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import { HOT_PLAIN, type HotModel, type HotState } from './hot-model.ts';
import { type MembershipCache, SUMMARY_OPEN } from './membership-cache.ts';
import { ObjectTable } from './object-table.ts';
import { STEPS_UNBOUNDED, type StepMeter } from './step-meter.ts';

/** Words of a row: one cache line of 64 bytes. */
const ROW_SHIFT = 4;
const ROW_WORDS = 1 << ROW_SHIFT;

// Words of a row behind those of ObjectTable.
/** Counts, one byte each: users, user lists, groups, children; ROW_OPAQUE if it does not fit. */
export const ROW_COUNTS = 3;
/** Sum of the heights of the groups. */
export const ROW_HEIGHT = 4;
/** Users; then lists as pairs (node, word); groups; children as pairs (id, kind). */
export const ROW_ENTRIES = 5;
const ENTRIES_MAX = ROW_WORDS - ROW_ENTRIES;
/** Counts of an object that must be read from the index each time. */
export const ROW_OPAQUE = 0xffff_ffff;

/** Lists of at most this many users are copied. */
const FEW_USERS = 6;
/** Nodes of an object that is decoded. */
const NODES_MAX = 12;
const object = new Uint32Array(NODES_MAX * OBJECT_STRIDE);
const subjects = new Uint32Array(ENTRIES_MAX);
const users = new Uint32Array(ENTRIES_MAX);
const fewUsers = new Uint32Array(FEW_USERS);
const lists = new Uint32Array(ENTRIES_MAX);
const groups = new Uint32Array(ENTRIES_MAX);
const children = new Uint32Array(ENTRIES_MAX);

/**
 * Small objects as one state sees them, decoded into one cache line each: the users and groups that
 * hold it, and what to visit next. A visit reads one row instead of the object's record, its
 * nodes and its lists. A row is the index's content in another form, no decision; it holds no qualified
 * edge. Belongs to one model version.
 */
export class ObjectCache {
  /** Table of the rows. */
  readonly table: ObjectTable;
  readonly #reader: TupleReader;
  readonly #model: HotModel;
  readonly #memberships: Pick<MembershipCache, 'summaryOf'>;
  readonly #meter: StepMeter;
  // Results of `#decode`.
  #users = 0;
  #lists = 0;
  #groups = 0;
  #children = 0;
  #height = 0;
  #isFull = false;
  /** Users of a list that is copied into the row rather than named by it. */
  #fewUsers = FEW_USERS;

  constructor(
    reader: TupleReader,
    model: HotModel,
    memberships: Pick<MembershipCache, 'summaryOf'>,
    bytesMax: number,
    meter: StepMeter = { steps: STEPS_UNBOUNDED },
  ) {
    this.#meter = meter;
    this.#reader = reader;
    this.#model = model;
    this.#memberships = memberships;
    this.table = new ObjectTable(ROW_SHIFT, bytesMax);
  }

  /** The rows; word i of the row at `at` is `rows[at + i]`. */
  get lines(): Uint32Array {
    return this.table.words;
  }

  /** Bytes of the table. */
  get bytes(): number {
    return this.table.bytes;
  }

  /** Forgets everything. O(1), but for every 4 billionth time. */
  clear(): void {
    this.table.clear();
  }

  /** Forgets what is known of one object: a tuple of it was changed. O(states of the model). */
  invalidate(entity: number, namespace: number): void {
    const { states } = this.#model;
    for (let index = 1; index < states.length; index++) {
      if (states[index]?.namespace === namespace) this.table.drop(entity, index);
    }
  }

  /** Position of the row of an object in a state, which is filled if need be. Hot. */
  rowOf(entity: number, state: HotState): number {
    const at = this.table.rowOf(entity, state.index);
    return at < 0 ? this.#fill(entity, state) : at;
  }

  #fill(entity: number, state: HotState): number {
    this.#fewUsers = FEW_USERS;
    let fits = this.#decode(entity, state);
    if (!fits && this.#isFull) {
      this.#fewUsers = 0;
      fits = this.#decode(entity, state);
    }
    const at = this.table.insert(entity, state.index);
    const { words } = this.table;
    // An incomplete row lacks some of the groups.
    if (this.#meter.steps < 0) this.table.forget(at);
    words[at + ROW_COUNTS] = fits
      ? this.#users | (this.#lists << 8) | (this.#groups << 16) | (this.#children << 24)
      : ROW_OPAQUE;
    if (!fits) return at;
    words[at + ROW_HEIGHT] = this.#height;
    let to = at + ROW_ENTRIES;
    for (let i = 0; i < this.#users; i++) words[to++] = users[i] as number;
    for (let i = 0; i < this.#lists * 2; i++) words[to++] = lists[i] as number;
    for (let i = 0; i < this.#groups; i++) words[to++] = groups[i] as number;
    for (let i = 0; i < this.#children * 2; i++) words[to++] = children[i] as number;
    if (DEBUG_ASSERTIONS) assert(to <= at + ROW_WORDS, 'what fits lies in its line');
    return at;
  }

  /** Gathers what a visit of an object comes to. Whether it fits into a row. */
  #decode(entity: number, state: HotState): boolean {
    this.#users = 0;
    this.#lists = 0;
    this.#groups = 0;
    this.#children = 0;
    this.#height = 0;
    this.#isFull = false;
    const end = this.#reader.readObject(entity, object) * OBJECT_STRIDE;
    if (end < 0) return false;
    for (let at = 0; at < end; at += OBJECT_STRIDE) {
      const relation = object[at + OBJECT_RELATION] as number;
      const action = relation < state.actions.length ? (state.actions[relation] as number) : 0;
      if (action === 0) continue;
      const sets = object[at + OBJECT_SETS] as number;
      const node = object[at + OBJECT_NODE] as number;
      const ownUsers = object[at + OBJECT_USERS] as number;
      const own = (action & 1) !== 0;
      if (own && !this.#addUsers(node, ownUsers)) return false;
      if (sets === 0) continue;
      const count = this.#reader.readWord(sets, subjects);
      if (count < 0) return false;
      this.#meter.steps -= count;
      for (let i = 0; i < count; i++) {
        const subject = subjects[i] as number;
        if (this.#model.isPartial && !this.#admits(node, subject)) continue;
        if (subject >= EDGE_QUALIFIED) return false;
        if (own && !this.#addSet(subject)) return false;
        if (action > 1 && !this.#addWalk(subject, action >> 1)) return false;
      }
    }
    return true;
  }

  #hasCapacity(): boolean {
    const taken = this.#users + this.#lists * 2 + this.#groups + this.#children * 2;
    this.#isFull = taken > ENTRIES_MAX;
    return !this.#isFull;
  }

  #addUsers(node: number, word: number): boolean {
    if (word === 0) return true;
    if ((word & WORD_LIST) === 0) {
      if (this.#model.isPartial && !this.#admits(node, word)) return true;
      if (word >= EDGE_QUALIFIED || word === WILDCARD_NODE) return false;
      users[this.#users++] = word;
    } else if (!this.#addFewUsers(node, word)) {
      lists[this.#lists * 2] = node;
      lists[this.#lists++ * 2 + 1] = word;
    }
    return this.#hasCapacity();
  }

  /** Copies a short list, since a scan of the row is cheaper than a read of the list. Returns whether it did. */
  #addFewUsers(node: number, word: number): boolean {
    const count = this.#reader.readWord(word, fewUsers);
    if (count < 0 || count > this.#fewUsers || this.#users + count > ENTRIES_MAX) return false;
    let kept = 0;
    for (let i = 0; i < count; i++) {
      const user = fewUsers[i] as number;
      if (this.#model.isPartial && !this.#admits(node, user)) continue;
      if (user >= EDGE_QUALIFIED || user === WILDCARD_NODE) return false;
      fewUsers[kept++] = user;
    }
    for (let i = 0; i < kept; i++) users[this.#users++] = fewUsers[i] as number;
    return true;
  }

  /** Whether an entry of a node's list is a tuple that counts. */
  #admits(node: number, entry: number): boolean {
    const subject = entry & EDGE_NODE_MASK;
    return this.#model.admits(this.#reader, node, subject, entry >= EDGE_QUALIFIED);
  }

  #addSet(child: number): boolean {
    const height = this.#memberships.summaryOf(child);
    if (height !== SUMMARY_OPEN) {
      this.#height += height;
      groups[this.#groups++] = child;
      return this.#hasCapacity();
    }
    const relation = this.#reader.relationOf(child);
    if (relation === 0) return true; // an object itself holds nobody
    const entity = this.#reader.entityOf(child);
    const kind = this.#model.single(this.#reader.namespaceOf(entity), relation);
    return this.#addChild(kind === HOT_PLAIN ? child : entity, kind);
  }

  #addWalk(child: number, target: number): boolean {
    const entity = this.#reader.entityOf(child);
    return this.#addChild(entity, this.#model.ofTarget(target, this.#reader.namespaceOf(entity)));
  }

  #addChild(id: number, kind: number): boolean {
    if (kind < 0) return false;
    children[this.#children * 2] = id;
    children[this.#children++ * 2 + 1] = kind;
    return this.#hasCapacity();
  }
}
