import { WILDCARD_NAMESPACE, type RelationTuple, type TupleKey } from '../model/relation-tuple.ts';
import { EDGE_ABSENT, EMPTY_NAME, WILDCARD_NAME, WILDCARD_NODE } from '../model/tuple-reader.ts';
import type { EdgeQualifier, EntityLookups, TupleReader } from '../model/tuple-reader.ts';
import { assert } from '../shared/assert.ts';
import { utf8Text } from '../shared/text/utf8.ts';
import { EdgeWriter, type IndexParts } from './edge-writer.ts';
import { findEntities } from './entity-lookup.ts';
import { RowLoader } from './row-loader.ts';
import { Adjacency, FORWARD } from './tables/adjacency.ts';
import { ChangeJournal } from './tables/change-journal.ts';
import {
  Dictionary,
  NAME_OWNER,
  RECORD_LINK,
  RECORD_OWNER,
  RECORD_PAGE_MASK,
  RECORD_PAGE_SHIFT,
} from './tables/dictionary.ts';
import { NameTable } from './tables/name-table.ts';
import {
  NODE_ENTITY,
  NODE_IS_USER,
  NODE_PAGE_MASK,
  NODE_PAGE_SHIFT,
  NODE_RELATION,
  NODE_RELATION_MASK,
  NODE_REVERSE,
  NODE_SETS,
  NODE_STRIDE,
  NODE_USERS,
  NodeTable,
} from './tables/node-table.ts';
import { PageAllocator } from './tables/page-allocator.ts';
import { NEVER_US, QualifierStore } from './tables/qualifier-store.ts';
import { hashScratch, loadText } from './tables/text-scratch.ts';
import { isPublicWildcard, rowFromTuple } from './tuple-row.ts';
import type { RowBytes, TupleRow } from './tuple-row.ts';

/** An emptied index above this size is built anew, so that its memory returns to the start. */
const REBUILD_BYTES = 65_536;
const NO_BYTES = new Uint8Array(0);
const utf8 = new TextEncoder();

/** Settings of a TupleIndex. */
export type TupleIndexOptions = {
  /** Largest size in bytes; beyond it changes throw SHARD_TOO_LARGE and the index must be dropped. */
  readonly bytesMax?: number | undefined;
};

/**
 * The tuples of one shard in memory: see architecture, "Index". Everything lives in typed arrays on pages, nothing
 * on the JS heap grows with the tuples. Changes are incremental: none moves more than one hash segment or page.
 * Reads are here, on its own fields, since checks make them; what changes the parts is in EdgeWriter.
 * A change that throws leaves the index damaged: drop it and load again.
 */
export class TupleIndex implements TupleReader {
  revision = 0;
  tupleCount = 0;
  nextCursor = -1;
  readonly #allocator: PageAllocator;
  #dictionary: Dictionary;
  #names: NameTable;
  #adjacency: Adjacency;
  #nodes: NodeTable;
  #nodePages: readonly Uint32Array[];
  #qualifiers: QualifierStore;
  #journal: ChangeJournal;
  #writer: EdgeWriter;
  #loader: RowLoader;

  constructor(options: TupleIndexOptions = {}) {
    this.#allocator = new PageAllocator(options.bytesMax ?? Number.MAX_SAFE_INTEGER);
    this.#dictionary = new Dictionary(this.#allocator);
    this.#names = new NameTable(this.#dictionary, this.#allocator);
    this.#adjacency = new Adjacency(this.#allocator);
    this.#nodes = new NodeTable(this.#dictionary, this.#adjacency.lists, this.#allocator);
    this.#nodePages = this.#nodes.pages;
    this.#qualifiers = new QualifierStore(this.#adjacency.lists, this.#allocator);
    this.#journal = new ChangeJournal(this.#allocator, 0);
    this.#writer = new EdgeWriter(this.parts, this.#journal, this);
    this.#loader = new RowLoader(this.#writer, this.parts);
    this.#addWildcard();
  }

  /** Bytes of all buffers of this index. */
  get bytes(): number {
    return this.#allocator.bytes;
  }

