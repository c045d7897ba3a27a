import type { IndexParts } from '../../../src/cache/edge-writer.ts';
import { FORWARD } from '../../../src/cache/tables/adjacency.ts';
import { NAME_OWNER, RECORD_OWNER } from '../../../src/cache/tables/dictionary.ts';
import {
  NODE_ENTITY,
  NODE_NEXT,
  NODE_RELATION,
  NODE_RELATION_MASK,
  NODE_REVERSE,
  NODE_SETS,
  NODE_USERS,
} from '../../../src/cache/tables/node-table.ts';
import {
  QUALIFIER_CONDITION,
  QUALIFIER_PARAMS,
  QUALIFIER_PARAMS_BYTES,
} from '../../../src/cache/tables/qualifier-store.ts';
import { EDGE_WITH_QUALIFIER, WILDCARD_NODE } from '../../../src/model/tuple-reader.ts';
import { assert } from '../../../src/shared/assert.ts';
import { wordsOfList } from './sound-lists.ts';
import { checkNode, checkRecord, recordWord } from './sound-nodes.ts';

const MENTIONS_FIRST = 64;

/** What a walk over an index has counted. Checks what it counts, and throws at a breach. */
export class StructureTally {
  readonly #parts: IndexParts;
  #live = 0;
  #free = 0;
  #forward = 0;
  #reverse = 0;
  #hashed = 0;
  #chained = 0;
  #qualifiers = 0;
  #listWords = 0;
  /** Free nodes stand in one line: what they are and where they lead are the same numbers, but for the first. */
  #freeIds = 0;
  #freeLinks = 0;
  #mentions = new Int32Array(MENTIONS_FIRST);

  constructor(parts: IndexParts) {
    this.#parts = parts;
  }

  /** Words of all lists counted. */
  get listWords(): number {
    return this.#listWords;
  }

  /** Adds a node, live or free. */
  node(node: number): void {
    const { nodes, adjacency } = this.#parts;
    this.#listWords += checkNode(this.#parts, node);
    if (nodes.field(node, NODE_ENTITY) === 0) {
      this.#free += 1;
      this.#freeIds = (this.#freeIds + node) | 0;
      this.#freeLinks = (this.#freeLinks + nodes.field(node, NODE_NEXT)) | 0;
      return;
    }
    this.#live += 1;
    for (const field of [NODE_USERS, NODE_SETS, NODE_REVERSE]) {
      const word = nodes.field(node, field);
      const count = adjacency.count(word);
      if (field === NODE_REVERSE) this.#reverse += count;
      else this.#forward += count;
      if (adjacency.isHashed(word)) this.#hashed += count;
    }
    this.#mention(nodes.field(node, NODE_RELATION) & NODE_RELATION_MASK);
  }

  /** Adds a live record of the dictionary. */
  record(record: number): void {
    const { nodes, dictionary } = this.#parts;
    const shape = checkRecord(this.#parts, record);
    const owner = recordWord(dictionary, record, RECORD_OWNER);
    if (owner === NAME_OWNER) return;
    this.#chained += shape.nodes;
    this.#listWords += shape.listWords;
    if (nodes.field(WILDCARD_NODE, NODE_ENTITY) !== record) this.#mention(owner);
  }

  /** Adds what an edge carries. */
  qualifier(node: number, subject: number): void {
    const { nodes, adjacency, qualifiers } = this.#parts;
    const { lists } = adjacency;
    const word = [NODE_USERS, NODE_SETS].map((field) => nodes.field(node, field));
    const isQualified = word.some(
      (each) => each !== 0 && adjacency.edge(each, node, subject, FORWARD) === EDGE_WITH_QUALIFIER,
    );
    assert(isQualified, 'what an edge carries belongs to an edge');
    const record = qualifiers.recordOf(node, subject);
    this.#listWords += wordsOfList(lists, record);
    const bytes = lists.get(record, QUALIFIER_PARAMS_BYTES);
    const isWhole = lists.count(record) === QUALIFIER_PARAMS + ((bytes + 3) >>> 2);
    assert(isWhole, 'what an edge carries is whole');
    this.#qualifiers += 1;
    this.#mention(lists.get(record, QUALIFIER_CONDITION));
  }

  /** Compares the sums of a whole walk with what the index says, now. O(names). */
  compare(tupleCount: number): void {
    const { nodes, names, adjacency, qualifiers } = this.#parts;
    const isCounted = this.#live === nodes.count && this.#live + this.#free === nodes.top - 1;
    assert(isCounted, 'nodes are live or free');
    const isLine = this.#freeIds === ((this.#freeLinks + nodes.freeHead) | 0);
    assert(isLine, 'free nodes stand in one line');
    assert(this.#chained === this.#live, 'entities have all live nodes');
    assert(this.#forward === tupleCount, 'forward entries are as many as tuples');
    assert(this.#reverse === tupleCount, 'reverse entries are as many as tuples');
    const isHashed = this.#hashed === adjacency.positions.entries;
    assert(isHashed, 'positions are those of hashed lists');
    const isCarried = this.#qualifiers === qualifiers.table.entries;
    assert(isCarried, 'as many are carried as are stored');
    let pinned = 0;
    for (let id = 1; id < names.top; id++) {
      const isSame = names.mentions(id) === (this.#mentions[id] ?? 0);
      assert(isSame, 'a name counts its mentions');
      if (names.isPinned(id)) pinned += 1;
    }
    assert(pinned === names.pinnedCount, 'pinned names are counted');
  }

  #mention(name: number): void {
    if (name === 0) return;
    assert(name < this.#parts.names.top, 'a mentioned name has an id');
    if (name >= this.#mentions.length) {
      const grown = new Int32Array(Math.max(name + 1, this.#mentions.length * 2));
      grown.set(this.#mentions);
      this.#mentions = grown;
    }
    this.#mentions[name] = (this.#mentions[name] as number) + 1;
  }
}
