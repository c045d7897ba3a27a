import { EDGE_WITH_QUALIFIER, WILDCARD_NODE } from '../model/tuple-reader.ts';
import { FORWARD } from './adjacency.ts';
import { NAME_OWNER, RECORD_OWNER } from './dictionary.ts';
import type { IndexParts } from './edge-writer.ts';
import { mustBeSound } from './index-damage.ts';
import {
  NODE_ENTITY,
  NODE_NEXT,
  NODE_RELATION,
  NODE_RELATION_MASK,
  NODE_REVERSE,
  NODE_SETS,
  NODE_USERS,
} from './node-table.ts';
import {
  QUALIFIER_CONDITION,
  QUALIFIER_PARAMS,
  QUALIFIER_PARAMS_BYTES,
} from './qualifier-store.ts';
import { wordsOfList } from './sound-lists.ts';
import { checkNode, checkRecord, recordWord } from './sound-nodes.ts';

const MENTIONS_FIRST = 64;

/**
 * What a walk over an index has counted. Each thing that was walked over can be taken out again and put back as it
 * is now, so that the sums stay those of one moment while the index changes. Checks what it weighs.
 * Errors of all: IndexDamage.
 */
export class IndexTally {
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

  /** Words of all lists weighed. */
  get listWords(): number {
    return this.#listWords;
  }

  /** Adds (1) or takes out (-1) a node, live or free. */
  node(node: number, sign: 1 | -1): void {
    const { nodes, adjacency } = this.#parts;
    this.#listWords += sign * checkNode(this.#parts, node);
    if (nodes.field(node, NODE_ENTITY) === 0) {
      this.#free += sign;
      this.#freeIds = (this.#freeIds + sign * node) | 0;
      this.#freeLinks = (this.#freeLinks + sign * nodes.field(node, NODE_NEXT)) | 0;
      return;
    }
    this.#live += sign;
    for (const field of [NODE_USERS, NODE_SETS, NODE_REVERSE]) {
      const word = nodes.field(node, field);
      const count = adjacency.count(word);
      if (field === NODE_REVERSE) this.#reverse += sign * count;
      else this.#forward += sign * count;
      if (adjacency.isHashed(word)) this.#hashed += sign * count;
    }
    this.#mention(nodes.field(node, NODE_RELATION) & NODE_RELATION_MASK, sign);
  }

  /** Adds or takes out a live record of the dictionary. */
  record(record: number, sign: 1 | -1): void {
    const { nodes, dictionary } = this.#parts;
    const shape = checkRecord(this.#parts, record);
    const owner = recordWord(dictionary, record, RECORD_OWNER);
    if (owner === NAME_OWNER) return;
    this.#chained += sign * shape.nodes;
    this.#listWords += sign * shape.listWords;
    if (nodes.field(WILDCARD_NODE, NODE_ENTITY) !== record) this.#mention(owner, sign);
  }

  /** Adds or takes out what an edge carries. */
  qualifier(node: number, subject: number, sign: 1 | -1): void {
    const { nodes, adjacency, qualifiers } = this.#parts;
    const { lists } = adjacency;
    const word = [NODE_USERS, NODE_SETS].map((field) => nodes.field(node, field));
    const isQualified = word.some(
      (each) => each !== 0 && adjacency.edge(each, node, subject, FORWARD) === EDGE_WITH_QUALIFIER,
    );
    mustBeSound(isQualified, 'qualifiers', 'what an edge carries belongs to an edge');
    const record = qualifiers.recordOf(node, subject);
    this.#listWords += sign * wordsOfList(lists, record);
    const bytes = lists.get(record, QUALIFIER_PARAMS_BYTES);
    const isWhole = lists.count(record) === QUALIFIER_PARAMS + ((bytes + 3) >>> 2);
    mustBeSound(isWhole, 'qualifiers', 'what an edge carries is whole');
    this.#qualifiers += sign;
    this.#mention(lists.get(record, QUALIFIER_CONDITION), sign);
  }

  /** Compares the sums of a whole walk with what the index says, now. O(names). */
  compare(tupleCount: number): void {
    const { nodes, names, adjacency, qualifiers } = this.#parts;
    const isCounted = this.#live === nodes.count && this.#live + this.#free === nodes.top - 1;
    mustBeSound(isCounted, 'nodes', 'nodes are live or free');
    const isLine = this.#freeIds === ((this.#freeLinks + nodes.freeHead) | 0);
    mustBeSound(isLine, 'nodes', 'free nodes stand in one line');
    mustBeSound(this.#chained === this.#live, 'nodes', 'entities have all live nodes');
    mustBeSound(this.#forward === tupleCount, 'lists', 'forward entries are as many as tuples');
    mustBeSound(this.#reverse === tupleCount, 'lists', 'reverse entries are as many as tuples');
    const isHashed = this.#hashed === adjacency.positions.entries;
    mustBeSound(isHashed, 'positions', 'positions are those of hashed lists');
    const isCarried = this.#qualifiers === qualifiers.table.entries;
    mustBeSound(isCarried, 'qualifiers', 'as many are carried as are stored');
    let pinned = 0;
    for (let id = 1; id < names.top; id++) {
      const isSame = names.mentions(id) === (this.#mentions[id] ?? 0);
      mustBeSound(isSame, 'names', 'a name counts its mentions');
      if (names.isPinned(id)) pinned += 1;
    }
    mustBeSound(pinned === names.pinnedCount, 'names', 'pinned names are counted');
  }

  #mention(name: number, sign: 1 | -1): void {
    if (name === 0) return;
    mustBeSound(name < this.#parts.names.top, 'names', 'a mentioned name has an id');
    if (name >= this.#mentions.length) {
      const grown = new Int32Array(Math.max(name + 1, this.#mentions.length * 2));
      grown.set(this.#mentions);
      this.#mentions = grown;
    }
    this.#mentions[name] = (this.#mentions[name] as number) + sign;
  }
}