  /** Live nodes, the wildcard's included. */
  get nodeCount(): number {
    return this.#nodes.count;
  }

  /** Bytes by kind, for benches and metrics. */
  partBytes(): Readonly<Record<string, number>> {
    return {
      records: this.#dictionary.records.bytes,
      dictionaryHash: this.#dictionary.table.bytes,
      nodes: this.#nodes.words.bytes,
      nodeHash: this.#nodes.table.bytes,
      lists: this.#adjacency.lists.bytes,
      positions: this.#adjacency.positions.bytes,
      qualifierHash: this.#qualifiers.table.bytes,
      names: this.#names.bytes,
    };
  }

  /** The parts of the index, for code that compares or verifies it. */
  get parts(): IndexParts {
    return {
      dictionary: this.#dictionary,
      names: this.#names,
      nodes: this.#nodes,
      adjacency: this.#adjacency,
      qualifiers: this.#qualifiers,
    };
  }

  readChange(revision: number, out: Uint32Array): boolean {
    return revision <= this.revision && this.#journal.read(revision, out);
  }

  // Names and entities.

  nameId(name: string): number {
    return this.#names.idOf(name);
  }

  pinName(name: string): number {
    return this.#names.pin(name);
  }

  nameText(name: number): string {
    return this.#names.text(name);
  }

  nameIdOfBytes(bytes: Uint8Array, start: number, end: number): number {
    return this.#names.findBytes(bytes, start, end);
  }

  entityId(namespace: number, id: string): number {
    const length = loadText(id);
    if (length < 0 || namespace < 0) return 0;
    return this.#dictionary.recordOf(namespace, length, hashScratch(length, namespace));
  }

