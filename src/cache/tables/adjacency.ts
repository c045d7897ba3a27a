import {
  EDGE_ABSENT,
  EDGE_NODE_MASK,
  EDGE_PLAIN,
  EDGE_QUALIFIED,
  WORD_LIST,
} from '../../model/tuple-reader.ts';
import { assert } from '../../shared/assert.ts';
import {
  LIST_COUNT_MASK,
  LIST_LONG,
  LIST_MARK,
  LIST_PAGE_MASK,
  LIST_PAGE_SHIFT,
  ListStore,
} from './list-store.ts';
import type { PageAllocator } from './page-allocator.ts';
import { SEGMENT_HEADER, SEGMENT_SLOTS, SegmentedHash, homeSlot } from './segmented-hash.ts';
import { hashPair } from './text-scratch.ts';

/** Set on an adjacency word that holds a list's address instead of the only entry. */
export const ADJACENCY_LIST = WORD_LIST;
/** Node ids and list addresses fit in 30 bits. */
export const ADJACENCY_MASK = 0x3fff_ffff;

/** Key of the two directions of edges in the hash of positions. */
export const FORWARD = 0;
export const REVERSE = 0x8000_0000;
/** Lists that grow longer than this are hashed; below half of it no longer. */
export const HASHED_FORWARD_ABOVE = 32;
export const HASHED_REVERSE_ABOVE = 256;

/**
 * Adjacency lists behind one word each: 0 is empty, a single entry is in the word itself, more in a
 * list. Entries are nodes, with EDGE_QUALIFIED. Short lists are scanned (forward at most two cache lines);
 * for long ones a hash from (owner, member) to the position makes lookup and removal O(1) expected.
 * Methods that change a list return the word that the owner must store.
 */
export class Adjacency {
  readonly lists: ListStore;
  readonly positions: SegmentedHash;

  constructor(allocator: PageAllocator) {
    this.lists = new ListStore(allocator);
    this.positions = new SegmentedHash(allocator);
  }

  /** Forgets every list. */
  clear(): void {
    this.lists.clear();
    this.positions.clear();
  }

  count(word: number): number {
    if (word === 0) return 0;
    return (word & ADJACENCY_LIST) === 0 ? 1 : this.lists.count(word & ADJACENCY_MASK);
  }

  isInline(word: number): boolean {
    return (word & ADJACENCY_LIST) === 0;
  }

  isHashed(word: number): boolean {
    if ((word & ADJACENCY_LIST) === 0) return false;
    return (this.lists.header(word & ADJACENCY_MASK) & LIST_MARK) !== 0;
  }

  /** EDGE_ABSENT, EDGE_PLAIN or EDGE_WITH_QUALIFIER. Hot. */
  edge(word: number, owner: number, member: number, side: number): number {
    if ((word & ADJACENCY_LIST) === 0) {
      if ((word & ADJACENCY_MASK) !== member) return EDGE_ABSENT;
      return EDGE_PLAIN + (word >>> 31);
    }
    const list = word & ADJACENCY_MASK;
    const page = this.lists.pages[list >>> LIST_PAGE_SHIFT] as Uint32Array;
    const at = list & LIST_PAGE_MASK;
    const header = page[at] as number;
    if ((header & LIST_MARK) === 0) {
      // A list without a hash is never long: its entries follow the header.
      const end = at + (header & LIST_COUNT_MASK);
      for (let i = at + 1; i <= end; i++) {
        const entry = page[i] as number;
        if ((entry & EDGE_NODE_MASK) === member) return EDGE_PLAIN + (entry >>> 31);
      }
      return EDGE_ABSENT;
    }
    const position = this.#findHashed(list, owner, member, side);
    return position < 0 ? EDGE_ABSENT : EDGE_PLAIN + (this.lists.get(list, position) >>> 31);
  }

  /** Adds an entry that is absent. */
  append(word: number, owner: number, entry: number, side: number): number {
    if (word === 0) return entry;
    if ((word & ADJACENCY_LIST) === 0) {
      return this.lists.createPair(word, entry) | ADJACENCY_LIST;
    }
    const list = this.lists.append(word & ADJACENCY_MASK, entry);
    const header = this.lists.header(list);
    const count = header & LIST_COUNT_MASK;
    if ((header & LIST_MARK) !== 0) {
      this.positions.insert(hashPair(owner | side, entry & EDGE_NODE_MASK), count);
    } else if (count > hashedAbove(side)) {
      this.lists.setMark(list, true);
      for (let i = 0; i < count; i++) {
        const member = this.lists.get(list, i) & EDGE_NODE_MASK;
        this.positions.insert(hashPair(owner | side, member), i + 1);
      }
    }
    return list | ADJACENCY_LIST;
  }

