/**
 * Interface between the evaluation (engine/) and the tuple index (cache/). All values are numbers:
 *
 * - *name*: interned namespace or relation name. 0 is the empty name. As a namespace it is that
 *   of concrete users; as a relation it denotes the object itself.
 * - *entity*: interned (namespace name, id). 0 is no entity.
 * - *node*: interned (entity, relation name). An object's relation and a subject are both nodes; a
 *   concrete user is the node (user entity, 0), an object itself (entity, 0). 0 is no node.
 *
 * A node exists while a stored tuple mentions it, on either side. Ids are valid for one revision:
 * after changes were applied, an id whose last tuple was deleted may name another entity or node.
 * Lookups do not allocate. Lists are copied out in chunks, so no iterator object is needed.
 */
export const EMPTY_NAME = 0;
/** Node of the public wildcard, in every index, whether stored or not. */
export const WILDCARD_NODE = 1;
/**
 * The name `*`, in every index: the namespace of wildcards, which no object has. The entity of the public wildcard has
 * no id there. The entity of a typed wildcard has the name of its namespace as its id. It is among the sets of a node,
 * like objects.
 */
export const WILDCARD_NAME = 1;

/** Bit that is set on an entry of a list of edges if the edge has an expiry or a condition. */
export const EDGE_QUALIFIED = 0x8000_0000;
export const EDGE_NODE_MASK = 0x7fff_ffff;

/**
 * Bit of a *word*, which represents one list of a node; 0 is the empty list. Without WORD_LIST the word is the only
 * entry itself, as the read methods return it. With WORD_LIST, only `wordEdge` and `readWord` can read the list.
 */
export const WORD_LIST = 0x4000_0000;

/** Layout of the words that `readObject` copies for each node. */
export const OBJECT_RELATION = 0;
export const OBJECT_NODE = 1;
export const OBJECT_USERS = 2;
export const OBJECT_SETS = 3;
export const OBJECT_STRIDE = 4;

/** Layout of the words that `readChange` copies: ids at the time when the change was applied. */
export const CHANGE_NODE = 0;
export const CHANGE_SUBJECT = 1;
/** Entity, namespace and relation of the node. */
export const CHANGE_ENTITY = 2;
export const CHANGE_NAMESPACE = 3;
export const CHANGE_RELATION = 4;
export const CHANGE_FLAGS = 5;
export const CHANGE_WORDS = 6;
/** Flag: the subject is a concrete user or the wildcard. */
export const CHANGE_OF_USER = 1;
/** Flag: nothing mentioned the subject as such before. */
export const CHANGE_FIRST_MENTION = 2;

/** Results of `edge`. */
export const EDGE_ABSENT = 0;
export const EDGE_PLAIN = 1;
export const EDGE_WITH_QUALIFIER = 2;

/** Expiry and condition of a qualified edge. */
export type EdgeQualifier = {
  /** Expiry in milliseconds since the epoch, with fractions; Infinity never expires. Expired: nowMs >= expiresAtMs. */
  readonly expiresAtMs: number;
  /** Name of the condition; '' if there is no condition. */
  readonly conditionName: string;
  /** Canonical JSON text of an object, or ''. */
  readonly conditionParams: string;
};

/**
 * Layout of the words that `readQualifier` copies: expiry in microseconds as int64, name id, number of bytes of the
 * parameters, and these bytes.
 */
export const QUALIFIED_LOW = 0;
export const QUALIFIED_HIGH = 1;
export const QUALIFIED_CONDITION = 2;

/** Converts the two words of an expiry to `EdgeQualifier.expiresAtMs`. */
export function expiresAtMsOf(low: number, high: number): number {
  const isNever = high === 0x7fff_ffff && low === 0xffff_ffff;
  return isNever ? Number.POSITIVE_INFINITY : ((high | 0) * 2 ** 32 + low) / 1000;
}

/** Ids to look up together. The arrays have the length of the longest call. */
export type EntityLookups = {
  /** Namespace name ids; EMPTY_NAME looks up a concrete user, -1 finds nothing. */
  readonly namespaces: Int32Array;
  /** Offsets of the UTF-8 bytes of each id. */
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  /** Results: entity ids, or 0. */
  readonly entities: Uint32Array;
};

/** Empty lookups for up to `max` ids. */
export function createEntityLookups(max: number): EntityLookups {
  return {
    namespaces: new Int32Array(max),
    starts: new Uint32Array(max),
    ends: new Uint32Array(max),
    entities: new Uint32Array(max),
  };
}

/** Maximum size of an entity's id in bytes. */
export const ENTITY_ID_BYTES_MAX = 256;

export interface TupleReader {
  /** Grows with every applied change: ids and cached values of an older revision must be dropped. */
  readonly revision: number;
  /**
   * Copies the change that led to `revision` into `out`, so that caches can survive unrelated changes. Returns false if
   * it is no longer known: then all derived values must be dropped.
   */
  readChange(revision: number, out: Uint32Array): boolean;

