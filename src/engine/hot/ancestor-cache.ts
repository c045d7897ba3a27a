import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import type { HotModel, HotState } from './hot-model.ts';
import {
  ROW_COUNTS,
  ROW_ENTRIES,
  ROW_HEIGHT,
  ROW_OPAQUE,
  type ObjectCache,
} from './object-cache.ts';
import { ObjectTable } from './object-table.ts';
import { STEPS_UNBOUNDED, type StepMeter } from './step-meter.ts';

/** Words of a list of ancestors: two cache lines of 64 bytes. */
const ANCESTORS_SHIFT = 5;
const ANCESTORS_WORDS = 1 << ANCESTORS_SHIFT;

// Words of a list of ancestors behind those of ObjectTable.
/** Users, lists, groups as in a row of ObjectCache; never children. ROW_OPAQUE if it does not fit. */
export const ANCESTORS_COUNTS = 3;
/** Usersets that the list of ancestors replaces, the heights of its groups included. */
export const ANCESTORS_WEIGHT = 4;
export const ANCESTORS_READS = 5;
/** Number of the last change up to which the list of ancestors is known to hold. */
const ANCESTORS_CLOCK = 6;
const ANCESTORS_OBJECTS = 7;
export const ANCESTORS_ENTRIES = 8;
/** Hashes of the objects, 16 bits each. */
const ANCESTORS_HASHES = 28;
const ENTRIES_MAX = ANCESTORS_HASHES - ANCESTORS_ENTRIES;
/** Objects of one list of ancestors. */
const OBJECTS_MAX = 8;

/** Marks for each list of ancestors of the table, up to as many as 16 bits distinguish. */
const CHANGES_SHIFT = 2;
const CHANGES_MAX = 65_536;

const ids = new Uint32Array(OBJECTS_MAX);
const states = new Uint32Array(OBJECTS_MAX);
const users = new Uint32Array(ENTRIES_MAX);
const lists = new Uint32Array(ENTRIES_MAX);
const groups = new Uint32Array(ENTRIES_MAX);

/**
 * Ancestors of an object: the users, lists and groups of the object and all above it (folder, parent folder,
 * workspace) in one state, side by side. So a check of a document reads its own row and one list of ancestors instead
 * of a row a level. Only small trees without a cycle or a second path to an object have one.
 *
 * A change of an object marks the slot of its hash. A list of ancestors holds as long as none of its objects was
 * marked since; while nothing was changed at all, one comparison decides. So a change costs O(1) however many lists of
 * ancestors lead through the object. Content of the index in another form, no decision; belongs to one model version.
 */
