import type { AuthzReason } from '../../model/reasons.ts';
import {
  OBJECT_NODE,
  OBJECT_RELATION,
  OBJECT_SETS,
  OBJECT_STRIDE,
  OBJECT_USERS,
} from '../../model/tuple-reader.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import {
  RECORD_LENGTH_MASK,
  RECORD_LINK,
  RECORD_PAGE_MASK,
  RECORD_PAGE_SHIFT,
} from './dictionary.ts';
import type { Dictionary } from './dictionary.ts';
import type { ListStore } from './list-store.ts';
import type { PageAllocator } from './page-allocator.ts';
import { PagedWords } from './paged-words.ts';
import { SEGMENT_HEADER, SEGMENT_SLOTS, SegmentedHash, homeSlot } from './segmented-hash.ts';
import { hashPair } from './text-scratch.ts';

export const NODE_PAGE_SHIFT = 13;
export const NODE_PAGE_MASK = (1 << NODE_PAGE_SHIFT) - 1;
/** Words of a node; its fields by offset. */
export const NODE_STRIDE = 6;
/** Adjacency word of the stored subjects that are users or the wildcard. */
export const NODE_USERS = 0;
/** Adjacency word of the stored subjects that are usersets or objects. */
export const NODE_SETS = 1;
/** Relation name, with NODE_IS_USER. */
export const NODE_RELATION = 2;
/** Next node of the entity; its position in the entity's list if there are many; next free node. */
export const NODE_NEXT = 3;
export const NODE_ENTITY = 4;
/** Adjacency word of the nodes that hold this one as a subject. */
export const NODE_REVERSE = 5;

export const NODE_IS_USER = 0x8000_0000;
export const NODE_RELATION_MASK = 0x7fff_ffff;
const NODES_MAX = 0x3fff_ffff;
const PAGE_NODES_FIRST = 64;

// High half of an entity record's first word: a filter of its relations, and whether it has many nodes.
export const RELATION_BITS = 15;
export const RELATION_BIT_FIRST = 0x1_0000;
export const RELATION_BITS_ALL = 0x7fff_0000;
export const RECORD_MANY = 0x8000_0000;
/** An entity with more nodes has them in a list, and in the hash of nodes. */
export const CHAIN_MAX = 8;

/**
 * Nodes as records of six words. The nodes of an entity form a chain that starts in the entity's record. A
 * rewrite reads several relations of one object in a row, and data loaded in key order has them side by
 * side: so the chain costs fewer cache misses than a hash of all nodes, and saves its memory. A filter in
 * the entity's record answers most absent relations at once.
 */
export class NodeTable {
  readonly words: PagedWords;
  /** The pages of `words`. */
  readonly pages: readonly Uint32Array[];
  /** Nodes of entities with many, by (entity, relation). */
  readonly table: SegmentedHash;
  count = 0;
  readonly #records: readonly Uint32Array[];
  readonly #lists: ListStore;
  #free = 0;
  #top = 1;

  constructor(dictionary: Dictionary, lists: ListStore, allocator: PageAllocator) {
    const pageWords = NODE_STRIDE << NODE_PAGE_SHIFT;
    this.words = new PagedWords(allocator, pageWords, NODE_STRIDE * PAGE_NODES_FIRST);
    this.pages = this.words.pages;
    this.table = new SegmentedHash(allocator);
    this.#records = dictionary.records.pages;
    this.#lists = lists;
  }

  /** Node ids from 1 on that were ever used are below. */
  get top(): number {
    return this.#top;
  }

  /** The first free node, which leads to the next by NODE_NEXT; 0 for none. */
  get freeHead(): number {
    return this.#free;
  }

  /** Forgets every node; keeps the memory of the first page. The dictionary and the lists are emptied beside it. */
  clear(): void {
    this.words.clear();
    this.table.clear();
    this.count = 0;
    this.#free = 0;
    this.#top = 1;
  }

  /** Node of a live entity and a relation, or 0. Hot. */
  nodeOf(entity: number, relation: number): number {
    const record = this.#records[entity >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const at = entity & RECORD_PAGE_MASK;
    const head = record[at] as number;
    if ((head & (RELATION_BIT_FIRST << (relation % RELATION_BITS))) === 0) return 0;
    if ((head & RECORD_MANY) !== 0) return this.#findHashed(entity, relation);
    let node = record[at + RECORD_LINK] as number;
    while (node !== 0) {
      const page = this.pages[node >>> NODE_PAGE_SHIFT] as Uint32Array;
      const offset = (node & NODE_PAGE_MASK) * NODE_STRIDE;
      if (((page[offset + NODE_RELATION] as number) & NODE_RELATION_MASK) === relation) return node;
      node = page[offset + NODE_NEXT] as number;
    }
    return 0;
  }

