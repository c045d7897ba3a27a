import {
  CHANGE_FIRST_MENTION,
  CHANGE_OF_USER,
  EDGE_ABSENT,
  EDGE_QUALIFIED,
  EDGE_WITH_QUALIFIER,
  EMPTY_NAME,
  WILDCARD_NODE,
} from '../model/tuple-reader.ts';
import { type Adjacency, FORWARD, REVERSE } from './tables/adjacency.ts';
import type { ChangeJournal } from './tables/change-journal.ts';
import {
  type Dictionary,
  RECORD_OWNER,
  RECORD_PAGE_MASK,
  RECORD_PAGE_SHIFT,
} from './tables/dictionary.ts';
import type { NameTable } from './tables/name-table.ts';
import {
  NODE_ENTITY,
  NODE_IS_USER,
  NODE_RELATION,
  NODE_RELATION_MASK,
  NODE_REVERSE,
  NODE_SETS,
  NODE_USERS,
  type NodeTable,
} from './tables/node-table.ts';
import type { QualifierStore } from './tables/qualifier-store.ts';
import { hashScratch, loadText, mustFit } from './tables/text-scratch.ts';

/** Parts of an index. */
export type IndexParts = {
  readonly dictionary: Dictionary;
  readonly names: NameTable;
  readonly nodes: NodeTable;
  readonly adjacency: Adjacency;
  readonly qualifiers: QualifierStore;
};

/** Kept by the index itself: every check reads the revision there. */
export type IndexCounters = { revision: number; tupleCount: number };

/**
 * Every change of an index, by ids: keeps its parts in step, notes each change in the journal and counts it. What throws
 * midway leaves them apart: the index must be dropped.
 */
export class EdgeWriter {
  readonly #dictionary: Dictionary;
  readonly #names: NameTable;
  readonly #nodes: NodeTable;
  readonly #adjacency: Adjacency;
  readonly #qualifiers: QualifierStore;
  readonly #journal: ChangeJournal;
  readonly #counters: IndexCounters;

  constructor(parts: IndexParts, journal: ChangeJournal, counters: IndexCounters) {
    this.#dictionary = parts.dictionary;
    this.#names = parts.names;
    this.#nodes = parts.nodes;
    this.#adjacency = parts.adjacency;
    this.#qualifiers = parts.qualifiers;
    this.#journal = journal;
    this.#counters = counters;
  }

  /** Revision of the index: raised by every change. */
  get revision(): number {
    return this.#counters.revision;
  }

  /** Node of an object or userset, made with its names if need be. O(1) expected. Errors: FIELD_INVALID, SHARD_TOO_LARGE. */
  internNode(namespace: string, id: string, relation: string): number {
    const owner = this.#names.intern(namespace);
    const name = this.#names.intern(relation);
    const length = mustFit(loadText(id));
    const entity = this.entityOfScratch(owner, length, hashScratch(length, owner));
    return this.nodeOfEntity(entity, owner, name);
  }

  /** Entity of the id in the scratch under a namespace, made if need be; `hash` is of both. Errors: SHARD_TOO_LARGE. */
  entityOfScratch(namespace: number, length: number, hash: number): number {
    const known = this.#dictionary.recordOf(namespace, length, hash);
    if (known !== 0) return known;
    this.#names.retain(namespace);
    return this.#dictionary.insert(namespace, length, hash);
  }

  /** Node of an entity and a relation, made if need be. Errors: SHARD_TOO_LARGE. */
  nodeOfEntity(entity: number, namespace: number, relation: number): number {
    const known = this.#nodes.nodeOf(entity, relation);
    if (known !== 0) return known;
    this.#names.retain(relation);
    const isUser = namespace === EMPTY_NAME && relation === EMPTY_NAME;
    return this.#nodes.create(entity, relation, isUser);
  }

