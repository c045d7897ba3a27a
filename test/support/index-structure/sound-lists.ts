import {
  ADJACENCY_LIST,
  ADJACENCY_MASK,
  FORWARD,
  HASHED_FORWARD_ABOVE,
  HASHED_REVERSE_ABOVE,
} from '../../../src/cache/tables/adjacency.ts';
import {
  BLOCK_FREE,
  CHUNK_ORDER,
  LIST_COUNT_MASK,
  LIST_LONG,
  LIST_MARK,
  LIST_PAGE_MASK,
  LIST_PAGE_SHIFT,
  type ListStore,
  ORDER_MIN,
  PAGE_ORDER,
  orderOf,
} from '../../../src/cache/tables/list-store.ts';
import { NODE_ENTITY, type NodeTable } from '../../../src/cache/tables/node-table.ts';
import { EDGE_NODE_MASK } from '../../../src/model/tuple-reader.ts';
import { assert } from '../../../src/shared/assert.ts';

const CHUNK = 1 << CHUNK_ORDER;
/** A long list this short would be short again. */
const LONG_COUNT_MIN = CHUNK / 2;

/**
 * Checks what a list says of itself, without trusting it: its block, its chunks, its length.
 * Returns the words that it takes. Throws at a breach. O(chunks).
 */
export function wordsOfList(lists: ListStore, list: number): number {
  const order = checkBlock(lists, list);
  const page = lists.pages[list >>> LIST_PAGE_SHIFT] as Uint32Array;
  const at = list & LIST_PAGE_MASK;
  const header = page[at] as number;
  const count = header & LIST_COUNT_MASK;
  const size = 1 << order;
  assert(count > 0, 'a list has entries');
  if ((header & LIST_LONG) === 0) {
    assert(order <= CHUNK_ORDER && count < size, 'a list fits its block');
    assert(order === ORDER_MIN || count >= size >>> 2, 'a block fits its list');
    return size;
  }
  const chunks = Math.ceil(count / CHUNK);
  assert(count >= LONG_COUNT_MIN && chunks < size, 'a long list fits its chunks');
  for (let i = 1; i <= chunks; i++) {
    const chunk = page[at + i] as number;
    assert((chunk & (CHUNK - 1)) === 0, 'a chunk lies at its border');
    const tags = lists.tags[chunk >>> LIST_PAGE_SHIFT];
    const isTaken = tags?.[(chunk & LIST_PAGE_MASK) >>> ORDER_MIN] === 0;
    assert(isTaken, 'a chunk of a list is in use');
  }
  return size + chunks * CHUNK;
}

function checkBlock(lists: ListStore, list: number): number {
  const page = lists.pages[list >>> LIST_PAGE_SHIFT];
  const at = list & LIST_PAGE_MASK;
  assert(page !== undefined && list > 0 && at < page.length, 'a list has an address');
  const order = orderOf(page[at] as number);
  const isPlaced = order <= PAGE_ORDER && (at & ((1 << order) - 1)) === 0;
  assert(isPlaced && at + (1 << order) <= page.length, 'a block lies at its border');
  const tag = lists.tags[list >>> LIST_PAGE_SHIFT]?.[at >>> ORDER_MIN];
  assert(tag === 0, 'the block of a list is in use');
  return order;
}

/**
 * Checks one adjacency word of a node: an entry that is a live node, or a sound list, hashed where it must be.
 * Returns the words of its list, 0 for none. Throws at a breach. O(chunks); entries are not looked at.
 */
export function wordsOfAdjacency(
  lists: ListStore,
  nodes: NodeTable,
  word: number,
  side: number,
): number {
  if (word === 0) return 0;
  if ((word & ADJACENCY_LIST) === 0) {
    const entry = word & EDGE_NODE_MASK;
    assert(isLive(nodes, entry), 'an edge leads to a live node');
    return 0;
  }
  assert(word >>> 31 === 0, 'a list carries no qualifier of its own');
  const list = word & ADJACENCY_MASK;
  const words = wordsOfList(lists, list);
  const header = lists.header(list);
  const count = header & LIST_COUNT_MASK;
  const above = side === FORWARD ? HASHED_FORWARD_ABOVE : HASHED_REVERSE_ABOVE;
  const isHashed = (header & LIST_MARK) !== 0;
  assert(count > 1, 'one entry lies inline');
  assert(isHashed || count <= above, 'a long list is hashed');
  assert(!isHashed || count >= above >>> 1, 'a short list is not hashed');
  return words;
}

/** Whether a number is a node that something mentions. */
export function isLive(nodes: NodeTable, node: number): boolean {
  return node > 0 && node < nodes.top && nodes.field(node, NODE_ENTITY) !== 0;
}

/** Checks the free blocks of one page against their neighbours; returns their words. O(page / 4). */
export function checkFreeBlocks(lists: ListStore, index: number): number {
  const page = lists.pages[index] as Uint32Array;
  const tags = lists.tags[index] as Uint8Array;
  let free = 0;
  for (let i = 0; i < tags.length; i++) {
    const tag = tags[i] as number;
    if (tag === 0) continue;
    const at = i << ORDER_MIN;
    const order = tag & ~BLOCK_FREE;
    const isOrder = (tag & BLOCK_FREE) !== 0 && order >= ORDER_MIN && order <= PAGE_ORDER;
    const isPlaced = isOrder && (at & ((1 << order) - 1)) === 0 && at + (1 << order) <= page.length;
    assert(isPlaced, 'a free block has an order');
    const address = index * (LIST_PAGE_MASK + 1) + at;
    const previous = page[at] as number;
    const next = page[at + 1] as number;
    const leads =
      previous === 0
        ? lists.freeHeads[order] === address
        : isFreeBlock(lists, previous, order) && wordOf(lists, previous + 1) === address;
    const isLed =
      next === 0 || (isFreeBlock(lists, next, order) && wordOf(lists, next) === address);
    assert(leads && isLed, 'a free block stands between its neighbours');
    free += 1 << order;
  }
  return free;
}

/** Checks that the lists of free blocks begin with free blocks. */
export function checkFreeHeads(lists: ListStore): void {
  lists.freeHeads.forEach((head, order) => {
    const isSound = head === 0 || (isFreeBlock(lists, head, order) && wordOf(lists, head) === 0);
    assert(isSound, 'a list of free blocks begins with a free block');
  });
}

function isFreeBlock(lists: ListStore, address: number, order: number): boolean {
  const tags = lists.tags[address >>> LIST_PAGE_SHIFT];
  return tags?.[(address & LIST_PAGE_MASK) >>> ORDER_MIN] === (BLOCK_FREE | order);
}

function wordOf(lists: ListStore, address: number): number {
  return lists.pages[address >>> LIST_PAGE_SHIFT]?.[address & LIST_PAGE_MASK] ?? -1;
}
