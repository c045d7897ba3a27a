import { EDGE_WITH_QUALIFIER } from '../model/tuple-reader.ts';
import {
  ADDRESS_FIRST,
  BLOCK_WORDS_MIN,
  FREE_OWNER,
  RECORD_LINK,
  RECORD_OWNER,
  RECORD_PAGE_MASK,
  RECORD_PAGE_WORDS,
  binOf,
  blockWords,
  RECORD_LENGTH_MASK,
} from './dictionary.ts';
import type { IndexParts } from './edge-writer.ts';
import { mustBeSound } from './index-damage.ts';
import { IndexTally } from './index-tally.ts';
import { ORDER_MIN } from './list-store.ts';
import { NODE_NEXT } from './node-table.ts';
import { QUALIFIER_NODE, QUALIFIER_SUBJECT } from './qualifier-store.ts';
import type { SegmentedHash } from './segmented-hash.ts';
import { HASH_END, checkSegmentAt } from './sound-hash.ts';
import { checkFreeBlocks, checkFreeHeads, wordsOfList } from './sound-lists.ts';
import { checkName, recordWord } from './sound-nodes.ts';
import { hashPair } from './text-scratch.ts';
import type { TupleIndex } from './tuple-index.ts';
import type { TupleRow } from './tuple-row.ts';

/** Things walked over between two looks at the clock. */
const STEP = 32;

/** What a change can touch: ids of nodes and entities, 0 for none. */
type Touched = {
  readonly node: number;
  readonly subject: number;
  readonly isQualified: boolean;
  readonly nodes: ReadonlySet<number>;
  readonly records: ReadonlySet<number>;
};

/**
 * Walks over all parts of an index in slices, while it changes: notify each change before and after it is applied. Every
 * node, record and entry is checked by itself, and what was counted must agree in the end (`finish`). Room that is free
 * is compared as a whole only if nothing changed meanwhile, since no answer depends on it.
 * Errors: IndexDamage. O(nodes + records + slots) in all.
 */
export class StructureAudit {
  readonly #index: TupleIndex;
  readonly #parts: IndexParts;
  readonly #tally: IndexTally;
  readonly #revision: number;
  /** Nodes, records and hashes of qualifiers below were walked over. */
  #nodeEnd = 1;
  #recordEnd = ADDRESS_FIRST;
  #qualifierEnd = 0;
  readonly #tables: SegmentedHash[];
  #nameEnd = 1;
  #hashEnd = 0;
  #page = 0;
  #records = 0;
  #hashEntries = 0;
  #freeListWords = 0;
  /** Per size of free blocks of the dictionary: what they are, and where they lead. */
  readonly #binIds: Int32Array;
  readonly #binLinks: Int32Array;
  #isDone = false;
  #before: Touched | null = null;

