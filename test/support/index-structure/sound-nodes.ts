import type { IndexParts } from '../../../src/cache/edge-writer.ts';
import { FORWARD, REVERSE } from '../../../src/cache/tables/adjacency.ts';
import {
  ADDRESS_FIRST,
  type Dictionary,
  FREE_OWNER,
  NAME_OWNER,
  RECORD_HEADER,
  RECORD_LENGTH_MASK,
  RECORD_LINK,
  RECORD_OWNER,
  RECORD_PAGE_MASK,
  RECORD_PAGE_SHIFT,
  blockWords,
} from '../../../src/cache/tables/dictionary.ts';
import {
  CHAIN_MAX,
  NODE_ENTITY,
  NODE_IS_USER,
  NODE_NEXT,
  NODE_RELATION,
  NODE_RELATION_MASK,
  NODE_REVERSE,
  NODE_SETS,
  NODE_USERS,
  RECORD_MANY,
  RELATION_BITS,
  RELATION_BITS_ALL,
  RELATION_BIT_FIRST,
} from '../../../src/cache/tables/node-table.ts';
import { hashPair, hashScratch, scratchWords } from '../../../src/cache/tables/text-scratch.ts';
import { EMPTY_NAME, WILDCARD_NODE } from '../../../src/model/tuple-reader.ts';
import { assert } from '../../../src/shared/assert.ts';
import { checkSegmentOf } from './sound-hash.ts';
import { isLive, wordsOfAdjacency, wordsOfList } from './sound-lists.ts';

/**
 * Checks what one node says of itself, and that its entity leads to it. Returns the words of its lists; 0 of a
 * free node. Throws at a breach. O(chunks of its lists).
 */
export function checkNode(parts: IndexParts, node: number): number {
  const { nodes, dictionary, names, adjacency } = parts;
  const entity = nodes.field(node, NODE_ENTITY);
  if (entity === 0) {
    const next = nodes.field(node, NODE_NEXT);
    const isFree = next < nodes.top && (next === 0 || nodes.field(next, NODE_ENTITY) === 0);
    assert(isFree, 'a free node leads to a free node');
    return 0;
  }
  checkEntity(dictionary, entity);
  const kind = nodes.field(node, NODE_RELATION);
  const relation = kind & NODE_RELATION_MASK;
  assert(relation < names.top, 'a node has a relation');
  const owner = recordWord(dictionary, entity, RECORD_OWNER);
  const isUser = node === WILDCARD_NODE || (owner === EMPTY_NAME && relation === EMPTY_NAME);
  assert(isUser === ((kind & NODE_IS_USER) !== 0), 'a node knows whether it is a user');
  assert(leadsTo(parts, entity, relation, node), 'an entity leads to its node');
  const users = nodes.field(node, NODE_USERS);
  const sets = nodes.field(node, NODE_SETS);
  const reverse = nodes.field(node, NODE_REVERSE);
  const isUsed = users !== 0 || sets !== 0 || reverse !== 0;
  assert(isUsed || node === WILDCARD_NODE, 'a live node has an edge');
  return (
    wordsOfAdjacency(adjacency.lists, nodes, users, FORWARD) +
    wordsOfAdjacency(adjacency.lists, nodes, sets, FORWARD) +
    wordsOfAdjacency(adjacency.lists, nodes, reverse, REVERSE)
  );
}

/** Whether the nodes of an entity, and its filter, have this one. */
function leadsTo(parts: IndexParts, entity: number, relation: number, node: number): boolean {
  const { nodes, dictionary, adjacency } = parts;
  const head = recordWord(dictionary, entity, 0);
  if ((head & (RELATION_BIT_FIRST << (relation % RELATION_BITS))) === 0) return false;
  if ((head & RECORD_MANY) !== 0) {
    const list = recordWord(dictionary, entity, RECORD_LINK);
    wordsOfList(adjacency.lists, list);
    checkSegmentOf(nodes.table, hashPair(entity, relation));
    const position = nodes.field(node, NODE_NEXT);
    const isListed =
      position < adjacency.lists.count(list) && adjacency.lists.get(list, position) === node;
    return isListed && nodes.nodeOf(entity, relation) === node;
  }
  let each = recordWord(dictionary, entity, RECORD_LINK);
  for (let i = 0; each !== 0 && i <= CHAIN_MAX; i++) {
    if (each === node) return true;
    if (!isLive(nodes, each)) return false;
    each = nodes.field(each, NODE_NEXT);
  }
  return false;
}

