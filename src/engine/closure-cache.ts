import {
  EDGE_ABSENT,
  EDGE_QUALIFIED,
  type TupleReader,
  WILDCARD_NODE,
} from '../model/tuple-reader.ts';
import { HOT_PLAIN, type HotModel } from './hot-model.ts';

/** Nodes of one closure, and of one part that a summary covers; larger ones are not cached. */
const NODES_MAX = 64;
const LIST_MAX = 256;
/** Levels of nesting that a summary covers. */
const HEIGHT_MAX = 32;
const BYTES_FIRST = 8192;

const chunk = new Uint32Array(LIST_MAX);
/** A list for each level of the recursion. */
const listed = Array.from({ length: HEIGHT_MAX }, () => new Uint32Array(LIST_MAX));
const gathered = new Uint32Array(NODES_MAX);

/** `summaryOf` of a node whose members only a walk can tell. */
export const SUMMARY_OPEN = 0;
/** `closureOf` of a user without a usable closure. */
export const CLOSURE_NONE = -1;

/** Offsets of users whose closure cannot be used, or was invalidated. */
const UNUSABLE = 0xffff_ffff;
const STALE = 0xffff_fffe;

/**
 * Groups of users, for the hot path. Two caches that answer together:
 * - the closure of a user: the plain nodes (own tuples only) that hold the user through plain nodes
 *   and edges without qualifier, as far as something refers to them;
 * - the summary of a plain node: its height, if everything below it is plain, unqualified, without
 *   wildcard, free of cycles and small. For such a node, being in the closure is being a member.
 * Typed arrays that double up to a fixed size; a full cache starts anew. Neither holds qualified
 * edges, so neither expires. Belongs to one model version.
 */
export class ClosureCache {
  readonly #reader: TupleReader;
  readonly #model: HotModel;
  readonly #bytesMax: number;
  #bytes = BYTES_FIRST;
  #generation = 1;
  #keys = new Uint32Array(0);
  #keyGenerations = new Uint32Array(0);
  #offsets = new Uint32Array(0);
  #summaryKeys = new Uint32Array(0);
  #summaryGenerations = new Uint32Array(0);
  #summaries = new Uint8Array(0);
  #arena = new Uint32Array(0);
  #mask = 0;
  #used = 0;
  #closures = 0;
  #summaryCount = 0;
  #budget = 0;

  constructor(reader: TupleReader, model: HotModel, bytesMax: number) {
    this.#reader = reader;
    this.#model = model;
    this.#bytesMax = Math.max(BYTES_FIRST, bytesMax);
    this.#allocate();
  }

  /** Count, then nodes, of each closure. */
  get arena(): Uint32Array {
    return this.#arena;
  }

  /** Bytes of all arrays. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Forgets everything. O(1). */
  clear(): void {
    this.#generation++;
    this.#used = 0;
    this.#closures = 0;
    this.#summaryCount = 0;
  }

  #allocate(): void {
    // Half of the bytes for closures, half for two tables of 12 and 9 bytes a slot.
    const slots = 2 ** Math.floor(Math.log2(this.#bytes / 2 / 21));
    this.#keys = new Uint32Array(slots);
    this.#keyGenerations = new Uint32Array(slots);
    this.#offsets = new Uint32Array(slots);
    this.#summaryKeys = new Uint32Array(slots);
    this.#summaryGenerations = new Uint32Array(slots);
    this.#summaries = new Uint8Array(slots);
    this.#arena = new Uint32Array(this.#bytes >> 3);
    this.#mask = slots - 1;
    this.clear();
  }

  #startAnew(): void {
    if (this.#bytes * 2 > this.#bytesMax) {
      this.clear();
      return;
    }
    this.#bytes *= 2;
    this.#allocate();
  }

