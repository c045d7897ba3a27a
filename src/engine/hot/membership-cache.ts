import {
  EDGE_ABSENT,
  EDGE_NODE_MASK,
  EDGE_QUALIFIED,
  type TupleReader,
  WILDCARD_NODE,
} from '../../model/tuple-reader.ts';
import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import { HOT_PLAIN, type HotModel } from './hot-model.ts';
import { STEPS_UNBOUNDED, type StepMeter } from './step-meter.ts';

/** Nodes of one memberships, and of one part that a summary covers; larger ones are not cached. */
const NODES_MAX = 64;
const LIST_MAX = 256;
/** Levels of nesting that a summary covers. */
const HEIGHT_MAX = 32;
const BYTES_FIRST = 8192;

const chunk = new Uint32Array(LIST_MAX);
/** A list for each level of the recursion. */
const listed = Array.from({ length: HEIGHT_MAX }, () => new Uint32Array(LIST_MAX));
const gathered = new Uint32Array(NODES_MAX);

/** `summaryOf` of a node whose members only a walk can find. */
export const SUMMARY_OPEN = 0;
/** `membershipsOf` of a user without a usable memberships. */
export const MEMBERSHIPS_NONE = -1;

/** Offsets of users whose memberships cannot be used, or was invalidated. */
const UNUSABLE = 0xffff_ffff;
const STALE = 0xffff_fffe;

/** Words of a slot: user, generation, offset of the memberships, unused. */
const SLOT_SHIFT = 2;
const SLOT_GENERATION = 1;
export const SLOT_OFFSET = 2;

/** Words of the memberships of a user before its nodes: their number, and a filter of 64 bits. */
const MEMBERSHIPS_HEADER = 3;

/** Nodes of a page of summaries. */
const PAGE_SHIFT = 10;
const PAGE_NODES = 1 << PAGE_SHIFT;
/** Stored for SUMMARY_OPEN: 0 is not known yet. */
const KNOWN_OPEN = 255;

/**
 * Groups of users, for the hot path. Two caches that answer together:
 * - the memberships of a user: the plain nodes (own tuples only) that hold the user through plain nodes
 *   and edges without qualifier, as far as something refers to them;
 * - the summary of a plain node: its height, if everything below it is plain, unqualified, without
 *   wildcard, free of cycles and small. For such a node, being in the memberships is being a member.
 * Memberships are in typed arrays that double up to a fixed size; summaries are one byte a node on
 * pages by node id (groups have ids close to each other, so that a row has 64). What is full
 * starts anew. Neither holds qualified edges, so neither expires. Belongs to one model version.
 */
export class MembershipCache {
  readonly #reader: TupleReader;
  readonly #model: HotModel;
  readonly #bytesMax: number;
  readonly #meter: StepMeter;
  #membershipBytes = BYTES_FIRST;
  #generation = 1;
  #slots = new Uint32Array(0);
  #arena = new Uint32Array(0);
  #mask = 0;
  #used = 0;
  #memberships = 0;
  #pages: (Uint8Array | undefined)[] = [];
  #pageGenerations: number[] = [];
  #pageCount = 0;
  #budget = 0;

  constructor(
    reader: TupleReader,
    model: HotModel,
    bytesMax: number,
    meter: StepMeter = { steps: STEPS_UNBOUNDED },
  ) {
    this.#reader = reader;
    this.#meter = meter;
    this.#model = model;
    this.#bytesMax = Math.max(BYTES_FIRST * 2, bytesMax);
    this.#allocate();
  }

  /** The memberships; for `isMember`. */
  get arena(): Uint32Array {
    return this.#arena;
  }

  /** Bytes of all arrays. */
  get bytes(): number {
    return this.#membershipBytes + this.#pageCount * PAGE_NODES;
  }

  /** Forgets everything. O(1), but for every 4 billionth time. */
  clear(): void {
    this.#generation++;
    if (this.#generation > 0xffff_ffff) {
      this.#generation = 1;
      this.#slots.fill(0);
      this.#pageGenerations.fill(0);
    }
    this.#used = 0;
    this.#memberships = 0;
  }