/** Checks that the record of a name is one. Throws at a breach. O(length). */
export function checkName(parts: IndexParts, id: number): void {
  const { names, dictionary } = parts;
  if (!names.isPinned(id) && names.mentions(id) === 0) return;
  const record = names.recordOf(id);
  checkRecord(parts, record);
  const isName = recordWord(dictionary, record, RECORD_OWNER) === NAME_OWNER;
  assert(isName, 'the record of a name is one');
}

/** What a live record is: a name, the hidden entity of the wildcard, or an entity with so many nodes and words of lists. */
export type RecordShape = { readonly nodes: number; readonly listWords: number };

/**
 * Checks one live record of the dictionary: it is found by its text, and a name has its id, an entity its nodes.
 * Throws at a breach. O(length).
 */
export function checkRecord(parts: IndexParts, record: number): RecordShape {
  const { dictionary, names } = parts;
  checkEntity(dictionary, record);
  const owner = recordWord(dictionary, record, RECORD_OWNER);
  const head = recordWord(dictionary, record, 0);
  const isFound = findsItself(dictionary, record, owner, head & RECORD_LENGTH_MASK);
  if (owner === NAME_OWNER) {
    const id = recordWord(dictionary, record, RECORD_LINK);
    const isNamed = id > 0 && id < names.top && names.recordOf(id) === record;
    assert(isFound && isNamed && head <= RECORD_LENGTH_MASK, 'a name has its id');
    const isWanted = names.isPinned(id) || names.mentions(id) > 0;
    assert(isWanted, 'a name that nothing mentions is gone');
    return { nodes: 0, listWords: 0 };
  }
  assert(owner < names.top, 'an entity has a namespace');
  const shape = checkNodesOf(parts, record, head);
  const isWildcard = parts.nodes.field(WILDCARD_NODE, NODE_ENTITY) === record;
  assert(isFound !== isWildcard, 'an entity is found by its text');
  return shape;
}

function checkNodesOf(parts: IndexParts, entity: number, head: number): RecordShape {
  const { nodes, dictionary, adjacency } = parts;
  const link = recordWord(dictionary, entity, RECORD_LINK);
  if ((head & RECORD_MANY) !== 0) {
    const listWords = wordsOfList(adjacency.lists, link);
    const isAll = (head & RELATION_BITS_ALL) === RELATION_BITS_ALL;
    assert(isAll, 'an entity with many nodes lets all relations pass');
    return { nodes: adjacency.lists.count(link), listWords };
  }
  let bits = 0;
  let count = 0;
  let node = link;
  for (; node !== 0 && count <= CHAIN_MAX; count++) {
    const isOwn = isLive(nodes, node) && nodes.field(node, NODE_ENTITY) === entity;
    assert(isOwn, 'the nodes of an entity are its own');
    const relation = nodes.field(node, NODE_RELATION) & NODE_RELATION_MASK;
    bits |= RELATION_BIT_FIRST << (relation % RELATION_BITS);
    node = nodes.field(node, NODE_NEXT);
  }
  assert(count > 0 && count <= CHAIN_MAX, 'an entity has a few nodes');
  const isExact = (head & RELATION_BITS_ALL) === bits;
  assert(isExact, 'an entity filters the relations of its nodes');
  return { nodes: count, listWords: 0 };
}

function checkEntity(dictionary: Dictionary, entity: number): void {
  const page = dictionary.records.pages[entity >>> RECORD_PAGE_SHIFT];
  const at = entity & RECORD_PAGE_MASK;
  const isPlaced =
    page !== undefined &&
    entity >= ADDRESS_FIRST &&
    entity < dictionary.top &&
    at + blockWords((page[at] as number) & RECORD_LENGTH_MASK) <= page.length;
  assert(isPlaced, 'a record lies on a page');
  assert(page[at + RECORD_OWNER] !== FREE_OWNER, 'a record in use is not free');
}

function findsItself(
  dictionary: Dictionary,
  record: number,
  owner: number,
  length: number,
): boolean {
  const page = dictionary.records.pages[record >>> RECORD_PAGE_SHIFT] as Uint32Array;
  const at = (record & RECORD_PAGE_MASK) + RECORD_HEADER;
  const words = (length + 3) >>> 2;
  for (let i = 0; i < words; i++) scratchWords[i] = page[at + i] as number;
  const hash = hashScratch(length, owner);
  checkSegmentOf(dictionary.table, hash);
  return dictionary.recordOf(owner, length, hash) === record;
}

/** A word of a record, by its offset. */
export function recordWord(dictionary: Dictionary, record: number, offset: number): number {
  const page = dictionary.records.pages[record >>> RECORD_PAGE_SHIFT] as Uint32Array;
  return page[(record & RECORD_PAGE_MASK) + offset] as number;
}