  /**
   * Stores the tuple of two nodes, or replaces what it carries. Returns whether it is new. `condition` is an
   * interned name, `expiresLow` and `expiresHigh` the halves of the int64, `params` UTF-8; all unused if plain. O(1)
   * expected; allocates only when a page or segment is full. Errors: SHARD_TOO_LARGE.
   */
  insertEdge(
    node: number,
    subject: number,
    qualified: boolean,
    expiresLow: number,
    expiresHigh: number,
    condition: number,
    params: Uint8Array,
  ): boolean {
    const field =
      (this.#nodes.field(subject, NODE_RELATION) & NODE_IS_USER) === 0 ? NODE_SETS : NODE_USERS;
    const word = this.#nodes.field(node, field);
    const known = word === 0 ? EDGE_ABSENT : this.#adjacency.edge(word, node, subject, FORWARD);
    // The new name is retained before the old one is released: it may be the same.
    if (qualified) this.#names.retain(condition);
    if (known === EDGE_ABSENT) {
      const flag = qualified ? EDGE_QUALIFIED : 0;
      const forward = this.#adjacency.append(word, node, (subject | flag) >>> 0, FORWARD);
      this.#nodes.setField(node, field, forward);
      const reverse = this.#nodes.field(subject, NODE_REVERSE);
      const extended = this.#adjacency.append(reverse, subject, (node | flag) >>> 0, REVERSE);
      this.#nodes.setField(subject, NODE_REVERSE, extended);
      this.#counters.tupleCount += 1;
    } else if ((known === EDGE_WITH_QUALIFIER) !== qualified) {
      this.#mark(node, field, subject, qualified);
    }
    if (known === EDGE_WITH_QUALIFIER) this.#names.release(this.#qualifiers.remove(node, subject));
    if (qualified) {
      this.#qualifiers.add(node, subject, expiresLow, expiresHigh, condition, params);
    }
    const isFirst =
      field === NODE_SETS && this.#adjacency.count(this.#nodes.field(subject, NODE_REVERSE)) === 1;
    this.#record(node, subject, field, isFirst ? CHANGE_FIRST_MENTION : 0);
    return known === EDGE_ABSENT;
  }

  /**
   * Removes the tuple of two nodes, and the nodes, entities and names that nothing mentions any more. Returns whether it
   * was stored. O(1) expected.
   */
  removeEdge(node: number, subject: number): boolean {
    const field =
      (this.#nodes.field(subject, NODE_RELATION) & NODE_IS_USER) === 0 ? NODE_SETS : NODE_USERS;
    const word = this.#nodes.field(node, field);
    const known = word === 0 ? EDGE_ABSENT : this.#adjacency.edge(word, node, subject, FORWARD);
    if (known === EDGE_ABSENT) return false;
    if (known === EDGE_WITH_QUALIFIER) this.#names.release(this.#qualifiers.remove(node, subject));
    const forward = this.#adjacency.remove(word, node, subject, FORWARD);
    this.#nodes.setField(node, field, forward);
    const reverse = this.#nodes.field(subject, NODE_REVERSE);
    const shortened = this.#adjacency.remove(reverse, subject, node, REVERSE);
    this.#nodes.setField(subject, NODE_REVERSE, shortened);
    this.#record(node, subject, field, 0);
    this.#dropIfUnused(node);
    if (subject !== node) this.#dropIfUnused(subject);
    this.#counters.tupleCount -= 1;
    return true;
  }

  #record(node: number, subject: number, field: number, flags: number): void {
    const entity = this.#nodes.field(node, NODE_ENTITY);
    const relation = this.#nodes.field(node, NODE_RELATION) & NODE_RELATION_MASK;
    const namespace = this.#namespaceOf(entity);
    const all = field === NODE_USERS ? flags | CHANGE_OF_USER : flags;
    this.#counters.revision += 1;
    this.#journal.add(this.#counters.revision, node, subject, entity, namespace, relation, all);
  }

  #mark(node: number, field: number, subject: number, qualified: boolean): void {
    const adjacency = this.#adjacency;
    const forward = this.#nodes.field(node, field);
    this.#nodes.setField(
      node,
      field,
      adjacency.setQualified(forward, node, subject, FORWARD, qualified),
    );
    const reverse = this.#nodes.field(subject, NODE_REVERSE);
    this.#nodes.setField(
      subject,
      NODE_REVERSE,
      adjacency.setQualified(reverse, subject, node, REVERSE, qualified),
    );
  }

  #namespaceOf(entity: number): number {
    const page = this.#dictionary.records.pages[entity >>> RECORD_PAGE_SHIFT] as Uint32Array;
    return page[(entity & RECORD_PAGE_MASK) + RECORD_OWNER] as number;
  }

  #dropIfUnused(node: number): void {
    if (node === WILDCARD_NODE) return;
    if (this.#nodes.field(node, NODE_USERS) !== 0 || this.#nodes.field(node, NODE_SETS) !== 0)
      return;
    if (this.#nodes.field(node, NODE_REVERSE) !== 0) return;
    const entity = this.#nodes.field(node, NODE_ENTITY);
    const relation = this.#nodes.field(node, NODE_RELATION) & NODE_RELATION_MASK;
    const entityUnused = this.#nodes.destroy(node);
    this.#names.release(relation);
    if (!entityUnused) return;
    const namespace = this.#namespaceOf(entity);
    this.#dictionary.remove(entity);
    this.#names.release(namespace);
  }
}
