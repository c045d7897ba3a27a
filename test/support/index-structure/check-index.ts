import { NAME_OWNER } from '../../../src/cache/tables/dictionary.ts';
import { NODE_REVERSE, NODE_SETS, NODE_USERS } from '../../../src/cache/tables/node-table.ts';
import type { TupleIndex } from '../../../src/cache/tuple-index.ts';
import {
  EDGE_ABSENT,
  EDGE_NODE_MASK,
  EDGE_QUALIFIED,
  WILDCARD_NODE,
} from '../../../src/model/tuple-reader.ts';
import { assert } from '../../../src/shared/assert.ts';

/**
 * Verifies what the parts of an index promise each other; throws at the first breach. For tests: O(tuples), and
 * allocates as much again.
 */
export function checkIndex(index: TupleIndex): void {
  const nodes = liveNodes(index);
  assert(nodes.size === index.nodeCount, 'every live node is in the chain of an entity');
  const mentions = new Map<number, number>();
  checkNames(index, nodes, mentions);
  let forward = 0;
  let reverse = 0;
  let qualified = 0;
  for (const node of nodes) {
    const users = listOf(index, node, 'users');
    const sets = listOf(index, node, 'sets');
    const holders = listOf(index, node, 'reverse');
    assert(users.length === index.userCount(node), 'readUsers returns userCount entries');
    assert(sets.length === index.setCount(node), 'readSets returns setCount entries');
    assert(holders.length === index.reverseCount(node), 'readReverse returns reverseCount entries');
    assert(
      node === WILDCARD_NODE || users.length + sets.length + holders.length > 0,
      'a live node has an edge',
    );
    for (const entry of users) checkEdge(index, nodes, node, entry, true);
    for (const entry of sets) checkEdge(index, nodes, node, entry, false);
    for (const entry of holders) {
      const known = index.edge(entry & EDGE_NODE_MASK, node);
      assert(known !== EDGE_ABSENT, 'a reverse entry has its forward entry');
      assert(
        (known === 2) === ((entry & EDGE_QUALIFIED) !== 0),
        'both entries agree on the qualifier',
      );
    }
    forward += users.length + sets.length;
    reverse += holders.length;
    qualified += [...users, ...sets].filter((entry) => (entry & EDGE_QUALIFIED) !== 0).length;
  }
  assert(forward === index.tupleCount, 'tupleCount counts the forward entries');
  assert(reverse === index.tupleCount, 'tupleCount counts the reverse entries');
  assert(qualified === index.parts.qualifiers.table.entries, 'qualifiers are those of edges');
  checkPositions(index, nodes);
}

function liveNodes(index: TupleIndex): Set<number> {
  const { dictionary } = index.parts;
  const nodes = new Set<number>();
  let records = 0;
  for (let at = dictionary.next(0); at !== 0; at = dictionary.next(dictionary.after(at))) {
    records += 1;
    if (index.namespaceOf(at) === NAME_OWNER) continue;
    const own = new Set<number>();
    for (let node = index.firstNodeOf(at); node !== 0; node = index.nextNodeOf(node)) {
      assert(index.entityOf(node) === at, 'a node in a chain belongs to the entity');
      assert(index.nodeId(at, index.relationOf(node)) === node, 'a node is found by its relation');
      assert(!own.has(node), 'a chain visits each node once');
      own.add(node);
      nodes.add(node);
    }
    assert(own.size > 0, 'a live entity has a node');
    const namespace = index.namespaceOf(at);
    const wildcard = own.has(WILDCARD_NODE);
    const found = index.entityId(namespace, index.entityText(at));
    assert(wildcard ? found === 0 : found === at, 'an entity is found by its text');
  }
  assert(records === dictionary.count, 'walking the dictionary meets every record');
  assert(records === dictionary.table.entries + 1, 'every record but the wildcard is hashed');
  return nodes;
}

