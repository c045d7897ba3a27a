import {
  type RelationTuple,
  type Subject,
  type TupleChange,
  tupleIdentity,
  type TupleKey,
} from '../../model/relation-tuple.ts';
import {
  EDGE_ABSENT,
  EDGE_NODE_MASK,
  EDGE_PLAIN,
  EDGE_WITH_QUALIFIER,
  EMPTY_NAME,
  type EdgeQualifier,
  type EntityLookups,
  OBJECT_NODE,
  OBJECT_RELATION,
  OBJECT_SETS,
  OBJECT_STRIDE,
  OBJECT_USERS,
  type TupleReader,
  WILDCARD_NODE,
} from '../../model/tuple-reader.ts';
import { assert } from '../../shared/assert.ts';
import { compareUtf8 } from '../../shared/text/utf8-order.ts';
import { utf8Text } from '../../shared/text/utf8.ts';
import {
  type ChangedEdge,
  ChangedNodes,
  LIST_REVERSE,
  LIST_SETS,
  LIST_USERS,
  type List,
} from './changed-nodes.ts';
import { PRIVATE_ENTITY, PRIVATE_NAME, PRIVATE_NODE, PrivateIds } from './private-ids.ts';

/** Cursors from here on are among the added entries; those of the reader below are positions, far smaller. */
const ADDED_CURSOR = 2 ** 40;
/** A word of a changed list: no word of an index has both bits (WORD_LIST marks a list, EDGE_QUALIFIED an entry). */
const CHANGED_WORD = 0xc000_0000;
const encoder = new TextEncoder();

/**
 * A reader with changes laid over it: as if they had been applied, in their order, while the reader itself stays as it
 * is. Names, entities and nodes that it lacks get ids that are private to this object, above all of its own. An entity
 * or node that loses its last tuple is gone here, too. Valid as long as the reader below does not change.
 *
 * Cost: O(changes) to make; a read of what no change touches is that of the reader below and one lookup. A changed
 * list is copied with its own entries first, then what was added.
 */
export class OverlayReader implements TupleReader {
  nextCursor = -1;
  hasTypedWildcards: boolean;
  readonly #base: TupleReader;
  readonly #ids: PrivateIds;
  readonly #changed = new ChangedNodes();
  /** Nodes and entities of the reader below without a tuple that is left. */
  readonly #goneNodes = new Set<number>();
  readonly #goneEntities = new Set<number>();

  constructor(base: TupleReader, changes: readonly TupleChange[]) {
    assert(!(base instanceof OverlayReader), 'an overlay lies over an index, not over another one');
    this.#base = base;
    this.hasTypedWildcards = base.hasTypedWildcards;
    this.#ids = new PrivateIds(base);
    // The last change of a tuple counts.
    const last = new Map(changes.map((change) => [tupleIdentity(change.tuple), change]));
    const removed: number[] = [];
    for (const change of last.values()) {
      if (change.op === 'insert') this.#insert(change.tuple);
      else this.#remove(change.tuple, removed);
    }
    for (const node of removed) this.#forgetUnmentioned(node);
  }

  get revision(): number {
    return this.#base.revision;
  }

  /** Nothing may be derived from it that outlives the request. */
  readChange(): boolean {
    return false;
  }

  // --- changes --------------------------------------------------------------------------------

