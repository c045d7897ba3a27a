import type { HotModel, HotState } from './hot-model.ts';
import {
  LINE_COUNTS,
  LINE_ENTRIES,
  LINE_HEIGHT,
  LINE_OPAQUE,
  type ObjectCache,
} from './object-cache.ts';

/** Words of a chain: two cache lines of 64 bytes. */
const CHAIN_SHIFT = 5;
const CHAIN_WORDS = 1 << CHAIN_SHIFT;
/** As in ObjectCache: so many words on, chains begin at a cache line. */
const ALIGN_WORDS = 12;

// Words of a chain.
const CHAIN_ENTITY = 0;
const CHAIN_STATE = 1;
const CHAIN_GENERATION = 2;
/** Users, lists, groups as in a line of ObjectCache; never children. LINE_OPAQUE if it does not fit. */
export const CHAIN_COUNTS = 3;
/** Usersets that the chain stands for, the heights of its groups included. */
export const CHAIN_WEIGHT = 4;
export const CHAIN_READS = 5;
/** Number of the last change up to which the chain is known to hold. */
const CHAIN_CLOCK = 6;
const CHAIN_OBJECTS = 7;
export const CHAIN_ENTRIES = 8;
/** Hashes of the objects, 16 bits each. */
const CHAIN_HASHES = 28;
const ENTRIES_MAX = CHAIN_HASHES - CHAIN_ENTRIES;
/** Objects of one chain. */
const OBJECTS_MAX = 8;

const CHAINS_FIRST = 32;
/** Stamps for each chain of the table, up to as many as 16 bits tell apart. */
const STAMPS_SHIFT = 2;
const STAMPS_MAX = 65_536;

const ids = new Uint32Array(OBJECTS_MAX);
const states = new Uint32Array(OBJECTS_MAX);
const users = new Uint32Array(ENTRIES_MAX);
const lists = new Uint32Array(ENTRIES_MAX);
const groups = new Uint32Array(ENTRIES_MAX);

/**
 * What an object and all that lie above it (folder, parent folder, workspace) come to in one state:
 * their users, lists and groups side by side, so that a check of a document reads its own line and
 * one chain instead of a line a level. Only small trees without a cycle or a second path to an
 * object have one. Direct-mapped; doubles up to a fixed size.
 *
 * A change of an object stamps the slot of its hash. A chain holds as long as none of its objects
 * was stamped since; while nothing was changed at all, one comparison tells. So a change costs O(1)
 * however many chains lead through the object. Content of the index in another form, no decision;
 * belongs to one model version.
 */
export class ChainCache {
  /** The chains; word i of the chain at `at` is `lines[at + i]`. */
  lines: Uint32Array;
  readonly #model: HotModel;
  readonly #objects: ObjectCache;
  readonly #bytesMax: number;
  #stamps: Uint32Array;
  #mask = CHAINS_FIRST - 1;
  #generation = 1;
  /** Number of the last change. */
  #clock = 0;
  #collisions = 0;
  /** Chains that were built since the table was empty. */
  #filled = 0;
  // What `#gather` has found.
  #count = 0;
  #users = 0;
  #lists = 0;
  #groups = 0;
  #weight = 0;
  #reads = 0;

  constructor(model: HotModel, objects: ObjectCache, bytesMax: number) {
    this.#model = model;
    this.#objects = objects;
    this.#bytesMax = bytesMax;
    this.lines = allocate(CHAINS_FIRST);
    this.#stamps = new Uint32Array(CHAINS_FIRST << STAMPS_SHIFT);
  }

  /** Bytes of the tables. */
  get bytes(): number {
    return this.lines.byteLength + this.#stamps.byteLength;
  }

  /** Forgets everything. O(1), but for every 4 billionth time. */
  clear(): void {
    this.#filled = 0;
    this.#generation++;
    if (this.#generation > 0xffff_ffff) {
      this.#generation = 1;
      this.lines.fill(0);
    }
  }

  /** A tuple of the object was changed: forgets all chains through it. O(1). */
  invalidate(entity: number): void {
    this.#clock++;
    if (this.#clock > 0xffff_ffff) {
      this.#clock = 1;
      this.#stamps.fill(0);
      this.lines.fill(0);
    }
    this.#stamps[hash(entity) & (this.#stamps.length - 1)] = this.#clock;
  }