function checkNames(index: TupleIndex, nodes: Set<number>, mentions: Map<number, number>): void {
  const mention = (name: number): void => {
    mentions.set(name, (mentions.get(name) ?? 0) + 1);
  };
  const entities = new Set<number>();
  for (const node of nodes) {
    mention(index.relationOf(node));
    if (node !== WILDCARD_NODE) entities.add(index.entityOf(node));
    for (const subject of [...listOf(index, node, 'users'), ...listOf(index, node, 'sets')]) {
      if ((subject & EDGE_QUALIFIED) === 0) continue;
      mention(index.parts.qualifiers.condition(node, subject & EDGE_NODE_MASK));
    }
  }
  for (const entity of entities) mention(index.namespaceOf(entity));
  const { names, dictionary } = index.parts;
  let live = 0;
  for (let at = dictionary.next(0); at !== 0; at = dictionary.next(dictionary.after(at))) {
    if (index.namespaceOf(at) !== NAME_OWNER) continue;
    live += 1;
    const name = index.nameId(dictionary.text(at));
    assert(name > 0 && name < names.top, 'a name record has an id');
    assert(names.text(name) === dictionary.text(at), 'a name has its own text');
    assert(names.mentions(name) === (mentions.get(name) ?? 0), 'names count their mentions');
    assert(names.isPinned(name) || names.mentions(name) > 0, 'an unmentioned name is gone');
  }
  mentions.delete(0);
  assert(live >= mentions.size, 'every mentioned name has a record');
}

function checkEdge(
  index: TupleIndex,
  nodes: Set<number>,
  node: number,
  entry: number,
  isUser: boolean,
): void {
  const subject = entry & EDGE_NODE_MASK;
  assert(nodes.has(subject), 'a stored subject is a live node');
  const known = index.edge(node, subject);
  assert(known !== EDGE_ABSENT, 'an entry is found as an edge');
  assert(
    (known === 2) === ((entry & EDGE_QUALIFIED) !== 0),
    'the entry says whether it is qualified',
  );
  const concrete =
    subject === WILDCARD_NODE ||
    (index.relationOf(subject) === 0 && index.namespaceOf(index.entityOf(subject)) === 0);
  assert(concrete === isUser, 'users and sets are kept apart');
  if (known === 2) index.qualifier(node, subject);
  let holders = 0;
  if (index.reverseCount(subject) > 1000) return;
  for (const holder of listOf(index, subject, 'reverse')) {
    if ((holder & EDGE_NODE_MASK) === node) holders += 1;
  }
  assert(holders === 1, 'an edge has one reverse entry');
}

function checkPositions(index: TupleIndex, nodes: Set<number>): void {
  const { adjacency, nodes: table } = index.parts;
  let hashed = 0;
  for (const node of nodes) {
    for (const field of [NODE_USERS, NODE_SETS, NODE_REVERSE]) {
      const word = table.field(node, field);
      if (adjacency.isHashed(word)) hashed += adjacency.count(word);
      assert(adjacency.count(word) !== 1 || adjacency.isInline(word), 'one entry lies inline');
      assert(!adjacency.isHashed(word) || adjacency.count(word) > 15, 'short lists are not hashed');
    }
  }
  assert(hashed === adjacency.positions.entries, 'positions are those of hashed lists');
}

/** All entries of one of a node's lists, read in small chunks. */
export function listOf(
  index: TupleIndex,
  node: number,
  list: 'users' | 'sets' | 'reverse',
): number[] {
  const out = new Uint32Array(64);
  const entries: number[] = [];
  for (let cursor = 0; cursor >= 0; cursor = index.nextCursor) {
    const count =
      list === 'users'
        ? index.readUsers(node, cursor, out, 0)
        : list === 'sets'
          ? index.readSets(node, cursor, out, 0)
          : index.readReverse(node, cursor, out, 0);
    for (let i = 0; i < count; i++) entries.push(out[i] as number);
  }
  return entries;
}