  /** Offset of the user's closure in `arena`, or CLOSURE_NONE. Hot when cached. */
  closureOf(user: number): number {
    const slot = this.#slotOf(user);
    if (this.#keyGenerations[slot] !== this.#generation) return this.#buildClosure(user);
    const offset = this.#offsets[slot] as number;
    if (offset === STALE) return this.#buildClosure(user);
    return offset === UNUSABLE ? CLOSURE_NONE : offset;
  }

  /** Forgets one user's closure: a tuple that names the user was changed. */
  invalidateUser(user: number): void {
    const slot = this.#slotOf(user);
    if (this.#keyGenerations[slot] === this.#generation) this.#offsets[slot] = STALE;
  }

  /** Height of a plain node whose members are those with it in their closure, or SUMMARY_OPEN. */
  summaryOf(node: number): number {
    let slot = hash(node) & this.#mask;
    while (this.#summaryGenerations[slot] === this.#generation) {
      if (this.#summaryKeys[slot] === node) return this.#summaries[slot] as number;
      slot = (slot + 1) & this.#mask;
    }
    this.#budget = NODES_MAX;
    const height = this.#measure(node, 1);
    this.#remember(node, height);
    return height;
  }

  /** Slot of a user, or the free slot where it would be. */
  #slotOf(user: number): number {
    let slot = hash(user) & this.#mask;
    while (this.#keyGenerations[slot] === this.#generation && this.#keys[slot] !== user) {
      slot = (slot + 1) & this.#mask;
    }
    return slot;
  }

  #buildClosure(user: number): number {
    const count = this.#gather(user);
    const isFull = this.#closures * 2 > this.#mask;
    if (isFull || this.#used + NODES_MAX + 1 > this.#arena.length) this.#startAnew();
    const slot = this.#slotOf(user);
    if (this.#keyGenerations[slot] !== this.#generation) this.#closures++;
    this.#keys[slot] = user;
    this.#keyGenerations[slot] = this.#generation;
    this.#offsets[slot] = count < 0 ? UNUSABLE : this.#used;
    if (count < 0) return CLOSURE_NONE;
    const offset = this.#used;
    this.#arena[offset] = count;
    for (let i = 0; i < count; i++) this.#arena[offset + 1 + i] = gathered[i] as number;
    this.#used = offset + 1 + count;
    return offset;
  }

  /** Nodes above a user into `gathered`; their number, or -1. */
  #gather(user: number): number {
    let count = this.#gatherHolders(user, 0);
    for (let i = 0; i < count && count >= 0; i++) {
      count = this.#gatherHolders(gathered[i] as number, count);
    }
    return count;
  }

  #gatherHolders(subject: number, found: number): number {
    const reader = this.#reader;
    let count = found;
    if (reader.reverseCount(subject) > LIST_MAX) return -1;
    const total = reader.readReverse(subject, 0, chunk, 0);
    for (let i = 0; i < total; i++) {
      const holder = chunk[i] as number;
      if (holder >= EDGE_QUALIFIED) return -1;
      if (reader.reverseCount(holder) === 0 || !this.#isPlain(holder)) continue;
      let known = false;
      for (let k = 0; k < count && !known; k++) known = gathered[k] === holder;
      if (known) continue;
      if (count === NODES_MAX) return -1;
      gathered[count++] = holder;
    }
    return count;
  }

  #isPlain(node: number): boolean {
    const reader = this.#reader;
    const namespace = reader.namespaceOf(reader.entityOf(node));
    return this.#model.single(namespace, reader.relationOf(node)) === HOT_PLAIN;
  }

  /** Height of what lies below a plain node; SUMMARY_OPEN if a summary cannot stand for it. */
  #measure(node: number, level: number): number {
    const reader = this.#reader;
    if (level >= HEIGHT_MAX || --this.#budget < 0) return SUMMARY_OPEN; // also ends every cycle
    if (reader.edge(node, WILDCARD_NODE) !== EDGE_ABSENT) return SUMMARY_OPEN;
    const count = reader.setCount(node);
    if (count === 0) return 1;
    if (count > LIST_MAX) return SUMMARY_OPEN;
    const children = listed[level] as Uint32Array;
    reader.readSets(node, 0, children, 0);
    let height = 0;
    for (let i = 0; i < count; i++) {
      const child = children[i] as number;
      if (child >= EDGE_QUALIFIED) return SUMMARY_OPEN;
      if (reader.relationOf(child) === 0) continue;
      if (!this.#isPlain(child)) return SUMMARY_OPEN;
      const below = this.#measure(child, level + 1);
      if (below === SUMMARY_OPEN) return SUMMARY_OPEN;
      if (below > height) height = below;
    }
    return height + 1;
  }

  #remember(node: number, height: number): void {
    if (this.#summaryCount * 2 > this.#mask) this.#startAnew();
    let slot = hash(node) & this.#mask;
    while (this.#summaryGenerations[slot] === this.#generation) slot = (slot + 1) & this.#mask;
    this.#summaryKeys[slot] = node;
    this.#summaryGenerations[slot] = this.#generation;
    this.#summaries[slot] = height;
    this.#summaryCount++;
  }
}

function hash(key: number): number {
  const mixed = Math.imul(key, 0x9e3779b1);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
