import type { IndexParts } from './edge-writer.ts';
import { RECORD_LINK, RECORD_PAGE_MASK, RECORD_PAGE_SHIFT } from './tables/dictionary.ts';
import {
  CHAIN_MAX,
  NODE_ENTITY,
  NODE_NEXT,
  NODE_REVERSE,
  NODE_SETS,
  NODE_USERS,
  RECORD_MANY,
} from './tables/node-table.ts';
import { SEGMENT_HEADER, SEGMENT_SLOTS, type SegmentedHash } from './tables/segmented-hash.ts';
import type { TupleIndex } from './tuple-index.ts';
import type { TupleRow } from './tuple-row.ts';

/** Nodes, or segments, walked over between two clock reads. */
const STEP = 32;
/** The breach of an entity's nodes. */
const OWN_NODES = 'the nodes of an entity are its own';

/** The part in which a comparison found a breach: nodes, their lists, hashes, or the tuples themselves. */
export type IndexPart = 'nodes' | 'lists' | 'hashes' | 'tuples';

/** An index that is not what it must be: drop it and load again. The message names no tuple. */
export class IndexDamage extends Error {
  readonly part: IndexPart;

  constructor(part: IndexPart, message: string) {
    super(message);
    this.name = 'IndexDamage';
    this.part = part;
  }
}

/**
 * Counts the entries of all nodes in slices, while the index changes: pass each change in before and after it is
 * applied. Each direction must have as many as there are tuples, and each entity its own nodes, so that none is there
 * unseen. Errors: IndexDamage, and any other that reading damaged ids throws. O(nodes + segments) in all.
 */
export class IndexTally {
  readonly #index: TupleIndex;
  readonly #parts: IndexParts;
  /** Nodes below were walked over. */
  #end = 1;
  #forward = 0;
  #reverse = 0;
  /** Hashes that lookups need, and where in the first of them the walk is. */
  readonly #tables: SegmentedHash[];
  #segment = 0;
  #isDone = false;

  constructor(index: TupleIndex) {
    this.#index = index;
    this.#parts = index.parts;
    const { dictionary, nodes, adjacency, qualifiers } = this.#parts;
    this.#tables = [dictionary.table, nodes.table, adjacency.positions, qualifiers.table];
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  /** Whether the index was built anew since: what was counted is of nothing that there is. */
  get isVoid(): boolean {
    return this.#index.parts.nodes !== this.#parts.nodes;
  }

  /** Walks on for a while. Returns how many nodes and segments of hashes it walked over. */
  step(isOver: () => boolean): number {
    let walked = 0;
    while (!this.#isDone) {
      walked += this.#end < this.#parts.nodes.top ? this.#someNodes() : this.#someSegments();
      if (isOver()) break;
    }
    return walked;
  }

  /** Before a change of this tuple is applied. */
  before(row: TupleRow): void {
    this.#weighEnds(row, -1);
  }

  /** After it: a node that went counts nothing, and one that came counted nothing. */
  after(row: TupleRow): void {
    this.#weighEnds(row, 1);
  }

  /** Compares what was counted, after the walk and at any moment. */
  compare(): void {
    const { tupleCount } = this.#index;
    mustBeSound(this.#forward === tupleCount, 'lists', 'forward entries are as many as tuples');
    mustBeSound(this.#reverse === tupleCount, 'lists', 'reverse entries are as many as tuples');
  }

  #weighEnds(row: TupleRow, sign: 1 | -1): void {
    if (this.isVoid) return;
    const index = this.#index;
    const object = index.entityId(index.nameId(row.namespace), row.objectId);
    const node = index.nodeId(object, index.nameId(row.relation));
    const subject = index.subjectNodeOf(row);
    if (node < this.#end) this.#weigh(node, sign);
    if (subject < this.#end && subject !== node) this.#weigh(subject, sign);
  }

  #weigh(node: number, sign: 1 | -1): void {
    const { nodes, adjacency } = this.#parts;
    if (node === 0 || nodes.field(node, NODE_ENTITY) === 0) return;
    const count = (field: number): number => sign * adjacency.count(nodes.field(node, field));
    this.#forward += count(NODE_USERS) + count(NODE_SETS);
    this.#reverse += count(NODE_REVERSE);
  }

  #someNodes(): number {
    const from = this.#end;
    const end = Math.min(from + STEP, this.#parts.nodes.top);
    for (; this.#end < end; this.#end++) {
      this.#weigh(this.#end, 1);
      this.#checkEntity(this.#end);
    }
    return end - from;
  }

  #someSegments(): number {
    // Segments made from now on are weighed when they are made.
    this.#end = Infinity;
    const [table] = this.#tables;
    if (table === undefined) {
      this.#isDone = true;
      this.compare();
      return 1;
    }
    const from = this.#segment;
    const end = Math.min(from + STEP, table.directory.length);
    for (; this.#segment < end; this.#segment++) {
      checkSegment(table.directory[this.#segment] as Uint32Array);
    }
    if (end === table.directory.length) {
      this.#tables.shift();
      this.#segment = 0;
    }
    return end - from;
  }

  /** The entity of a live node leads to its own nodes alone, this one among them, and to an end. */
  #checkEntity(node: number): void {
    const { nodes, dictionary, adjacency } = this.#parts;
    const entity = nodes.field(node, NODE_ENTITY);
    if (entity === 0) return;
    const page = dictionary.records.pages[entity >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const at = entity & RECORD_PAGE_MASK;
    const link = page[at + RECORD_LINK] as number;
    if (((page[at] as number) & RECORD_MANY) === 0) {
      let count = 0;
      let isFound = false;
      for (let each = link; each !== 0; each = nodes.field(each, NODE_NEXT)) {
        count += 1;
        mustBeSound(count <= CHAIN_MAX, 'nodes', 'an entity has a few nodes');
        mustBeSound(nodes.field(each, NODE_ENTITY) === entity, 'nodes', OWN_NODES);
        if (each === node) isFound = true;
      }
      mustBeSound(isFound, 'nodes', OWN_NODES);
      return;
    }
    const { lists } = adjacency;
    const count = lists.count(link);
    const position = nodes.field(node, NODE_NEXT);
    mustBeSound(position < count && lists.get(link, position) === node, 'nodes', OWN_NODES);
    if (position > 0) return;
    for (let i = 0; i < count; i++) {
      const each = lists.get(link, i);
      const isOwn = nodes.field(each, NODE_ENTITY) === entity && nodes.field(each, NODE_NEXT) === i;
      mustBeSound(isOwn, 'nodes', OWN_NODES);
    }
  }
}

/** A lookup ends within a segment that has the slots that it names, and a free one. O(used slots in a row). */
function checkSegment(segment: Uint32Array): void {
  const slots = segment[SEGMENT_SLOTS] as number;
  let isSound = segment.length === SEGMENT_HEADER + slots * 2;
  if (isSound) {
    let slot = 0;
    while (slot < slots && segment[SEGMENT_HEADER + slot * 2 + 1] !== 0) slot += 1;
    isSound = slot < slots;
  }
  mustBeSound(isSound, 'hashes', 'a segment has the slots that it names, and a free one');
}

function mustBeSound(isSound: boolean, part: IndexPart, message: string): void {
  if (!isSound) throw new IndexDamage(part, message);
}