  /** A field of a node. */
  field(node: number, field: number): number {
    const page = this.pages[node >>> NODE_PAGE_SHIFT] as Uint32Array;
    return page[(node & NODE_PAGE_MASK) * NODE_STRIDE + field] as number;
  }

  setField(node: number, field: number, value: number): void {
    const page = this.pages[node >>> NODE_PAGE_SHIFT] as Uint32Array;
    page[(node & NODE_PAGE_MASK) * NODE_STRIDE + field] = value;
  }

  /** First node of an entity, 0 if it has none. */
  first(entity: number): number {
    const record = this.#records[entity >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const at = entity & RECORD_PAGE_MASK;
    const link = record[at + RECORD_LINK] as number;
    return ((record[at] as number) & RECORD_MANY) === 0 ? link : this.#lists.get(link, 0);
  }

  /** The node behind `node` in its entity, 0 at the end. */
  next(node: number): number {
    const link = this.field(node, NODE_NEXT);
    const entity = this.field(node, NODE_ENTITY);
    const record = this.#records[entity >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const at = entity & RECORD_PAGE_MASK;
    if (((record[at] as number) & RECORD_MANY) === 0) return link;
    const list = record[at + RECORD_LINK] as number;
    return link + 1 < this.#lists.count(list) ? this.#lists.get(list, link + 1) : 0;
  }

  /**
   * Copies relation, node, users and sets of each node of an entity into `out`; returns their number,
   * or -1 if they are many or do not fit. One walk over the chain. Hot.
   */
  readObject(entity: number, out: Uint32Array): number {
    const record = this.#records[entity >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const recordAt = entity & RECORD_PAGE_MASK;
    if (((record[recordAt] as number) & RECORD_MANY) !== 0) return -1;
    const { pages } = this;
    let node = record[recordAt + RECORD_LINK] as number;
    let to = 0;
    while (node !== 0) {
      if (to + OBJECT_STRIDE > out.length) return -1;
      const page = pages[node >>> NODE_PAGE_SHIFT] as Uint32Array;
      const at = (node & NODE_PAGE_MASK) * NODE_STRIDE;
      out[to + OBJECT_RELATION] = (page[at + NODE_RELATION] as number) & NODE_RELATION_MASK;
      out[to + OBJECT_NODE] = node;
      out[to + OBJECT_USERS] = page[at + NODE_USERS] as number;
      out[to + OBJECT_SETS] = page[at + NODE_SETS] as number;
      node = page[at + NODE_NEXT] as number;
      to += OBJECT_STRIDE;
    }
    return to / OBJECT_STRIDE;
  }

  /** Adds the node of an entity and a relation that has none. Throws SHARD_TOO_LARGE. */
  create(entity: number, relation: number, isUser: boolean): number {
    const node = this.#allocate();
    this.setField(node, NODE_USERS, 0);
    this.setField(node, NODE_SETS, 0);
    this.setField(node, NODE_REVERSE, 0);
    this.setField(node, NODE_RELATION, isUser ? (relation | NODE_IS_USER) >>> 0 : relation);
    this.setField(node, NODE_ENTITY, entity);
    this.#link(entity, node, relation);
    this.count += 1;
    return node;
  }

