/**
 * The port between the evaluation (engine/) and the tuple index (cache/). Everything is numbers:
 *
 * - *name*: interned namespace or relation name. 0 is the empty name: as a namespace it is the one
 *   of concrete users, as a relation it denotes the object itself.
 * - *entity*: interned (namespace name, id). 0 is no entity.
 * - *node*: interned (entity, relation name). An object's relation and a subject are both nodes; a
 *   concrete user is the node (user entity, 0), an object itself (entity, 0). 0 is no node.
 *
 * A node exists while a stored tuple mentions it, on either side. Ids are valid for one revision:
 * after changes were applied, an id whose last tuple went may name something else.
 * Lookups do not allocate. Lists are copied out in chunks so that no iterator object is needed.
 */
export const EMPTY_NAME = 0;
/** The node of the public wildcard, in every index, whether stored or not. */
export const WILDCARD_NODE = 1;
/**
 * The name `*`, in every index: the namespace of wildcards, which no object has. The entity of the public
 * wildcard has no id there. That of a typed wildcard has the name of its namespace as its id, and is among
 * the sets of a node, as objects are.
 */
export const WILDCARD_NAME = 1;

/** Set on an entry returned by readForward/readReverse when the edge has an expiry or a condition. */
export const EDGE_QUALIFIED = 0x8000_0000;
export const EDGE_NODE_MASK = 0x7fff_ffff;

/**
 * A *word* denotes one list of a node. 0 is empty. Without WORD_LIST it is the only entry itself, as the
 * read methods return it. With WORD_LIST, read it by `wordEdge` and `readWord`.
 */
export const WORD_LIST = 0x4000_0000;

/** Layout of what `readObject` copies for each node. */
export const OBJECT_RELATION = 0;
export const OBJECT_NODE = 1;
export const OBJECT_USERS = 2;
export const OBJECT_SETS = 3;
export const OBJECT_STRIDE = 4;

/** Layout of what `readChange` copies: ids as they were when the change was applied. */
export const CHANGE_NODE = 0;
export const CHANGE_SUBJECT = 1;
/** Entity, namespace and relation of the node. */
export const CHANGE_ENTITY = 2;
export const CHANGE_NAMESPACE = 3;
export const CHANGE_RELATION = 4;
export const CHANGE_FLAGS = 5;
export const CHANGE_WORDS = 6;
/** The subject is a concrete user or the wildcard. */
export const CHANGE_OF_USER = 1;
/** Nothing mentioned the subject as such before. */
export const CHANGE_FIRST_MENTION = 2;

/** Answers of `edge`. */
export const EDGE_ABSENT = 0;
export const EDGE_PLAIN = 1;
export const EDGE_WITH_QUALIFIER = 2;

/** Payload of a qualified edge. */
export type EdgeQualifier = {
  /** Milliseconds since the epoch, fractions kept; Infinity never expires. Expired: nowMs >= expiresAtMs. */
  readonly expiresAtMs: number;
  /** '' is unconditional. */
  readonly conditionName: string;
  /** Canonical JSON text of an object, or ''. */
  readonly conditionParams: string;
};

/** Layout of what `readQualifier` copies: expiry in microseconds as int64, name id, bytes of the parameters, and these. */
export const QUALIFIED_LOW = 0;
export const QUALIFIED_HIGH = 1;
export const QUALIFIED_CONDITION = 2;

/** `EdgeQualifier.expiresAtMs` of the words of an expiry. */
export function expiresAtMsOf(low: number, high: number): number {
  const isNever = high === 0x7fff_ffff && low === 0xffff_ffff;
  return isNever ? Number.POSITIVE_INFINITY : ((high | 0) * 2 ** 32 + low) / 1000;
}