  readEntityIds(bytes: Uint8Array, lookups: EntityLookups, count: number): void {
    findEntities(this.#dictionary, bytes, lookups, count);
  }

  get hasTypedWildcards(): boolean {
    // The entity of the public one does not count as a mention.
    return this.#names.mentions(WILDCARD_NAME) > 0;
  }

  namespaceOf(entity: number): number {
    const page = this.#dictionary.records.pages[entity >>> RECORD_PAGE_SHIFT] as Uint32Array;
    return page[(entity & RECORD_PAGE_MASK) + RECORD_OWNER] as number;
  }

  entityText(entity: number): string {
    return this.#dictionary.text(entity);
  }

  readEntityId(entity: number, out: Uint8Array, at: number): number {
    return this.#dictionary.read(entity, out, at);
  }

  compareEntityIds(a: number, b: number): number {
    return this.#dictionary.compare(a, b);
  }

  readEntitiesOf(namespace: number, cursor: number, out: Uint32Array, outStart: number): number {
    let to = outStart;
    let record = this.#dictionary.next(cursor);
    for (; record !== 0; record = this.#dictionary.next(this.#dictionary.after(record))) {
      if (this.namespaceOf(record) !== namespace) continue;
      if (to === out.length) break;
      out[to++] = record;
    }
    this.nextCursor = record === 0 ? -1 : record;
    return to - outStart;
  }

  // Nodes.

  nodeId(entity: number, relation: number): number {
    return entity === 0 || relation < 0 ? 0 : this.#nodes.nodeOf(entity, relation);
  }

  userNodeOf(entity: number): number {
    // Its only node: the empty namespace has no relations.
    const page = this.#dictionary.records.pages[entity >>> RECORD_PAGE_SHIFT] as Uint32Array;
    return page[(entity & RECORD_PAGE_MASK) + RECORD_LINK] as number;
  }

  entityOf(node: number): number {
    return this.#field(node, NODE_ENTITY);
  }

  relationOf(node: number): number {
    return this.#field(node, NODE_RELATION) & NODE_RELATION_MASK;
  }

  firstNodeOf(entity: number): number {
    return entity === 0 ? 0 : this.#nodes.first(entity);
  }

  nextNodeOf(node: number): number {
    return this.#nodes.next(node);
  }

  readObject(entity: number, out: Uint32Array): number {
    return this.#nodes.readObject(entity, out);
  }

  // Edges.

  usersWord(node: number): number {
    return this.#field(node, NODE_USERS);
  }

  setsWord(node: number): number {
    return this.#field(node, NODE_SETS);
  }

  wordEdge(word: number, node: number, subject: number): number {
    return word === 0 ? EDGE_ABSENT : this.#adjacency.edge(word, node, subject, FORWARD);
  }

  readWord(word: number, out: Uint32Array): number {
    const copied = this.#adjacency.copy(word, 0, out, 0, out.length);
    return copied < out.length || this.#adjacency.count(word) === copied ? copied : -1;
  }

  edge(node: number, subject: number): number {
    const users = (this.#field(subject, NODE_RELATION) & NODE_IS_USER) !== 0;
    const word = this.#field(node, users ? NODE_USERS : NODE_SETS);
    return word === 0 ? EDGE_ABSENT : this.#adjacency.edge(word, node, subject, FORWARD);
  }

  bareExpiryMs(node: number, subject: number): number {
    return this.#qualifiers.bareExpiresAtUs(node, subject) / 1000;
  }

  readQualifier(node: number, subject: number, out: Uint32Array): number {
    return this.#qualifiers.read(node, subject, out);
  }

  qualifier(node: number, subject: number): EdgeQualifier {
    const qualifiers = this.#qualifiers;
    return {
      expiresAtMs: qualifiers.expiresAtUs(node, subject) / 1000,
      conditionName: this.#names.text(qualifiers.condition(node, subject)),
      conditionParams: qualifiers.params(node, subject),
    };
  }

  userCount(node: number): number {
    return this.#adjacency.count(this.#field(node, NODE_USERS));
  }

  setCount(node: number): number {
    return this.#adjacency.count(this.#field(node, NODE_SETS));
  }

  reverseCount(node: number): number {
    return this.#adjacency.count(this.#field(node, NODE_REVERSE));
  }

  readUsers(node: number, cursor: number, out: Uint32Array, outStart: number): number {
    return this.#read(this.#field(node, NODE_USERS), cursor, out, outStart);
  }

  readSets(node: number, cursor: number, out: Uint32Array, outStart: number): number {
    return this.#read(this.#field(node, NODE_SETS), cursor, out, outStart);
  }

  readReverse(node: number, cursor: number, out: Uint32Array, outStart: number): number {
    return this.#read(this.#field(node, NODE_REVERSE), cursor, out, outStart);
  }

  // Changes.

  /** Stores a tuple or replaces what it carries. Returns whether it is new. O(1) expected. */
  insert(row: TupleRow): boolean {
    const writer = this.#writer;
    const node = writer.internNode(row.namespace, row.objectId, row.relation);
    const subject = isPublicWildcard(row)
      ? WILDCARD_NODE
      : writer.internNode(row.subjectNamespace, row.subjectId, row.subjectRelation);
    const expires = row.expiresAtUs ?? NEVER_US;
    const condition = row.conditionName ?? '';
    if (expires === NEVER_US && condition === '') {
      return writer.insertEdge(node, subject, false, 0, 0, 0, NO_BYTES);
    }
    const low = Number(BigInt.asUintN(32, expires));
    const high = Number(BigInt.asUintN(32, expires >> 32n));
    const params = utf8.encode(row.conditionParams ?? '');
    const name = this.#names.intern(condition);
    return writer.insertEdge(node, subject, true, low, high, name, params);
  }

  /** Removes a tuple by its identity. Returns whether it was stored. O(1) expected. */
  remove(row: TupleRow): boolean {
    const node = this.#findNode(row.namespace, row.objectId, row.relation);
    const subject = this.subjectNodeOf(row);
    if (node === 0 || subject === 0 || !this.#writer.removeEdge(node, subject)) return false;
    if (this.tupleCount === 0 && this.bytes > REBUILD_BYTES) this.#rebuildEmpty();
    return true;
  }

  /** `insert` or `remove` of a domain tuple. Returns whether something was added or removed. */
  applyChange(op: 'insert' | 'delete', tuple: RelationTuple | TupleKey): boolean {
    const row = rowFromTuple(tuple);
    return op === 'insert' ? this.insert(row) : this.remove(row);
  }

  /**
   * Inserts rows given as bytes: the way to load a snapshot. In as many slices as wanted, down to single rows. Fastest
   * in key order: strings that a row shares with the one before are not looked up again.
   */
  insertRows(rows: RowBytes): void {
    this.#loader.load(rows);
  }

  /** Removes one row given as bytes, at `row` of `rows`. Returns whether it was stored. */
  removeRow(rows: RowBytes, row: number): boolean {
    const text = (column: number): string => {
      const start = rows.bounds[row * 18 + column * 2] as number;
      const end = rows.bounds[row * 18 + column * 2 + 1] as number;
      return start < 0 ? '' : utf8Text(rows.bytes, start, end);
    };
    return this.remove({
      namespace: text(0),
      objectId: text(1),
      relation: text(2),
      subjectNamespace: text(3),
      subjectId: text(4),
      subjectRelation: text(5),
    });
  }

  /**
   * Forgets every tuple, so that another shard's can use the same memory. Pinned names keep their ids, so that models
   * stay bound; whatever else was derived is void by the revision, of which no change is known. O(memory).
   */
  reset(): void {
    const { pinned } = this.#names;
    this.#dictionary.clear();
    this.#names.clear();
    this.#adjacency.clear();
    this.#nodes.clear();
    this.#qualifiers.clear();
    this.revision += 1;
    this.#journal.clear(this.revision);
    this.tupleCount = 0;
    this.nextCursor = -1;
    for (const [id, name] of pinned) this.#names.restorePinned(id, name);
    this.#addWildcard();
  }

  /** Names that models have pinned. */
  get pinnedCount(): number {
    return this.#names.pinnedCount;
  }

  /** The node of a row's subject, 0 when nothing mentions it. */
  subjectNodeOf(row: TupleRow): number {
    if (isPublicWildcard(row)) return WILDCARD_NODE;
    return this.#findNode(row.subjectNamespace, row.subjectId, row.subjectRelation);
  }

  #field(node: number, field: number): number {
    const page = this.#nodePages[node >>> NODE_PAGE_SHIFT] as Uint32Array;
    return page[(node & NODE_PAGE_MASK) * NODE_STRIDE + field] as number;
  }

  #read(word: number, cursor: number, out: Uint32Array, outStart: number): number {
    const copied = this.#adjacency.copy(word, cursor, out, outStart, out.length - outStart);
    const end = cursor + copied;
    this.nextCursor = end < this.#adjacency.count(word) ? end : -1;
    return copied;
  }

  #findNode(namespace: string, id: string, relation: string): number {
    const owner = this.#names.idOf(namespace);
    const name = this.#names.idOf(relation);
    return this.nodeId(this.entityId(owner, id), name);
  }

