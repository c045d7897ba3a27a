import { RECORD_LINK, RECORD_PAGE_MASK, RECORD_PAGE_SHIFT } from './dictionary.ts';
import type { IndexParts } from './edge-writer.ts';
import {
  CHAIN_MAX,
  NODE_ENTITY,
  NODE_NEXT,
  NODE_REVERSE,
  NODE_SETS,
  NODE_USERS,
  RECORD_MANY,
} from './node-table.ts';
import {
  SEGMENT_ENTRIES,
  SEGMENT_HEADER,
  SEGMENT_SLOTS,
  type SegmentedHash,
} from './segmented-hash.ts';
import type { TupleIndex } from './tuple-index.ts';
import type { TupleRow } from './tuple-row.ts';

/** Nodes walked over between two looks at the clock. */
const STEP = 32;

/** What a comparison says does not hold: nodes, their lists, hashes, or the tuples themselves. */
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
 * Counts the entries of all nodes in slices, while the index changes: notify each change before and after it is applied.
 * Each direction must have as many as there are tuples, so that none is there unseen; and every lookup must end.
 * Errors: IndexDamage, and any other that reading damaged ids throws. O(nodes) in all.
 */
export class IndexTally {
  readonly #index: TupleIndex;
  readonly #parts: IndexParts;
  /** Nodes below were walked over. */
  #end = 1;
  #forward = 0;
  #reverse = 0;

  constructor(index: TupleIndex) {
    this.#index = index;
    this.#parts = index.parts;
  }

  get isDone(): boolean {
    return this.#end === Infinity;
  }

  /** Whether the index was built anew since: what was counted is of nothing that there is. */
  get isVoid(): boolean {
    return this.#index.parts.nodes !== this.#parts.nodes;
  }

  /** Walks on for a while. Returns how many nodes it walked over. */
  step(isOver: () => boolean): number {
    const { nodes, dictionary, adjacency, qualifiers } = this.#parts;
    let walked = 0;
    do {
      const end = Math.min(this.#end + STEP, nodes.top);
      walked += end - this.#end;
      for (; this.#end < end; this.#end++) {
        this.#weigh(this.#end, 1);
        this.#checkChain(this.#end);
      }
    } while (this.#end < nodes.top && !isOver());
    if (this.#end < nodes.top) return walked;
    // What is made from now on is weighed when it is made.
    this.#end = Infinity;
    for (const table of [dictionary.table, nodes.table, adjacency.positions, qualifiers.table]) {
      checkSegments(table);
    }
    this.compare();
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

  /** The nodes of an entity must end, or a lookup among them does not. */
  #checkChain(node: number): void {
    const { nodes, dictionary } = this.#parts;
    const entity = nodes.field(node, NODE_ENTITY);
    if (entity === 0) return;
    const page = dictionary.records.pages[entity >>> RECORD_PAGE_SHIFT] as Uint32Array;
    const at = entity & RECORD_PAGE_MASK;
    if (((page[at] as number) & RECORD_MANY) !== 0) return;
    let each = page[at + RECORD_LINK] as number;
    for (let i = 0; each !== 0; i++) {
      mustBeSound(i < CHAIN_MAX, 'nodes', 'an entity has a few nodes');
      each = nodes.field(each, NODE_NEXT);
    }
  }
}

/** A lookup ends within a segment that has the slots that it names, and a free one. O(segments). */
function checkSegments(table: SegmentedHash): void {
  for (const segment of table.directory) {
    const slots = segment[SEGMENT_SLOTS] as number;
    const isSound =
      segment.length === SEGMENT_HEADER + slots * 2 && (segment[SEGMENT_ENTRIES] as number) < slots;
    mustBeSound(isSound, 'hashes', 'a segment has the slots that it names, and a free one');
  }
}

function mustBeSound(isSound: boolean, part: IndexPart, message: string): void {
  if (!isSound) throw new IndexDamage(part, message);
}