  #insert(tuple: RelationTuple): void {
    const ids = this.#ids;
    const { subject, expiresAtUs, conditionName } = tuple;
    const node = ids.internNode(tuple.namespace, tuple.objectId, tuple.relation);
    const subjectNode = ids.internSubject(subject);
    const isPlain = expiresAtUs === undefined && conditionName === undefined;
    const qualifier: EdgeQualifier | null = isPlain
      ? null
      : {
          expiresAtMs: expiresAtUs === undefined ? Infinity : Number(expiresAtUs) / 1000,
          conditionName: conditionName ?? '',
          conditionParams: tuple.conditionParams ?? '',
        };
    const list = listOf(subject);
    if (subject.kind === 'wildcardOf') this.hasTypedWildcards = true;
    const isStored = this.#baseEdge(node, subjectNode) !== EDGE_ABSENT;
    this.#changed.set(node, subjectNode, list, isStored, qualifier);
  }

  #remove(tuple: TupleKey, removed: number[]): void {
    const node = this.#ids.baseNode(tuple.namespace, tuple.objectId, tuple.relation);
    const subjectNode = this.#ids.baseSubject(tuple.subject);
    if (node === 0 || subjectNode === 0) return;
    if (this.#base.edge(node, subjectNode) === EDGE_ABSENT) return;
    const list = listOf(tuple.subject);
    this.#changed.remove(node, subjectNode, list);
    removed.push(node, subjectNode);
  }

  #forgetUnmentioned(node: number): void {
    const mentions = this.userCount(node) + this.setCount(node) + this.reverseCount(node);
    if (mentions > 0 || node === WILDCARD_NODE) return;
    this.#goneNodes.add(node);
    const entity = this.entityOf(node);
    if (this.firstNodeOf(entity) === 0) this.#goneEntities.add(entity);
  }

  #baseEdge(node: number, subject: number): number {
    if (node >= PRIVATE_NODE || subject >= PRIVATE_NODE) return EDGE_ABSENT;
    return this.#base.edge(node, subject);
  }

  // --- names and entities ---------------------------------------------------------------------

  nameId(name: string): number {
    return this.#ids.nameId(name);
  }

  /** The names of a compiled model are pinned in the reader below; another one is private. */
  pinName(name: string): number {
    return this.#ids.internName(name);
  }

  nameText(name: number): string {
    return name >= PRIVATE_NAME ? this.#ids.nameText(name) : this.#base.nameText(name);
  }

  nameIdOfBytes(bytes: Uint8Array, start: number, end: number): number {
    return this.nameId(utf8Text(bytes, start, end));
  }

  entityId(namespace: number, id: string): number {
    const entity = this.#ids.entityId(namespace, id);
    return this.#goneEntities.has(entity) ? 0 : entity;
  }

  readEntityIds(bytes: Uint8Array, lookups: EntityLookups, count: number): void {
    for (let i = 0; i < count; i++) {
      const id = utf8Text(bytes, lookups.starts[i] as number, lookups.ends[i] as number);
      lookups.entities[i] = this.entityId(lookups.namespaces[i] as number, id);
    }
  }

  namespaceOf(entity: number): number {
    return entity >= PRIVATE_ENTITY
      ? this.#ids.namespaceOf(entity)
      : this.#base.namespaceOf(entity);
  }

  entityText(entity: number): string {
    return entity >= PRIVATE_ENTITY ? this.#ids.entityText(entity) : this.#base.entityText(entity);
  }

  readEntityId(entity: number, out: Uint8Array, at: number): number {
    if (entity < PRIVATE_ENTITY) return this.#base.readEntityId(entity, out, at);
    const bytes = encoder.encode(this.#ids.entityText(entity));
    out.set(bytes, at);
    return at + bytes.length;
  }

  compareEntityIds(a: number, b: number): number {
    if (a < PRIVATE_ENTITY && b < PRIVATE_ENTITY) return this.#base.compareEntityIds(a, b);
    return compareUtf8(this.entityText(a), this.entityText(b));
  }

  readEntitiesOf(namespace: number, cursor: number, out: Uint32Array, outStart: number): number {
    let to = outStart;
    let next = cursor;
    if (next < ADDED_CURSOR && namespace < PRIVATE_NAME) {
      const count = this.#base.readEntitiesOf(namespace, next, out, outStart);
      next = this.#base.nextCursor;
      for (let i = 0; i < count; i++) {
        const entity = out[outStart + i] as number;
        if (!this.#goneEntities.has(entity)) out[to++] = entity;
      }
      if (next >= 0) {
        this.nextCursor = next;
        return to - outStart;
      }
    }
    const added = this.#ids.entitiesOf(namespace);
    return this.#copyAdded(added, next, out, to) - outStart;
  }

  // --- nodes ----------------------------------------------------------------------------------

  nodeId(entity: number, relation: number): number {
    const node = this.#ids.nodeId(entity, relation);
    return this.#goneNodes.has(node) ? 0 : node;
  }

  userNodeOf(entity: number): number {
    return entity === 0 ? 0 : this.nodeId(entity, EMPTY_NAME);
  }

  entityOf(node: number): number {
    return node >= PRIVATE_NODE ? this.#ids.entityOf(node) : this.#base.entityOf(node);
  }

  relationOf(node: number): number {
    return node >= PRIVATE_NODE ? this.#ids.relationOf(node) : this.#base.relationOf(node);
  }

  firstNodeOf(entity: number): number {
    if (entity >= PRIVATE_ENTITY || entity === 0) return this.#ids.firstNodeOf(entity);
    return this.#leftFrom(entity, this.#base.firstNodeOf(entity));
  }

  nextNodeOf(node: number): number {
    if (node >= PRIVATE_NODE) return this.#ids.nextNodeOf(node);
    return this.#leftFrom(this.#base.entityOf(node), this.#base.nextNodeOf(node));
  }

  /** The first node from `node` on that is left of a chain below, or the first private one of its entity. */
  #leftFrom(entity: number, node: number): number {
    let left = node;
    while (left !== 0 && this.#goneNodes.has(left)) left = this.#base.nextNodeOf(left);
    return left === 0 ? this.#ids.firstNodeOf(entity) : left;
  }

  readObject(entity: number, out: Uint32Array): number {
    let count = 0;
    for (let node = this.firstNodeOf(entity); node !== 0; node = this.nextNodeOf(node)) {
      const at = count * OBJECT_STRIDE;
      if (at + OBJECT_STRIDE > out.length) return -1;
      out[at + OBJECT_RELATION] = this.relationOf(node);
      out[at + OBJECT_NODE] = node;
      out[at + OBJECT_USERS] = this.usersWord(node);
      out[at + OBJECT_SETS] = this.setsWord(node);
      count += 1;
    }
    return count;
  }

  usersWord(node: number): number {
    const handle = this.#changed.handleOf(node, LIST_USERS);
    if (handle < 0) return node >= PRIVATE_NODE ? 0 : this.#base.usersWord(node);
    return this.userCount(node) === 0 ? 0 : (CHANGED_WORD | handle) >>> 0;
  }

  setsWord(node: number): number {
    const handle = this.#changed.handleOf(node, LIST_SETS);
    if (handle < 0) return node >= PRIVATE_NODE ? 0 : this.#base.setsWord(node);
    return this.setCount(node) === 0 ? 0 : (CHANGED_WORD | handle) >>> 0;
  }

  wordEdge(word: number, node: number, subject: number): number {
    if (!isChangedWord(word)) {
      return subject >= PRIVATE_NODE ? EDGE_ABSENT : this.#base.wordEdge(word, node, subject);
    }
    const { list } = this.#changed.listOfHandle(word & ~CHANGED_WORD);
    const isUser = subject === WILDCARD_NODE || this.#isUserNode(subject);
    return isUser === (list === LIST_USERS) ? this.edge(node, subject) : EDGE_ABSENT;
  }

  readWord(word: number, out: Uint32Array): number {
    if (!isChangedWord(word)) return this.#base.readWord(word, out);
    const { node, list } = this.#changed.listOfHandle(word & ~CHANGED_WORD);
    let count = 0;
    for (let cursor = 0; cursor >= 0; cursor = this.nextCursor) {
      if (count === out.length) return -1;
      count += this.#readList(list, node, cursor, out, count);
    }
    return count;
  }

  #isUserNode(node: number): boolean {
    return (
      this.relationOf(node) === EMPTY_NAME && this.namespaceOf(this.entityOf(node)) === EMPTY_NAME
    );
  }

  // --- edges ----------------------------------------------------------------------------------

  edge(node: number, subject: number): number {
    const changed = this.#changed.edge(node, subject);
    if (changed === undefined) return this.#baseEdge(node, subject);
    if (changed === 'removed') return EDGE_ABSENT;
    return changed === null ? EDGE_PLAIN : EDGE_WITH_QUALIFIER;
  }

  bareExpiryMs(node: number, subject: number): number {
    const { expiresAtMs, conditionName } = this.qualifier(node, subject);
    return conditionName === '' ? expiresAtMs : Number.NaN;
  }

  /** The names of a request's conditions have no ids. */
  readQualifier(): number {
    return -1;
  }

  qualifier(node: number, subject: number): EdgeQualifier {
    const changed: ChangedEdge | undefined = this.#changed.edge(node, subject);
    if (changed === undefined) return this.#base.qualifier(node, subject);
    if (changed === null || changed === 'removed') throw new Error('an edge without a qualifier');
    return changed;
  }

  userCount(node: number): number {
    const below = node >= PRIVATE_NODE ? 0 : this.#base.userCount(node);
    return below + this.#changed.growthOf(node, LIST_USERS);
  }

  setCount(node: number): number {
    const below = node >= PRIVATE_NODE ? 0 : this.#base.setCount(node);
    return below + this.#changed.growthOf(node, LIST_SETS);
  }

  reverseCount(node: number): number {
    const below = node >= PRIVATE_NODE ? 0 : this.#base.reverseCount(node);
    return below + this.#changed.growthOf(node, LIST_REVERSE);
  }

  readUsers(node: number, cursor: number, out: Uint32Array, outStart: number): number {
    return this.#readList(LIST_USERS, node, cursor, out, outStart);
  }

  readSets(node: number, cursor: number, out: Uint32Array, outStart: number): number {
    return this.#readList(LIST_SETS, node, cursor, out, outStart);
  }

  readReverse(node: number, cursor: number, out: Uint32Array, outStart: number): number {
    return this.#readList(LIST_REVERSE, node, cursor, out, outStart);
  }

  #readList(list: List, node: number, cursor: number, out: Uint32Array, outStart: number): number {
    const changes = this.#changed.listOf(node, list);
    let to = outStart;
    let next = cursor;
    if (next < ADDED_CURSOR && node < PRIVATE_NODE) {
      const count = this.#readBase(list, node, next, out, outStart);
      next = this.#base.nextCursor;
      if (changes === undefined || changes.replaced.size === 0) to += count;
      else {
        for (let i = 0; i < count; i++) {
          const entry = out[outStart + i] as number;
          const replaced = changes.replaced.get(entry & EDGE_NODE_MASK) ?? entry;
          if (replaced !== 0) out[to++] = replaced;
        }
      }
      if (next >= 0) {
        this.nextCursor = next;
        return to - outStart;
      }
    }
    return this.#copyAdded(changes?.added ?? NOTHING, next, out, to) - outStart;
  }

  #readBase(list: List, node: number, cursor: number, out: Uint32Array, outStart: number): number {
    if (list === LIST_USERS) return this.#base.readUsers(node, cursor, out, outStart);
    if (list === LIST_SETS) return this.#base.readSets(node, cursor, out, outStart);
    return this.#base.readReverse(node, cursor, out, outStart);
  }

  /** Copies added entries from `cursor` on; returns the end of the copied ones. */
  #copyAdded(added: readonly number[], cursor: number, out: Uint32Array, outStart: number): number {
    const from = cursor < ADDED_CURSOR ? 0 : cursor - ADDED_CURSOR;
    const count = Math.min(added.length - from, out.length - outStart);
    for (let i = 0; i < count; i++) out[outStart + i] = added[from + i] as number;
    this.nextCursor = from + count < added.length ? ADDED_CURSOR + from + count : -1;
    return outStart + count;
  }
}

const NOTHING: readonly number[] = [];

/** The list of a subject: users and the public wildcard are in one list of a node, all others in another. */
function listOf({ kind }: Subject): List {
  return kind === 'user' || kind === 'wildcard' ? LIST_USERS : LIST_SETS;
}

function isChangedWord(word: number): boolean {
  return (word & CHANGED_WORD) >>> 0 === CHANGED_WORD;
}
