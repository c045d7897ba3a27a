import { assert } from '../../shared/assert.ts';
import { NAME_OWNER, RECORD_LINK, RECORD_PAGE_MASK, RECORD_PAGE_SHIFT } from './dictionary.ts';
import type { Dictionary } from './dictionary.ts';
import type { PageAllocator } from './page-allocator.ts';
import { PagedWords } from './paged-words.ts';
import { hashScratch, loadBytes, loadText, mustFit } from './text-scratch.ts';

const PAGE_NAMES_SHIFT = 12;
const PAGE_NAMES_MASK = (1 << PAGE_NAMES_SHIFT) - 1;
const STRIDE = 2;
const PAGE_NAMES_FIRST = 16;
/** Names remembered by their string; a power of two. */
const RECENT = 16;
const PINNED = 0x8000_0000;
const REFERENCES_MASK = 0x7fff_ffff;

/**
 * Small dense ids of namespace, relation and condition names, counted by reference: an id is free
 * again when nothing mentions it, unless it was pinned. Id 0 is the empty name. The strings are
 * records of the dictionary; here are the record and the references of each id.
 */
export class NameTable {
  readonly #dictionary: Dictionary;
  readonly words: PagedWords;
  /** Names that went with their last mention so far: while the count does not change, ids keep their names. */
  dropped = 0;
  #free = 0;
  #top = 1;
  /** Names read lately, so that a change compares a short string instead of hashing it. */
  readonly #recent: string[] = Array.from({ length: RECENT }, () => '');
  readonly #recentIds = new Uint32Array(RECENT);
  #misses = 0;
  /** In the order in which they were pinned. */
  #pinned: (readonly [id: number, name: string])[] = [];

  constructor(dictionary: Dictionary, allocator: PageAllocator) {
    this.#dictionary = dictionary;
    this.words = new PagedWords(allocator, STRIDE << PAGE_NAMES_SHIFT, STRIDE * PAGE_NAMES_FIRST);
  }

  get bytes(): number {
    return this.words.bytes;
  }

  /** Ids from 1 on that were ever used are below. */
  get top(): number {
    return this.#top;
  }