  #allocate(): void {
    // Three quarters of the bytes or less for memberships, a quarter for slots.
    const slots = 2 ** Math.floor(Math.log2(this.#membershipBytes / 4 / (4 << SLOT_SHIFT)));
    this.#slots = new Uint32Array(slots << SLOT_SHIFT);
    this.#arena = new Uint32Array((this.#membershipBytes * 3) >>> 4);
    this.#mask = slots - 1;
    this.clear();
  }

  #startAnew(): void {
    // Half of the bytes for memberships, half for summaries.
    if (this.#membershipBytes * 4 > this.#bytesMax) {
      this.clear();
      return;
    }
    this.#membershipBytes *= 2;
    this.#allocate();
  }

  /** The slots, by `homeOf`: the user and the position of the memberships. To be read ahead. */
  get slots(): Uint32Array {
    return this.#slots;
  }

  /** Position in `slots` from which a user is searched for. Hot. */
  homeOf(user: number): number {
    return (hash(user) & this.#mask) << SLOT_SHIFT;
  }

  /** Offset of the user's memberships in `arena`, or MEMBERSHIPS_NONE. Hot when cached. */
  membershipsOf(user: number): number {
    const slot = this.#slotOf(user);
    if (this.#slots[slot + SLOT_GENERATION] !== this.#generation)
      return this.#buildMemberships(user);
    const offset = this.#slots[slot + SLOT_OFFSET] as number;
    if (offset === STALE) return this.#buildMemberships(user);
    return offset === UNUSABLE ? MEMBERSHIPS_NONE : offset;
  }

  /** Forgets one user's memberships: a tuple that names the user was changed. */
  invalidateUser(user: number): void {
    const slot = this.#slotOf(user);
    if (this.#slots[slot + SLOT_GENERATION] === this.#generation) {
      this.#slots[slot + SLOT_OFFSET] = STALE;
    }
  }

  /** Forgets what is known of a node as a set: it may be gone, and its id another node's. */
  invalidateNode(node: number): void {
    const index = node >>> PAGE_SHIFT;
    if (this.#pageGenerations[index] !== this.#generation) return;
    (this.#pages[index] as Uint8Array)[node & (PAGE_NODES - 1)] = 0;
  }

  /** Height of a plain node whose members are those with it in their memberships, or SUMMARY_OPEN. Hot. */
  summaryOf(node: number): number {
    const index = node >>> PAGE_SHIFT;
    if (this.#pageGenerations[index] === this.#generation) {
      const known = (this.#pages[index] as Uint8Array)[node & (PAGE_NODES - 1)] as number;
      if (known !== 0) return known === KNOWN_OPEN ? SUMMARY_OPEN : known;
    }
    return this.#summarize(node);
  }

  /** Word of a user's slot, or of the free slot where it would be. */
  #slotOf(user: number): number {
    let slot = hash(user) & this.#mask;
    for (;;) {
      const at = slot << SLOT_SHIFT;
      if (this.#slots[at + SLOT_GENERATION] !== this.#generation) return at;
      if (this.#slots[at] === user) return at;
      slot = (slot + 1) & this.#mask;
    }
  }

  #buildMemberships(user: number): number {
    const count = this.#gather(user);
    if (this.#meter.steps < 0) return MEMBERSHIPS_NONE;
    const isFull = this.#memberships * 2 > this.#mask;
    if (isFull || this.#used + MEMBERSHIPS_HEADER + NODES_MAX > this.#arena.length)
      this.#startAnew();
    const slot = this.#slotOf(user);
    if (this.#slots[slot + SLOT_GENERATION] !== this.#generation) this.#memberships++;
    this.#slots[slot] = user;
    this.#slots[slot + SLOT_GENERATION] = this.#generation;
    this.#slots[slot + SLOT_OFFSET] = count < 0 ? UNUSABLE : this.#used;
    if (count < 0) return MEMBERSHIPS_NONE;
    const offset = this.#used;
    const arena = this.#arena;
    arena.fill(0, offset, offset + MEMBERSHIPS_HEADER);
    arena[offset] = count;
    for (let i = 0; i < count; i++) {
      const node = gathered[i] as number;
      const bit = filterBit(node);
      const filter = offset + 1 + (bit >>> 5);
      arena[filter] = (arena[filter] as number) | (1 << (bit & 31));
      arena[offset + MEMBERSHIPS_HEADER + i] = node;
    }
    this.#used = offset + MEMBERSHIPS_HEADER + count;
    if (DEBUG_ASSERTIONS) {
      assert(this.#used <= arena.length, 'a closure lies in the arena');
      assert(this.#memberships <= this.#mask, 'a slot stays free, where a search ends');
      assert(this.bytes <= this.#bytesMax, 'the caches of groups keep within their bytes');
    }
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
    this.#meter.steps -= total;
    if (this.#meter.steps < 0) return -1;
    for (let i = 0; i < total; i++) {
      const entry = chunk[i] as number;
      const holder = entry & EDGE_NODE_MASK;
      if (reader.reverseCount(holder) === 0 || !this.#isPlain(holder)) continue;
      if (!this.#model.admits(reader, holder, subject, entry >= EDGE_QUALIFIED)) continue;
      if (entry >= EDGE_QUALIFIED) return -1;
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

  /**
   * Height of the groups below a plain node; SUMMARY_OPEN if it cannot have a summary. Tuples that do not count make it higher
   * at most.
   */
  #measure(node: number, level: number): number {
    const reader = this.#reader;
    if (level >= HEIGHT_MAX || --this.#budget < 0) return SUMMARY_OPEN; // also ends every cycle
    if (reader.edge(node, WILDCARD_NODE) !== EDGE_ABSENT) return SUMMARY_OPEN;
    const count = reader.setCount(node);
    if (count === 0) return 1;
    this.#meter.steps -= count;
    if (count > LIST_MAX || this.#meter.steps < 0) return SUMMARY_OPEN;
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

  #summarize(node: number): number {
    this.#budget = NODES_MAX;
    const height = this.#isPlain(node) ? this.#measure(node, 1) : SUMMARY_OPEN;
    if (this.#meter.steps < 0) return SUMMARY_OPEN;
    const index = node >>> PAGE_SHIFT;
    let page = this.#pages[index];
    if (page === undefined) {
      if ((this.#pageCount + 1) * PAGE_NODES * 2 > this.#bytesMax) {
        this.#pages = [];
        this.#pageGenerations = [];
        this.#pageCount = 0;
      }
      page = new Uint8Array(PAGE_NODES);
      while (this.#pages.length <= index) {
        this.#pages.push(undefined);
        this.#pageGenerations.push(0);
      }
      this.#pages[index] = page;
      this.#pageCount++;
    } else if (this.#pageGenerations[index] !== this.#generation) {
      page.fill(0);
    }
    this.#pageGenerations[index] = this.#generation;
    page[node & (PAGE_NODES - 1)] = height === SUMMARY_OPEN ? KNOWN_OPEN : height;
    return height;
  }
}

/** Whether a node is in the memberships that starts at `start` of a cache's arena. Hot. */
export function isMember(arena: Uint32Array, start: number, node: number): boolean {
  const bit = filterBit(node);
  if ((((arena[start + 1 + (bit >>> 5)] as number) >>> (bit & 31)) & 1) === 0) return false;
  const end = start + MEMBERSHIPS_HEADER + (arena[start] as number);
  for (let i = start + MEMBERSHIPS_HEADER; i < end; i++) if (arena[i] === node) return true;
  return false;
}

function filterBit(node: number): number {
  return Math.imul(node, 0x9e3779b1) >>> 26;
}

function hash(key: number): number {
  const mixed = Math.imul(key, 0x9e3779b1);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