  constructor(index: TupleIndex) {
    this.#index = index;
    this.#parts = index.parts;
    const { dictionary, nodes, adjacency } = this.#parts;
    this.#tally = new IndexTally(this.#parts);
    this.#revision = index.revision;
    this.#tables = [dictionary.table, nodes.table, adjacency.positions];
    this.#binIds = new Int32Array(dictionary.bins.length);
    this.#binLinks = new Int32Array(dictionary.bins.length);
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  /** Whether the index was built anew since: what was counted is of nothing that there is. */
  get isVoid(): boolean {
    return this.#index.parts.nodes !== this.#parts.nodes;
  }

  /** Walks on for a while. Returns how many things it walked over. */
  step(isOver: () => boolean): number {
    let walked = 0;
    while (!this.#isDone) {
      walked += this.#some();
      if (isOver()) break;
    }
    return walked;
  }

  /** Compares what was counted, after the walk and at any moment. O(names). */
  finish(): void {
    this.#tally.compare(this.#index.tupleCount);
    if (this.#index.revision !== this.#revision) return;
    const { dictionary, nodes, adjacency } = this.#parts;
    mustBeSound(this.#records === dictionary.count, 'dictionary', 'records are counted');
    const entries = dictionary.table.entries + nodes.table.entries + adjacency.positions.entries;
    mustBeSound(this.#hashEntries === entries, 'hashes', 'tables count their entries');
    dictionary.bins.forEach((head, bin) => {
      const isLine = this.#binIds[bin] === (((this.#binLinks[bin] as number) + head) | 0);
      mustBeSound(isLine, 'dictionary', 'free blocks of one size stand in one line');
    });
    let words = 0;
    for (const page of adjacency.lists.pages) words += page.length;
    const known = this.#tally.listWords + this.#freeListWords + (1 << ORDER_MIN);
    mustBeSound(known === words, 'lists', 'blocks are free or of one list');
  }

  /** Before a change of this tuple is applied. */
  before(row: TupleRow): void {
    const touched = this.#touched(row);
    const { nodes } = this.#parts;
    // Of the free nodes the first two may be taken.
    const first = nodes.freeHead;
    const second = first === 0 ? 0 : nodes.field(first, NODE_NEXT);
    const all = { ...touched, nodes: new Set([...touched.nodes, first, second]) };
    this.#weigh(all, -1);
    this.#before = all;
  }

  /** After it. */
  after(row: TupleRow): void {
    const before = this.#before;
    this.#before = null;
    if (before === null || this.isVoid) return;
    const now = this.#touched(row);
    this.#weigh({ ...now, nodes: new Set([...before.nodes, ...now.nodes]) }, 1);
  }

  #touched(row: TupleRow): Touched {
    const index = this.#index;
    const object = index.entityId(index.nameId(row.namespace), row.objectId);
    const node = index.nodeId(object, index.nameId(row.relation));
    const subjectNode = index.subjectNodeOf(row);
    const holder = index.entityId(index.nameId(row.subjectNamespace), row.subjectId);
    const isEdge = node !== 0 && subjectNode !== 0;
    return {
      node,
      subject: subjectNode,
      isQualified: isEdge && index.edge(node, subjectNode) === EDGE_WITH_QUALIFIER,
      nodes: new Set([node, subjectNode]),
      records: new Set([object, holder]),
    };
  }

  #weigh(touched: Touched, sign: 1 | -1): void {
    const { node, subject, isQualified } = touched;
    for (const each of touched.nodes) {
      if (each !== 0 && each < this.#nodeEnd) this.#tally.node(each, sign);
    }
    for (const each of touched.records) {
      if (each !== 0 && each < this.#recordEnd) this.#tally.record(each, sign);
    }
    if (isQualified && hashPair(node, subject) >>> 0 < this.#qualifierEnd) {
      this.#tally.qualifier(node, subject, sign);
    }
  }

  #some(): number {
    if (this.#nodeEnd < this.#parts.nodes.top) return this.#someNodes();
    // What is made from now on is weighed when it is made.
    this.#nodeEnd = Infinity;
    if (this.#recordEnd < this.#parts.dictionary.top) return this.#someRecords();
    this.#recordEnd = Infinity;
    if (this.#nameEnd < this.#parts.names.top) return this.#someNames();
    if (this.#qualifierEnd < HASH_END) return this.#someQualifiers();
    if (this.#tables.length > 0) return this.#someEntries();
    return this.#somePages();
  }

  #someNodes(): number {
    const end = Math.min(this.#nodeEnd + STEP, this.#parts.nodes.top);
    const from = this.#nodeEnd;
    for (let node = from; node < end; node++) this.#tally.node(node, 1);
    this.#nodeEnd = end;
    return end - from;
  }

  /** As Dictionary.next, which trusts what it reads. */
  #someRecords(): number {
    const { dictionary } = this.#parts;
    const { pages } = dictionary.records;
    for (let i = 0; i < STEP && this.#recordEnd < dictionary.top; i++) {
      const at = this.#recordEnd;
      const rest = RECORD_PAGE_WORDS - (at & RECORD_PAGE_MASK);
      let words = rest;
      if (rest >= BLOCK_WORDS_MIN) {
        const head = recordWord(dictionary, at, 0);
        const isFree = recordWord(dictionary, at, RECORD_OWNER) === FREE_OWNER;
        words = isFree ? this.#freeRecord(at, head) : blockWords(head & RECORD_LENGTH_MASK);
        const isPlaced = words >= BLOCK_WORDS_MIN && words <= rest;
        mustBeSound(isPlaced && pages.length > 0, 'dictionary', 'blocks follow each other');
        if (!isFree) {
          this.#records += 1;
          this.#tally.record(at, 1);
        }
      }
      this.#recordEnd = at + words;
    }
    const isEnd = this.#recordEnd <= dictionary.top;
    mustBeSound(isEnd, 'dictionary', 'the last block ends where the next one begins');
    return STEP;
  }

  #freeRecord(address: number, words: number): number {
    const { dictionary } = this.#parts;
    const bin = binOf(words);
    const next = recordWord(dictionary, address, RECORD_LINK);
    const isPlaced = bin >= 0 && bin < dictionary.bins.length && next < dictionary.top;
    mustBeSound(isPlaced, 'dictionary', 'a free block has a size');
    const isLine =
      next === 0 ||
      (recordWord(dictionary, next, RECORD_OWNER) === FREE_OWNER &&
        binOf(recordWord(dictionary, next, 0)) === bin);
    mustBeSound(isLine, 'dictionary', 'a free block leads to one of its size');
    this.#binIds[bin] = (this.#binIds[bin] as number) + address;
    this.#binLinks[bin] = (this.#binLinks[bin] as number) + next;
    return words;
  }

  #someNames(): number {
    const end = Math.min(this.#nameEnd + STEP, this.#parts.names.top);
    for (; this.#nameEnd < end; this.#nameEnd++) checkName(this.#parts, this.#nameEnd);
    return STEP;
  }

  #someQualifiers(): number {
    const { qualifiers, adjacency, nodes } = this.#parts;
    const { lists } = adjacency;
    let count = 1;
    this.#qualifierEnd = checkSegmentAt(qualifiers.table, this.#qualifierEnd, (hash, record) => {
      wordsOfList(lists, record);
      const node = lists.get(record, QUALIFIER_NODE);
      const subject = lists.get(record, QUALIFIER_SUBJECT);
      const isOwn = node < nodes.top && subject < nodes.top && hashPair(node, subject) === hash;
      mustBeSound(isOwn, 'qualifiers', 'what an edge carries names its edge');
      this.#tally.qualifier(node, subject, 1);
      count += 1;
    });
    return count;
  }

  #someEntries(): number {
    const table = this.#tables[0] as SegmentedHash; // the caller looked
    let count = 0;
    this.#hashEnd = checkSegmentAt(table, this.#hashEnd, () => {
      count += 1;
    });
    this.#hashEntries += count;
    if (this.#hashEnd === HASH_END) {
      this.#hashEnd = 0;
      this.#tables.shift();
    }
    return 1 + (count >>> 3);
  }

  #somePages(): number {
    const { lists } = this.#parts.adjacency;
    if (this.#page < lists.pages.length) {
      this.#freeListWords += checkFreeBlocks(lists, this.#page);
      this.#page += 1;
      return 1_000;
    }
    checkFreeHeads(lists);
    this.#isDone = true;
    return 1;
  }
}