  /** Id of a name, 0 for the empty one, -1 if unknown. Hot. */
  idOf(name: string): number {
    const slot = recentSlot(name);
    if (this.#recent[slot] === name) return this.#recentIds[slot] as number;
    const id = this.#findScratch(loadText(name));
    if (id > 0) this.#remember(slot, id);
    return id;
  }

  /** Finds the name of the bytes [start, end), like `idOf`. Hot. */
  findBytes(bytes: Uint8Array, start: number, end: number): number {
    return this.#findScratch(loadBytes(bytes, start, end));
  }

  /** Id of a name, made if need be. Not retained yet: the caller does that for each mention. */
  intern(name: string): number {
    const slot = recentSlot(name);
    if (this.#recent[slot] === name) return this.#recentIds[slot] as number;
    const id = this.#internScratch(mustFit(loadText(name)));
    if (id > 0) this.#remember(slot, id);
    return id;
  }

  /** Interns the name of the bytes [start, end), like `intern`. */
  internBytes(bytes: Uint8Array, start: number, end: number): number {
    return this.#internScratch(mustFit(loadBytes(bytes, start, end)));
  }

  /** Interns a name for good. */
  pin(name: string): number {
    const id = this.intern(name);
    if (id === 0 || this.isPinned(id)) return id;
    this.#setReferences(id, (this.#references(id) | PINNED) >>> 0);
    this.#pinned.push([id, name]);
    return id;
  }

  isPinned(id: number): boolean {
    return id !== 0 && (this.#references(id) & PINNED) !== 0;
  }

  /** Mentions of a name, not counting the pin. */
  mentions(id: number): number {
    return this.#references(id) & REFERENCES_MASK;
  }

  /** Names that are pinned. */
  get pinnedCount(): number {
    return this.#pinned.length;
  }

  /** Pinned names with their ids, in the order of the ids, as `restorePinned` takes them. Allocates. */
  get pinned(): readonly (readonly [id: number, name: string])[] {
    return this.#pinned.toSorted(([a], [b]) => a - b);
  }

  /** The record of a live name; of a free id the next free one. */
  recordOf(id: number): number {
    return this.#record(id);
  }

  /** One more mention. */
  retain(id: number): void {
    if (id !== 0) this.#setReferences(id, this.#references(id) + 1);
  }

  /** One mention less; the id and its string go with the last. */
  release(id: number): void {
    if (id === 0) return;
    const references = this.#references(id);
    assert((references & REFERENCES_MASK) > 0, 'a released name has mentions');
    this.#setReferences(id, references - 1);
    if (references === 1) this.#drop(id);
  }

  /** Forgets every name, the pinned ones too: `restorePinned` brings them back. The dictionary is empty already. */
  clear(): void {
    this.words.clear();
    // A free id has no mentions, wherever it comes from.
    (this.words.pages[0] as Uint32Array).fill(0);
    this.#free = 0;
    this.#top = 1;
    this.#recent.fill('');
    this.#recentIds.fill(0);
    this.#pinned = [];
  }

  text(id: number): string {
    return id === 0 ? '' : this.#dictionary.text(this.#record(id));
  }

  /** Gives a pinned name the id that it had, when an emptied index is rebuilt. */
  restorePinned(id: number, name: string): void {
    while (this.#top < id) {
      this.#reserve();
      this.#pushFree(this.#top - 1);
    }
    assert(this.#top === id, 'pinned names are restored in order of their ids');
    const free = this.#free;
    this.#free = 0;
    assert(this.pin(name) === id, 'a restored name keeps its id');
    this.#free = free;
  }

  #findScratch(length: number): number {
    if (length === 0) return 0;
    if (length < 0) return -1;
    const record = this.#dictionary.recordOf(NAME_OWNER, length, hashScratch(length, NAME_OWNER));
    return record === 0 ? -1 : this.#idOf(record);
  }

  #internScratch(length: number): number {
    if (length === 0) return 0;
    const hash = hashScratch(length, NAME_OWNER);
    const known = this.#dictionary.recordOf(NAME_OWNER, length, hash);
    if (known !== 0) return this.#idOf(known);
    const record = this.#dictionary.insert(NAME_OWNER, length, hash);
    let id = this.#free;
    if (id === 0) id = this.#reserve();
    else this.#free = this.#record(id);
    const page = this.words.pages[id >>> PAGE_NAMES_SHIFT] as Uint32Array;
    const at = (id & PAGE_NAMES_MASK) * STRIDE;
    page[at] = record;
    page[at + 1] = 0;
    const records = this.#dictionary.records.pages[record >>> RECORD_PAGE_SHIFT] as Uint32Array;
    records[(record & RECORD_PAGE_MASK) + RECORD_LINK] = id;
    return id;
  }

  /** Keeps a copy: the caller's string may be a piece of a large one. */
  #remember(slot: number, id: number): void {
    // If two names alternate in one slot, one of them stays.
    if (this.#recentIds[slot] !== 0 && (++this.#misses & 15) !== 0) return;
    this.#recent[slot] = this.text(id);
    this.#recentIds[slot] = id;
  }

  #drop(id: number): void {
    this.dropped += 1;
    const slot = this.#recentIds.indexOf(id);
    if (slot >= 0) {
      this.#recent[slot] = '';
      this.#recentIds[slot] = 0;
    }
    this.#dictionary.remove(this.#record(id));
    this.#pushFree(id);
  }

  #pushFree(id: number): void {
    const page = this.words.pages[id >>> PAGE_NAMES_SHIFT] as Uint32Array;
    page[(id & PAGE_NAMES_MASK) * STRIDE] = this.#free;
    this.#free = id;
  }

  #reserve(): number {
    const id = this.#top;
    while ((id + 1) * STRIDE > this.words.capacity) this.words.grow();
    this.#top = id + 1;
    return id;
  }

  #idOf(record: number): number {
    const page = this.#dictionary.records.pages[record >>> RECORD_PAGE_SHIFT] as Uint32Array;
    return page[(record & RECORD_PAGE_MASK) + RECORD_LINK] as number;
  }

  #record(id: number): number {
    const page = this.words.pages[id >>> PAGE_NAMES_SHIFT] as Uint32Array;
    return page[(id & PAGE_NAMES_MASK) * STRIDE] as number;
  }

  #references(id: number): number {
    const page = this.words.pages[id >>> PAGE_NAMES_SHIFT] as Uint32Array;
    return page[(id & PAGE_NAMES_MASK) * STRIDE + 1] as number;
  }

  #setReferences(id: number, references: number): void {
    const page = this.words.pages[id >>> PAGE_NAMES_SHIFT] as Uint32Array;
    page[(id & PAGE_NAMES_MASK) * STRIDE + 1] = references;
  }
}

/** Slot of a name among the recent ones. The empty name, id 0, needs none: every free slot has this id. */
function recentSlot(name: string): number {
  const { length } = name;
  if (length === 0) return 0;
  return (length + name.charCodeAt(0) * 3 + name.charCodeAt(length - 1) * 5) & (RECENT - 1);
}