  #addWildcard(): void {
    const namespace = this.#names.pin(WILDCARD_NAMESPACE);
    assert(namespace !== NAME_OWNER, 'namespaces are no record owners');
    assert(namespace === WILDCARD_NAME, 'the namespace of wildcards is the first name');
    const entity = this.#dictionary.addHidden(namespace, loadText(''));
    const node = this.#nodes.create(entity, EMPTY_NAME, true);
    assert(node === WILDCARD_NODE, 'the wildcard is the first node');
  }

  /** Starts over with the pinned names. O(names). */
  #rebuildEmpty(): void {
    const { pinned } = this.#names;
    this.#allocator.bytes = 0;
    this.#dictionary = new Dictionary(this.#allocator);
    this.#names = new NameTable(this.#dictionary, this.#allocator);
    this.#adjacency = new Adjacency(this.#allocator);
    this.#nodes = new NodeTable(this.#dictionary, this.#adjacency.lists, this.#allocator);
    this.#nodePages = this.#nodes.pages;
    this.#qualifiers = new QualifierStore(this.#adjacency.lists, this.#allocator);
    this.#journal = new ChangeJournal(this.#allocator, this.revision);
    this.#writer = new EdgeWriter(this.parts, this.#journal, this);
    this.#loader = new RowLoader(this.#writer, this.parts);
    for (const [id, name] of pinned) this.#names.restorePinned(id, name);
    this.#addWildcard();
  }
}