export class AncestorCache {
  /** Table of the lists of ancestors. */
  readonly table: ObjectTable;
  readonly #model: HotModel;
  readonly #objects: ObjectCache;
  readonly #meter: StepMeter;
  #changedAt: Uint32Array;
  /** Number of the last change. */
  #clock = 0;
  // Results of `#gather`.
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
    this.table = new ObjectTable(ANCESTORS_SHIFT, bytesMax);
    this.#changedAt = this.#makeChanges();
  }

  /** The lists of ancestors; word i of the list of ancestors at `at` is `rows[at + i]`. */
  get lines(): Uint32Array {
    return this.table.words;
  }

  /** Bytes of the tables. */
  get bytes(): number {
    return this.table.bytes + this.#changedAt.byteLength;
  }

  /** Forgets everything. O(1), but for every 4 billionth time. */
  clear(): void {
    this.table.clear();
  }

  /** A tuple of the object was changed: forgets all lists of ancestors through it. O(1). */
  invalidate(entity: number): void {
    this.#clock++;
    if (this.#clock > 0xffff_ffff) {
      this.#clock = 1;
      this.#changedAt.fill(0);
      this.table.clear();
    }
    this.#changedAt[hash(entity) & (this.#changedAt.length - 1)] = this.#clock;
  }

  /** Position of the list of ancestors from an object in a state, which is built if need be. Hot. */
  ancestorsOf(entity: number, state: HotState): number {
    const at = this.table.rowOf(entity, state.index);
    if (at < 0) return this.#fill(entity, state, -1);
    const isCurrent = this.table.words[at + ANCESTORS_CLOCK] === this.#clock || this.#holds(at);
    return isCurrent ? at : this.#fill(entity, state, at);
  }

  /** Whether no object of a list of ancestors was changed since it was last checked. */
  #holds(at: number): boolean {
    const { words } = this.table;
    const changedAt = this.#changedAt;
    const since = words[at + ANCESTORS_CLOCK] as number;
    const count = words[at + ANCESTORS_OBJECTS] as number;
    for (let i = 0; i < count; i++) {
      const pair = words[at + ANCESTORS_HASHES + (i >>> 1)] as number;
      const slot = (pair >>> ((i & 1) << 4)) & (changedAt.length - 1) & 0xffff;
      if ((changedAt[slot] as number) > since) return false;
    }
    words[at + ANCESTORS_CLOCK] = this.#clock;
    return true;
  }

  /** Builds a list of ancestors at `known`, where it was before, or in a slot of its own. */
  #fill(entity: number, state: HotState, known: number): number {
    const fits = this.#gather(entity, state);
    const { capacity } = this.table;
    const at = known < 0 ? this.table.insert(entity, state.index) : known;
    // A table that has grown is empty: what was forgotten with the old lists of ancestors needs no mark.
    if (this.table.capacity !== capacity) this.#changedAt = this.#makeChanges();
    const { words } = this.table;
    if (this.#meter.steps < 0) this.table.forget(at);
    words[at + ANCESTORS_COUNTS] = fits
      ? this.#users | (this.#lists << 8) | (this.#groups << 16)
      : ROW_OPAQUE;
    words[at + ANCESTORS_WEIGHT] = this.#weight;
    words[at + ANCESTORS_READS] = this.#reads;
    words[at + ANCESTORS_CLOCK] = this.#clock;
    words[at + ANCESTORS_OBJECTS] = this.#count;
    words.fill(0, at + ANCESTORS_HASHES, at + ANCESTORS_WORDS);
    for (let i = 0; i < this.#count; i++) {
      const word = at + ANCESTORS_HASHES + (i >>> 1);
      words[word] = (words[word] as number) | (hash(ids[i] as number) << ((i & 1) << 4));
    }
    if (!fits) return at;
    let to = at + ANCESTORS_ENTRIES;
    for (let i = 0; i < this.#users; i++) words[to++] = users[i] as number;
    for (let i = 0; i < this.#lists * 2; i++) words[to++] = lists[i] as number;
    for (let i = 0; i < this.#groups; i++) words[to++] = groups[i] as number;
    if (DEBUG_ASSERTIONS) {
      assert(to <= at + ANCESTORS_HASHES, 'the entries of a chain end before its hashes');
      assert(this.#count <= OBJECTS_MAX, 'a chain has hashes of all its objects');
      assert(
        (words[at + ANCESTORS_CLOCK] as number) === this.#clock,
        'a chain is as new as its lines',
      );
    }
    return at;
  }

  /** Collects the rows of an object and of all above it. Whether they fit into a list of ancestors. */
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
    let at = this.#objects.rowOf(entity, state);
    const { lines: words } = this.#objects;
    const counts = words[at + ROW_COUNTS] as number;
    if (counts === ROW_OPAQUE) return false;
    const userCount = counts & 255;
    const listWords = (counts >>> 7) & 510;
    const groupCount = (counts >>> 16) & 255;
    const taken = this.#users + this.#lists * 2 + this.#groups;
    if (taken + userCount + listWords + groupCount > ENTRIES_MAX) return false;
    this.#weight += state.weight;
    if (groupCount > 0) this.#weight += words[at + ROW_HEIGHT] as number;
    this.#reads += state.relations.length;
    at += ROW_ENTRIES;
    for (let i = 0; i < userCount; i++) users[this.#users++] = words[at++] as number;
    for (let i = 0; i < listWords; i++) lists[this.#lists * 2 + i] = words[at++] as number;
    this.#lists += listWords >>> 1;
    for (let i = 0; i < groupCount; i++) groups[this.#groups++] = words[at++] as number;
    for (const end = at + ((counts >>> 24) << 1); at < end; at += 2) {
      if (!this.#addObject(words[at] as number, words[at + 1] as number)) return false;
    }
    return true;
  }

  /** Whether a new object and a list of ancestors's to be: a second path, or a cycle, is for the search to see. */
  #addObject(entity: number, kind: number): boolean {
    if (kind === 0 || this.#count === OBJECTS_MAX) return false;
    for (let i = 0; i < this.#count; i++) {
      if (ids[i] === entity && states[i] === kind) return false;
    }
    ids[this.#count] = entity;
    states[this.#count++] = kind;
    return true;
  }

  #makeChanges(): Uint32Array {
    return new Uint32Array(Math.min(CHANGES_MAX, this.table.capacity << CHANGES_SHIFT));
  }
}

/** 16 bits of an entity. */
function hash(entity: number): number {
  return Math.imul(entity, 0x85ebca77) >>> 16;
}