  /** Removes a member that is present: the last entry moves into its position. */
  remove(word: number, owner: number, member: number, side: number): number {
    if ((word & ADJACENCY_LIST) === 0) {
      assert((word & ADJACENCY_MASK) === member, 'the removed edge is the only one');
      return 0;
    }
    const lists = this.lists;
    let list = word & ADJACENCY_MASK;
    const position = this.#position(list, owner, member, side);
    assert(position >= 0, 'the removed edge is stored');
    const header = lists.header(list);
    const hashed = (header & LIST_MARK) !== 0;
    const lastPosition = (header & LIST_COUNT_MASK) - 1;
    if (hashed) this.positions.remove(hashPair(owner | side, member), position + 1);
    if (position !== lastPosition) {
      const last = lists.get(list, lastPosition);
      lists.set(list, position, last);
      if (hashed) {
        const hash = hashPair(owner | side, last & EDGE_NODE_MASK);
        this.positions.replace(hash, lastPosition + 1, position + 1);
      }
    }
    list = lists.pop(list);
    if (hashed && lastPosition < hashedAbove(side) >>> 1) this.#dropHash(list, owner, side);
    if (lastPosition !== 1) return list | ADJACENCY_LIST;
    const only = lists.get(list, 0);
    lists.destroy(list);
    return only;
  }

  /** Sets or clears EDGE_QUALIFIED on a member that is present. */
  setQualified(
    word: number,
    owner: number,
    member: number,
    side: number,
    qualified: boolean,
  ): number {
    const entry = qualified ? (member | EDGE_QUALIFIED) >>> 0 : member;
    if ((word & ADJACENCY_LIST) === 0) return entry;
    const list = word & ADJACENCY_MASK;
    const position = this.#position(list, owner, member, side);
    assert(position >= 0, 'the marked edge is stored');
    this.lists.set(list, position, entry);
    return word;
  }

  /** Copies entries from position `cursor` on; returns how many. Hot. */
  copy(word: number, cursor: number, out: Uint32Array, outStart: number, limit: number): number {
    if ((word & ADJACENCY_LIST) !== 0) {
      return this.lists.copy(word & ADJACENCY_MASK, cursor, out, outStart, limit);
    }
    if (word === 0 || cursor !== 0 || limit <= 0) return 0;
    out[outStart] = word;
    return 1;
  }

  #position(list: number, owner: number, member: number, side: number): number {
    const page = this.lists.pages[list >>> LIST_PAGE_SHIFT] as Uint32Array;
    const at = list & LIST_PAGE_MASK;
    const header = page[at] as number;
    if ((header & LIST_MARK) !== 0) return this.#findHashed(list, owner, member, side);
    assert((header & LIST_LONG) === 0, 'a long list is hashed');
    const count = header & LIST_COUNT_MASK;
    for (let i = 0; i < count; i++) {
      if (((page[at + 1 + i] as number) & EDGE_NODE_MASK) === member) return i;
    }
    return -1;
  }

  #findHashed(list: number, owner: number, member: number, side: number): number {
    const hash = hashPair(owner | side, member);
    const count = this.lists.count(list);
    const segment = this.positions.segmentOf(hash);
    const slots = segment[SEGMENT_SLOTS] as number;
    let slot = homeSlot(hash, slots);
    for (;;) {
      const at = SEGMENT_HEADER + slot * 2;
      const position = segment[at + 1] as number;
      if (position === 0) return -1;
      if (((segment[at] as number) | 0) === hash && position <= count) {
        const entry = this.lists.get(list, position - 1);
        if ((entry & EDGE_NODE_MASK) === member) return position - 1;
      }
      slot += 1;
      if (slot === slots) slot = 0;
    }
  }

  #dropHash(list: number, owner: number, side: number): void {
    const count = this.lists.count(list);
    for (let i = 0; i < count; i++) {
      const member = this.lists.get(list, i) & EDGE_NODE_MASK;
      this.positions.remove(hashPair(owner | side, member), i + 1);
    }
    this.lists.setMark(list, false);
  }
}

function hashedAbove(side: number): number {
  return side === FORWARD ? HASHED_FORWARD_ABOVE : HASHED_REVERSE_ABOVE;
}