  /** Frees a node without edges. Returns whether its entity has no node left. */
  destroy(node: number): boolean {
    const entity = this.field(node, NODE_ENTITY);
    const record = this.#records[entity >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const at = entity & RECORD_PAGE_MASK;
    if (((record[at] as number) & RECORD_MANY) === 0) this.#unchain(record, at, node);
    else this.#unlist(record, at, entity, node);
    this.setField(node, NODE_NEXT, this.#free);
    this.setField(node, NODE_ENTITY, 0);
    this.#free = node;
    this.count -= 1;
    return record[at + RECORD_LINK] === 0;
  }

  #allocate(): number {
    const node = this.#free;
    if (node !== 0) {
      this.#free = this.field(node, NODE_NEXT);
      return node;
    }
    if (this.#top > NODES_MAX) {
      throw new AppError<AuthzReason>('SHARD_TOO_LARGE', 'the tuple index holds too many nodes');
    }
    while ((this.#top + 1) * NODE_STRIDE > this.words.capacity) this.words.grow();
    return this.#top++;
  }

  #link(entity: number, node: number, relation: number): void {
    const record = this.#records[entity >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const at = entity & RECORD_PAGE_MASK;
    const head = record[at] as number;
    if ((head & RECORD_MANY) !== 0) {
      const list = record[at + RECORD_LINK] as number;
      this.setField(node, NODE_NEXT, this.#lists.count(list));
      record[at + RECORD_LINK] = this.#lists.append(list, node);
      this.table.insert(hashPair(entity, relation), node);
      return;
    }
    this.setField(node, NODE_NEXT, record[at + RECORD_LINK] as number);
    record[at + RECORD_LINK] = node;
    record[at] = head | (RELATION_BIT_FIRST << (relation % RELATION_BITS));
    let length = 0;
    for (let each = node; each !== 0; each = this.field(each, NODE_NEXT)) length += 1;
    if (length > CHAIN_MAX) this.#makeMany(record, at, entity);
  }

  #makeMany(record: Uint32Array, at: number, entity: number): void {
    let list = this.#lists.create();
    let node = record[at + RECORD_LINK] as number;
    for (let position = 0; node !== 0; position++) {
      const next = this.field(node, NODE_NEXT);
      list = this.#lists.append(list, node);
      this.setField(node, NODE_NEXT, position);
      const relation = this.field(node, NODE_RELATION) & NODE_RELATION_MASK;
      this.table.insert(hashPair(entity, relation), node);
      node = next;
    }
    record[at] = (record[at] as number) | RELATION_BITS_ALL | RECORD_MANY;
    record[at + RECORD_LINK] = list;
  }

  #unchain(record: Uint32Array, at: number, node: number): void {
    let bits = 0;
    let previous = 0;
    let found = false;
    for (let each = record[at + RECORD_LINK] as number; each !== 0;) {
      const next = this.field(each, NODE_NEXT);
      if (each === node) {
        found = true;
        if (previous === 0) record[at + RECORD_LINK] = next;
        else this.setField(previous, NODE_NEXT, next);
      } else {
        const relation = this.field(each, NODE_RELATION) & NODE_RELATION_MASK;
        bits |= RELATION_BIT_FIRST << (relation % RELATION_BITS);
        previous = each;
      }
      each = next;
    }
    assert(found, 'a freed node is in the chain of its entity');
    record[at] = ((record[at] as number) & RECORD_LENGTH_MASK) | bits;
  }

  #unlist(record: Uint32Array, at: number, entity: number, node: number): void {
    const relation = this.field(node, NODE_RELATION) & NODE_RELATION_MASK;
    this.table.remove(hashPair(entity, relation), node);
    let list = record[at + RECORD_LINK] as number;
    const position = this.field(node, NODE_NEXT);
    const lastPosition = this.#lists.count(list) - 1;
    assert(this.#lists.get(list, position) === node, 'a freed node is in the list of its entity');
    if (position !== lastPosition) {
      const last = this.#lists.get(list, lastPosition);
      this.#lists.set(list, position, last);
      this.setField(last, NODE_NEXT, position);
    }
    list = this.#lists.pop(list);
    if (lastPosition === 0) {
      this.#lists.destroy(list);
      list = 0;
      record[at] = (record[at] as number) & RECORD_LENGTH_MASK;
    }
    record[at + RECORD_LINK] = list;
  }

  #findHashed(entity: number, relation: number): number {
    const hash = hashPair(entity, relation);
    const segment = this.table.segmentOf(hash);
    const slots = segment[SEGMENT_SLOTS] as number;
    let slot = homeSlot(hash, slots);
    for (;;) {
      const at = SEGMENT_HEADER + slot * 2;
      const node = segment[at + 1] as number;
      if (node === 0) return 0;
      if (
        ((segment[at] as number) | 0) === hash &&
        this.field(node, NODE_ENTITY) === entity &&
        (this.field(node, NODE_RELATION) & NODE_RELATION_MASK) === relation
      ) {
        return node;
      }
      slot += 1;
      if (slot === slots) slot = 0;
    }
  }
}