  /** Position of the chain from an object in a state, which is built if need be. Hot. */
  chainOf(entity: number, state: HotState): number {
    const at = this.#placeOf(entity, state.index);
    const { lines: words } = this;
    if (
      words[at + CHAIN_ENTITY] === entity &&
      words[at + CHAIN_STATE] === state.index &&
      words[at + CHAIN_GENERATION] === this.#generation &&
      (words[at + CHAIN_CLOCK] === this.#clock || this.#holds(at))
    ) {
      return at;
    }
    return this.#fill(entity, state);
  }

  #placeOf(entity: number, state: number): number {
    const mixed = Math.imul(entity, 0x9e3779b1);
    return ((((mixed >>> 15) + state) & this.#mask) << CHAIN_SHIFT) + ALIGN_WORDS;
  }

  /** Whether no object of a chain was changed since it was last looked at. */
  #holds(at: number): boolean {
    const { lines: words } = this;
    const stamps = this.#stamps;
    const since = words[at + CHAIN_CLOCK] as number;
    const count = words[at + CHAIN_OBJECTS] as number;
    for (let i = 0; i < count; i++) {
      const pair = words[at + CHAIN_HASHES + (i >>> 1)] as number;
      const slot = (pair >>> ((i & 1) << 4)) & (stamps.length - 1) & 0xffff;
      if ((stamps[slot] as number) > since) return false;
    }
    words[at + CHAIN_CLOCK] = this.#clock;
    return true;
  }

  #fill(entity: number, state: HotState): number {
    const fits = this.#gather(entity, state);
    let at = this.#placeOf(entity, state.index);
    const isOther =
      this.lines[at + CHAIN_ENTITY] !== entity || this.lines[at + CHAIN_STATE] !== state.index;
    if (this.lines[at + CHAIN_GENERATION] !== this.#generation) this.#filled++;
    else if (isOther) {
      this.#collisions++;
      if (this.#collisions * 2 > this.#mask && this.#grow()) {
        at = this.#placeOf(entity, state.index);
      }
    }
    const { lines: words } = this;
    words[at + CHAIN_ENTITY] = entity;
    words[at + CHAIN_STATE] = state.index;
    words[at + CHAIN_GENERATION] = this.#generation;
    words[at + CHAIN_COUNTS] = fits
      ? this.#users | (this.#lists << 8) | (this.#groups << 16)
      : LINE_OPAQUE;
    words[at + CHAIN_WEIGHT] = this.#weight;
    words[at + CHAIN_READS] = this.#reads;
    words[at + CHAIN_CLOCK] = this.#clock;
    words[at + CHAIN_OBJECTS] = this.#count;
    words.fill(0, at + CHAIN_HASHES, at + CHAIN_WORDS);
    for (let i = 0; i < this.#count; i++) {
      const word = at + CHAIN_HASHES + (i >>> 1);
      words[word] = (words[word] as number) | (hash(ids[i] as number) << ((i & 1) << 4));
    }
    if (!fits) return at;
    let to = at + CHAIN_ENTRIES;
    for (let i = 0; i < this.#users; i++) words[to++] = users[i] as number;
    for (let i = 0; i < this.#lists * 2; i++) words[to++] = lists[i] as number;
    for (let i = 0; i < this.#groups; i++) words[to++] = groups[i] as number;
    return at;
  }

  /** Collects the lines of an object and of all above it. Whether they fit into a chain. */
  #gather(entity: number, state: HotState): boolean {
    this.#users = 0;
    this.#lists = 0;
    this.#groups = 0;
    this.#weight = 0;
    this.#reads = 0;
    this.#count = 1;
    ids[0] = entity;
    states[0] = state.index;
    for (let i = 0; i < this.#count; i++) {
      if (!this.#addLine(ids[i] as number, this.#model.states[states[i] as number])) return false;
    }
    return true;
  }

  #addLine(entity: number, state: HotState | undefined): boolean {
    if (state === undefined) return false;
    let at = this.#objects.lineOf(entity, state);
    const { lines: words } = this.#objects;
    const counts = words[at + LINE_COUNTS] as number;
    if (counts === LINE_OPAQUE) return false;
    const userCount = counts & 255;
    const listWords = (counts >>> 7) & 510;
    const groupCount = (counts >>> 16) & 255;
    const taken = this.#users + this.#lists * 2 + this.#groups;
    if (taken + userCount + listWords + groupCount > ENTRIES_MAX) return false;
    this.#weight += state.weight;
    if (groupCount > 0) this.#weight += words[at + LINE_HEIGHT] as number;
    this.#reads += state.relations.length;
    at += LINE_ENTRIES;
    for (let i = 0; i < userCount; i++) users[this.#users++] = words[at++] as number;
    for (let i = 0; i < listWords; i++) lists[this.#lists * 2 + i] = words[at++] as number;
    this.#lists += listWords >>> 1;
    for (let i = 0; i < groupCount; i++) groups[this.#groups++] = words[at++] as number;
    for (const end = at + ((counts >>> 24) << 1); at < end; at += 2) {
      if (!this.#addObject(words[at] as number, words[at + 1] as number)) return false;
    }
    return true;
  }

  /** Whether a new object and a chain's to be: a second path, or a cycle, is for the search to see. */
  #addObject(entity: number, kind: number): boolean {
    if (kind === 0 || this.#count === OBJECTS_MAX) return false;
    for (let i = 0; i < this.#count; i++) {
      if (ids[i] === entity && states[i] === kind) return false;
    }
    ids[this.#count] = entity;
    states[this.#count++] = kind;
    return true;
  }

  #grow(): boolean {
    this.#collisions = 0;
    if (this.#filled * 4 < this.#mask) return false; // a few that meet all the time
    this.#filled = 0;
    const count = (this.#mask + 1) * 2;
    if ((count << CHAIN_SHIFT) * 4 > this.#bytesMax) return false;
    this.#mask = count - 1;
    this.lines = allocate(count);
    // What was forgotten with the old chains needs no stamp.
    this.#stamps = new Uint32Array(Math.min(STAMPS_MAX, count << STAMPS_SHIFT));
    return true;
  }
}

function allocate(count: number): Uint32Array {
  return new Uint32Array((count << CHAIN_SHIFT) + ALIGN_WORDS);
}

/** 16 bits of an entity. */
function hash(entity: number): number {
  return Math.imul(entity, 0x85ebca77) >>> 16;
}
