import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import type { HotModel, HotState } from './hot-model.ts';
import { LineTable } from './line-table.ts';
import {
  LINE_COUNTS,
  LINE_ENTRIES,
  LINE_HEIGHT,
  LINE_OPAQUE,
  type ObjectCache,
} from './object-cache.ts';
import { STEPS_UNBOUNDED, type StepMeter } from './step-meter.ts';

/** Words of a chain: two cache lines of 64 bytes. */
const CHAIN_SHIFT = 5;
const CHAIN_WORDS = 1 << CHAIN_SHIFT;

// Words of a chain behind those of LineTable.
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
 * object have one.
 *
 * A change of an object stamps the slot of its hash. A chain holds as long as none of its objects
 * was stamped since; while nothing was changed at all, one comparison tells. So a change costs O(1)
 * however many chains lead through the object. Content of the index in another form, no decision;
 * belongs to one model version.
 */
export class ChainCache {
  /** Where the chains lie. */
  readonly table: LineTable;
  readonly #model: HotModel;
  readonly #objects: ObjectCache;
  readonly #meter: StepMeter;
  #stamps: Uint32Array;
  /** Number of the last change. */
  #clock = 0;
  // What `#gather` has found.
  #count = 0;
  #users = 0;
  #lists = 0;
  #groups = 0;
  #weight = 0;
  #reads = 0;

  constructor(
    model: HotModel,
    objects: ObjectCache,
    bytesMax: number,
    meter: StepMeter = { steps: STEPS_UNBOUNDED },
  ) {
    this.#meter = meter;
    this.#model = model;
    this.#objects = objects;
    this.table = new LineTable(CHAIN_SHIFT, bytesMax);
    this.#stamps = this.#makeStamps();
  }

  /** The chains; word i of the chain at `at` is `lines[at + i]`. */
  get lines(): Uint32Array {
    return this.table.words;
  }

  /** Bytes of the tables. */
  get bytes(): number {
    return this.table.bytes + this.#stamps.byteLength;
  }

  /** Forgets everything. O(1), but for every 4 billionth time. */
  clear(): void {
    this.table.clear();
  }

  /** A tuple of the object was changed: forgets all chains through it. O(1). */
  invalidate(entity: number): void {
    this.#clock++;
    if (this.#clock > 0xffff_ffff) {
      this.#clock = 1;
      this.#stamps.fill(0);
      this.table.clear();
    }
    this.#stamps[hash(entity) & (this.#stamps.length - 1)] = this.#clock;
  }

  /** Position of the chain from an object in a state, which is built if need be. Hot. */
  chainOf(entity: number, state: HotState): number {
    const at = this.table.find(entity, state.index);
    if (at < 0) return this.#fill(entity, state, -1);
    const isCurrent = this.table.words[at + CHAIN_CLOCK] === this.#clock || this.#holds(at);
    return isCurrent ? at : this.#fill(entity, state, at);
  }

  /** Whether no object of a chain was changed since it was last looked at. */
  #holds(at: number): boolean {
    const { words } = this.table;
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

  /** Builds a chain at `known`, where it was before, or at a place of its own. */
  #fill(entity: number, state: HotState, known: number): number {
    const fits = this.#gather(entity, state);
    const { capacity } = this.table;
    const at = known < 0 ? this.table.add(entity, state.index) : known;
    // A table that has grown is empty: what was forgotten with the old chains needs no stamp.
    if (this.table.capacity !== capacity) this.#stamps = this.#makeStamps();
    const { words } = this.table;
    if (this.#meter.steps < 0) this.table.forget(at);
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
    if (DEBUG_ASSERTIONS) {
      assert(to <= at + CHAIN_HASHES, 'the entries of a chain end before its hashes');
      assert(this.#count <= OBJECTS_MAX, 'a chain has hashes of all its objects');
      assert((words[at + CHAIN_CLOCK] as number) === this.#clock, 'a chain is as new as its lines');
    }
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
    this.#meter.steps -= 1;
    if (state === undefined || this.#meter.steps < 0) return false;
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

  #makeStamps(): Uint32Array {
    return new Uint32Array(Math.min(STAMPS_MAX, this.table.capacity << STAMPS_SHIFT));
  }
}

/** 16 bits of an entity. */
function hash(entity: number): number {
  return Math.imul(entity, 0x85ebca77) >>> 16;
}