/** Ids to look up together. The arrays are as long as the most that one call takes. */
export type EntityLookups = {
  /** Namespace name ids; EMPTY_NAME asks for a concrete user, -1 finds nothing. */
  readonly namespaces: Int32Array;
  /** Bounds of the UTF-8 bytes of each id. */
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  /** The answers: entity ids, or 0. */
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

/** Bytes of an entity's id at most. */
export const ENTITY_ID_BYTES_MAX = 256;

export interface TupleReader {
  /** Grows with every applied change: ids and cached values of an older revision must be dropped. */
  readonly revision: number;
  /**
   * Copies the change that led to `revision` into `out`, so that caches survive changes that do not
   * concern them. False if it is no longer known: then all that was derived must be dropped.
   */
  readChange(revision: number, out: Uint32Array): boolean;

  /** Name id, or -1 when nothing in the index mentions the name. '' is 0. */
  nameId(name: string): number;
  /** Name id for the life of the index, interned if need be: for the names of compiled models. */
  pinName(name: string): number;
  nameText(name: number): string;
  /** Entity id, or 0. `namespace` is a name id; EMPTY_NAME asks for a concrete user. */
  entityId(namespace: number, id: string): number;
  /** Same as entityId for the first `count` of `lookups`, whose waits for memory overlap. Hot. */
  readEntityIds(bytes: Uint8Array, lookups: EntityLookups, count: number): void;
  nameIdOfBytes(bytes: Uint8Array, start: number, end: number): number;
  /** Whether any tuple has a typed wildcard as its subject. Hot. */
  readonly hasTypedWildcards: boolean;
  /** Namespace name id of an entity; EMPTY_NAME for users. */
  namespaceOf(entity: number): number;
  entityText(entity: number): string;
  /** Copies the UTF-8 bytes of an entity's id, at most ENTITY_ID_BYTES_MAX, to `out` from `at` on; returns where they end. Hot. */
  readEntityId(entity: number, out: Uint8Array, at: number): number;
  /** Compares the ids of two entities in UTF-8 byte order without making strings. */
  compareEntityIds(a: number, b: number): number;

  /** Node id, or 0. */
  nodeId(entity: number, relation: number): number;
  /** Node of a concrete user's entity: `nodeId` with EMPTY_NAME, in one read. 0 of 0. Hot. */
  userNodeOf(entity: number): number;
  entityOf(node: number): number;
  relationOf(node: number): number;
  /** First and next node of an entity (any relation, as object or subject), 0 at the end. */
  firstNodeOf(entity: number): number;
  nextNodeOf(node: number): number;

  /**
   * Copies relation, node, word of users and word of sets of all nodes of an entity into `out`, in
   * one call. Returns the number of nodes, or -1 if `out` is too short or the entity has so many
   * that asking by relation is cheaper. Hot.
   */
  readObject(entity: number, out: Uint32Array): number;
  usersWord(node: number): number;
  setsWord(node: number): number;
  /** Same as `edge`, in a list of `node` whose word is known. Hot. */
  wordEdge(word: number, node: number, subject: number): number;
  /** Copies all entries of a word to the start of `out`. Returns their number, or -1 if too many. Hot. */
  readWord(word: number, out: Uint32Array): number;

  /** Whether the tuple (node, subject) is stored: EDGE_ABSENT, EDGE_PLAIN or EDGE_WITH_QUALIFIER. O(1) expected, also in long lists. */
  edge(node: number, subject: number): number;
  /** Only for an edge for which `edge` said EDGE_WITH_QUALIFIER or an entry had EDGE_QUALIFIED. */
  qualifier(node: number, subject: number): EdgeQualifier;
  /**
   * Copies what a qualified edge carries to the start of `out`: equal words are equal conditions, as long as the name id
   * has the same text. Returns the number of words, or -1 where only `qualifier` can say. Hot.
   */
  readQualifier(node: number, subject: number, out: Uint32Array): number;
  /** When a qualified edge without a condition expires; NaN for one that has a condition. Hot. */
  bareExpiryMs(node: number, subject: number): number;

  /** Stored subjects of a node that are concrete users or the wildcard. */
  userCount(node: number): number;
  /** Stored subjects of a node that are usersets or objects. */
  setCount(node: number): number;
  /** Nodes that hold this node as a stored subject. */
  reverseCount(node: number): number;
  /**
   * Copies entries of the list into `out` from `outStart`, at most up to its end, starting at
   * `cursor` (0 at first). Returns the number copied; `nextCursor` holds where to go on, or -1.
   * The order is arbitrary but fixed within one revision.
   */
  readUsers(node: number, cursor: number, out: Uint32Array, outStart: number): number;
  readSets(node: number, cursor: number, out: Uint32Array, outStart: number): number;
  readReverse(node: number, cursor: number, out: Uint32Array, outStart: number): number;
  readonly nextCursor: number;

  /**
   * Every entity of a namespace that occurs as an object or subject, in chunks, as the lists above
   * (entries are entity ids, never qualified). Needed only where a rewrite could hold without any
   * tuple path from the subject; O(entities).
   */
  readEntitiesOf(namespace: number, cursor: number, out: Uint32Array, outStart: number): number;
}

/**
 * The entity of the typed wildcard of a namespace, 0 where no tuple has it; its only node is (entity, EMPTY_NAME). One
 * lookup, none where there are no typed wildcards.
 */
export function typedWildcardOf(reader: TupleReader, namespace: string): number {
  return reader.hasTypedWildcards ? reader.entityId(WILDCARD_NAME, namespace) : 0;
}