  /** Name id, or -1 if nothing in the index mentions the name. '' is 0. */
  nameId(name: string): number;
  /** Name id for the life of the index, interned if necessary: for the names of compiled models. */
  pinName(name: string): number;
  nameText(name: number): string;
  /** Entity id, or 0. `namespace` is a name id; EMPTY_NAME looks up a concrete user. */
  entityId(namespace: number, id: string): number;
  /** Same as entityId, for the first `count` of `lookups`, with overlapping waits for memory. Hot. */
  readEntityIds(bytes: Uint8Array, lookups: EntityLookups, count: number): void;
  nameIdOfBytes(bytes: Uint8Array, start: number, end: number): number;
  /** Whether any tuple has a typed wildcard as its subject. Hot. */
  readonly hasTypedWildcards: boolean;
  /** Namespace name id of an entity; EMPTY_NAME for users. */
  namespaceOf(entity: number): number;
  entityText(entity: number): string;
  /**
   * Copies the UTF-8 bytes of an entity's id, at most ENTITY_ID_BYTES_MAX, to `out` from `at` on. Returns the offset
   * after them. Hot.
   */
  readEntityId(entity: number, out: Uint8Array, at: number): number;
  /** Compares the ids of two entities in UTF-8 byte order without creating strings. */
  compareEntityIds(a: number, b: number): number;

  /** Node id, or 0. */
  nodeId(entity: number, relation: number): number;
  /** Node of a concrete user's entity: `nodeId` with EMPTY_NAME, in one read. Returns 0 for 0. Hot. */
  userNodeOf(entity: number): number;
  entityOf(node: number): number;
  relationOf(node: number): number;
  /** First and next node of an entity (any relation, as object or subject); 0 at the end. */
  firstNodeOf(entity: number): number;
  nextNodeOf(node: number): number;

  /**
   * Copies relation, node, word of users and word of sets of all nodes of an entity into `out`, in one call. Returns
   * the number of nodes. Returns -1 if `out` is too short, or if lookups by relation are cheaper for so many nodes.
   * Hot.
   */
  readObject(entity: number, out: Uint32Array): number;
  usersWord(node: number): number;
  setsWord(node: number): number;
  /** Same as `edge`, in a list of `node` whose word the caller already has. Hot. */
  wordEdge(word: number, node: number, subject: number): number;
  /** Copies all entries of a word to the start of `out`. Returns their number, or -1 if there are too many. Hot. */
  readWord(word: number, out: Uint32Array): number;

  /**
   * Whether the tuple (node, subject) is stored: EDGE_ABSENT, EDGE_PLAIN or EDGE_WITH_QUALIFIER. O(1) expected, also in
   * long lists.
   */
  edge(node: number, subject: number): number;
  /**
   * Expiry and condition of an edge. Only for an edge with EDGE_WITH_QUALIFIER from `edge`, or an entry with
   * EDGE_QUALIFIED.
   */
  qualifier(node: number, subject: number): EdgeQualifier;
  /**
   * Copies the expiry and condition of a qualified edge to the start of `out`. Equal words are equal conditions, as
   * long as the name id has the same text. Returns the number of words, or -1 if only `qualifier` can read them. Hot.
   */
  readQualifier(node: number, subject: number, out: Uint32Array): number;
  /** Time at which a qualified edge without a condition expires, in ms; NaN for one with a condition. Hot. */
  bareExpiryMs(node: number, subject: number): number;

  /** Number of stored subjects of a node that are concrete users or the wildcard. */
  userCount(node: number): number;
  /** Number of stored subjects of a node that are usersets or objects. */
  setCount(node: number): number;
  /** Number of nodes that have this node as a stored subject. */
  reverseCount(node: number): number;
  /**
   * Copies entries of the list into `out` from `outStart`, at most up to its end, starting at `cursor` (0 at first).
   * Returns the number copied; `nextCursor` is the cursor of the next call, or -1. The order is arbitrary but fixed
   * within one revision.
   */
  readUsers(node: number, cursor: number, out: Uint32Array, outStart: number): number;
  readSets(node: number, cursor: number, out: Uint32Array, outStart: number): number;
  readReverse(node: number, cursor: number, out: Uint32Array, outStart: number): number;
  readonly nextCursor: number;

  /**
   * Copies every entity of a namespace that occurs as an object or subject, in chunks, like the lists above. Entries
   * are entity ids, never qualified. Needed only where a rewrite could hold without any tuple path from the subject;
   * O(entities).
   */
  readEntitiesOf(namespace: number, cursor: number, out: Uint32Array, outStart: number): number;
}

/**
 * Entity of the typed wildcard of a namespace, or 0 if no tuple has it. Its only node is (entity, EMPTY_NAME). One
 * lookup; none if there are no typed wildcards.
 */
export function typedWildcardOf(reader: TupleReader, namespace: string): number {
  return reader.hasTypedWildcards ? reader.entityId(WILDCARD_NAME, namespace) : 0;
}
