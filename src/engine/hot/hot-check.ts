import {
  EDGE_ABSENT,
  EDGE_NODE_MASK,
  EDGE_PLAIN,
  EDGE_QUALIFIED,
  OBJECT_NODE,
  OBJECT_RELATION,
  OBJECT_SETS,
  OBJECT_STRIDE,
  OBJECT_USERS,
  type TupleReader,
  WILDCARD_NODE,
  WORD_LIST,
} from '../../model/tuple-reader.ts';
import {
  BACKSTOP_CYCLE,
  CHECK_ALLOWED,
  CHECK_DENIED,
  CHECK_GENERAL,
} from '../bound/evaluator-api.ts';
import {
  CHAIN_COUNTS,
  CHAIN_ENTRIES,
  CHAIN_READS,
  CHAIN_WEIGHT,
  type ChainCache,
} from './chain-cache.ts';
import { type ClosureCache, CLOSURE_NONE, isInClosure, SUMMARY_OPEN } from './closure-cache.ts';
import { HOT_PLAIN, type HotModel, type HotState } from './hot-model.ts';
import {
  LINE_COUNTS,
  LINE_ENTRIES,
  LINE_HEIGHT,
  LINE_OPAQUE,
  type ObjectCache,
} from './object-cache.ts';

/** What the hot path keeps between evaluations of one model version. */
export type HotCaches = {
  readonly closures: ClosureCache;
  readonly objects: ObjectCache;
  readonly chains: ChainCache;
};

/** Usersets that one hot evaluation visits at most; longer ones take the general path. */
export const HOT_NODES_MAX = 250;
const TABLE_SLOTS = 512;
const TABLE_MASK = TABLE_SLOTS - 1;
const STACK_MAX = 1024;
const LIST_MAX = 64;
/** Objects with more nodes are asked relation by relation. */
const CHAIN_MAX = 12;

const chunk = new Uint32Array(LIST_MAX);
/** The nodes of the object at work. */
const object = new Uint32Array(CHAIN_MAX * OBJECT_STRIDE);
/** An entity, or a node when the kind is HOT_PLAIN, or a table slot when the kind is EXIT. */
const stackId = new Uint32Array(STACK_MAX);
/** State index, HOT_PLAIN, or EXIT. */
const stackKind = new Int32Array(STACK_MAX);
/** The userset's descendants are done: it is no longer on the path. */
const EXIT = -1;
const tableId = new Uint32Array(TABLE_SLOTS);
const tableKind = new Int32Array(TABLE_SLOTS);
/** Twice the number of the evaluation that filled the slot, plus 1 while it is on the path. */
const tableMark = new Float64Array(TABLE_SLOTS);
let evaluation = 0;
let top = 0;
let hasWildcards = false;
/** Usersets visited, and the height of those that a summary stood for. */
let weight = 0;
/** The user's closure in `closures.arena`, or CLOSURE_NONE; looked up when first needed. */
let closureAt = CLOSURE_NONE;
let isClosureKnown = false;
/** Of the last `checkUserHot` on this thread: BACKSTOP_ bits. */
let backstops = 0;
/** Bound on the reads of the last `checkUserHot`. */
let reads = 0;
let weightMax = 0;
let readsLimit = 0;

/** BACKSTOP_ bits of the last answer of `checkUserHot` on this thread. */
export function hotBackstops(): number {
  return backstops;
}

/** Reads of the last `checkUserHot` on this thread, for budgets over several evaluations. */
export function hotReads(): number {
  return reads;
}

/** Inside this file: go on. */
const CHECK_CONTINUE = 3;

/**
 * The ordinary check of a concrete user: depth first over objects, each visited once for all the
 * relations asked of it (see HotModel), at most `nodesMax` usersets. Hot: no allocation, no
 * closure, no exception. Answers only what needs nothing else: an intersection, an exclusion, a
 * qualifier, a long list, a depth bound below the number of usersets visited or a budget that
 * could run out give CHECK_GENERAL. Scratch is shared by all evaluations of the thread.
 */
export function checkUserHot(
  reader: TupleReader,
  model: HotModel,
  caches: HotCaches,
  entity: number,
  relation: number,
  userNode: number,
  nodesMax: number,
  readsMax: number,
): number {
  backstops = 0;
  reads = 0;
  if (entity === 0 || relation <= 0) return CHECK_DENIED;
  const first = model.single(reader.namespaceOf(entity), relation);
  if (first < 0) return CHECK_GENERAL;
  const start = first === HOT_PLAIN ? reader.nodeId(entity, relation) : entity;
  if (start === 0) return CHECK_DENIED;
  hasWildcards = reader.reverseCount(WILDCARD_NODE) > 0;
  weight = 0;
  isClosureKnown = userNode === 0; // an unknown user is in no group
  closureAt = CLOSURE_NONE;
  top = 1;
  stackId[0] = start;
  stackKind[0] = first;
  weightMax = nodesMax;
  readsLimit = readsMax;
  return search(reader, model, caches, userNode);
}

/**
 * Works off the stack, each userset once; exit marks tell what is still on the path. While nothing
 * else waits, what was visited is not noted: a chain of parents needs no table, and a cycle without
 * branches ends at `weightMax`.
 */
function search(reader: TupleReader, model: HotModel, caches: HotCaches, userNode: number): number {
  const mark = ++evaluation * 2;
  let sawCycle = false;
  let isFirst = true;
  while (top > 0) {
    top--;
    const id = stackId[top] as number;
    const kind = stackKind[top] as number;
    if (kind === EXIT) {
      tableMark[id] = mark;
      continue;
    }
    const compound = model.states[kind];
    let slot = -1;
    const exit = top;
    if (exit > 0) {
      slot = (Math.imul(id, 0x9e3779b1) ^ Math.imul(kind, 0x85ebca77)) >>> 23;
      let state = tableMark[slot] as number;
      while (state >= mark && (tableId[slot] !== id || tableKind[slot] !== kind)) {
        slot = (slot + 1) & TABLE_MASK;
        state = tableMark[slot] as number;
      }
      if (state >= mark) {
        if (state === mark) continue;
        // Met on the path. One userset that leads to itself is a cycle; of several, one may lead to
        // another without leading back: only the general path can tell.
        if (compound !== undefined && compound.weight > 1) return CHECK_GENERAL;
        sawCycle = true;
        continue;
      }
      tableId[slot] = id;
      tableKind[slot] = kind;
      top++;
    }
    const code =
      compound === undefined
        ? visitPlain(reader, model, caches.closures, id, userNode)
        : isFirst
          ? visitLine(reader, model, caches, id, compound, userNode)
          : visitChain(reader, model, caches, id, compound, userNode);
    isFirst = false;
    if (code !== CHECK_CONTINUE) {
      return code === CHECK_ALLOWED && weight > weightMax ? CHECK_GENERAL : code;
    }
    if (slot < 0) continue;
    if (top === exit + 1) {
      top = exit; // nothing below: it never was on a path
      tableMark[slot] = mark;
    } else {
      stackId[exit] = slot;
      stackKind[exit] = EXIT;
      tableMark[slot] = mark + 1;
    }
  }
  if (weight > weightMax) return CHECK_GENERAL;
  if (sawCycle) backstops = BACKSTOP_CYCLE;
  return CHECK_DENIED;
}

/** Counts a visit. Whether the bounds allow it: no path is longer than all usersets visited. */
function isWithin(usersets: number, readCount: number): boolean {
  weight += usersets;
  reads += readCount;
  return weight <= weightMax && reads <= readsLimit;
}

/** All that an object and those above it hold, from their chain; as visitLine without one. */
function visitChain(
  reader: TupleReader,
  model: HotModel,
  caches: HotCaches,
  entity: number,
  state: HotState,
  userNode: number,
): number {
  const { chains } = caches;
  const at = chains.chainOf(entity, state);
  const { lines } = chains;
  const counts = lines[at + CHAIN_COUNTS] as number;
  if (counts === LINE_OPAQUE) return visitLine(reader, model, caches, entity, state, userNode);
  if (!isWithin(lines[at + CHAIN_WEIGHT] as number, lines[at + CHAIN_READS] as number)) {
    return CHECK_GENERAL;
  }
  return visitEntries(reader, caches, lines, at + CHAIN_ENTRIES, counts, 0, userNode);
}

/** All relations that a state asks of one object, from its line. */
function visitLine(
  reader: TupleReader,
  model: HotModel,
  caches: HotCaches,
  entity: number,
  state: HotState,
  userNode: number,
): number {
  const { objects, closures } = caches;
  if (!isWithin(state.weight, state.relations.length)) return CHECK_GENERAL;
  const at = objects.lineOf(entity, state);
  const { lines } = objects;
  const counts = lines[at + LINE_COUNTS] as number;
  if (counts === LINE_OPAQUE) return visitObject(reader, model, closures, entity, state, userNode);
  const height = lines[at + LINE_HEIGHT] as number;
  return visitEntries(reader, caches, lines, at + LINE_ENTRIES, counts, height, userNode);
}

/** The users, lists, groups and children of a line or chain; `height` is what its groups weigh. */
function visitEntries(
  reader: TupleReader,
  caches: HotCaches,
  lines: Uint32Array,
  entries: number,
  counts: number,
  height: number,
  userNode: number,
): number {
  const { closures } = caches;
  let at = entries;
  for (const end = at + (counts & 255); at < end; at++) {
    if (lines[at] === userNode) return CHECK_ALLOWED;
  }
  for (const end = at + ((counts >>> 7) & 510); at < end; at += 2) {
    const code = visitUsers(reader, lines[at] as number, lines[at + 1] as number, userNode);
    if (code !== CHECK_CONTINUE) return code;
  }
  const groupsEnd = at + ((counts >>> 16) & 255);
  if (at < groupsEnd) {
    weight += height;
    if (userNode !== 0) {
      if (!isClosureKnown) {
        closureAt = closures.closureOf(userNode);
        isClosureKnown = true;
      }
      if (closureAt === CLOSURE_NONE) {
        if (top + groupsEnd - at >= STACK_MAX) return CHECK_GENERAL;
        for (; at < groupsEnd; at++) {
          stackId[top] = lines[at] as number;
          stackKind[top++] = HOT_PLAIN;
        }
      } else {
        for (; at < groupsEnd; at++) {
          if (isInClosure(closures.arena, closureAt, lines[at] as number)) return CHECK_ALLOWED;
        }
      }
    }
    at = groupsEnd;
  }
  const end = at + ((counts >>> 24) << 1);
  if (top + end - at >= STACK_MAX) return CHECK_GENERAL;
  for (; at < end; at += 2) {
    stackId[top] = lines[at] as number;
    stackKind[top++] = lines[at + 1] as number;
  }
  return CHECK_CONTINUE;
}

/** A node of which only its own tuples count. */
function visitPlain(
  reader: TupleReader,
  model: HotModel,
  closures: ClosureCache,
  node: number,
  userNode: number,
): number {
  if (!isWithin(1, 1)) return CHECK_GENERAL;
  const users = reader.usersWord(node);
  return visitOwn(reader, model, closures, node, users, reader.setsWord(node), userNode);
}

/** All relations that a state asks of one object. */
function visitObject(
  reader: TupleReader,
  model: HotModel,
  closures: ClosureCache,
  entity: number,
  state: HotState,
  userNode: number,
): number {
  const { actions } = state;
  const count = reader.readObject(entity, object);
  if (count < 0) return visitRelations(reader, model, closures, entity, state, userNode);
  const end = count * OBJECT_STRIDE;
  for (let at = 0; at < end; at += OBJECT_STRIDE) {
    const relation = object[at + OBJECT_RELATION] as number;
    const action = relation < actions.length ? (actions[relation] as number) : 0;
    if (action === 0) continue;
    const sets = object[at + OBJECT_SETS] as number;
    if ((action & 1) !== 0) {
      const users = object[at + OBJECT_USERS] as number;
      const node = object[at + OBJECT_NODE] as number;
      const code = visitOwn(reader, model, closures, node, users, sets, userNode);
      if (code !== CHECK_CONTINUE) return code;
    }
    if (action > 1 && sets !== 0 && !walk(reader, model, sets, action >> 1)) return CHECK_GENERAL;
  }
  return CHECK_CONTINUE;
}

function visitRelations(
  reader: TupleReader,
  model: HotModel,
  closures: ClosureCache,
  entity: number,
  state: HotState,
  userNode: number,
): number {
  for (let i = 0; i < state.relations.length; i++) {
    const relation = state.relations[i] as number;
    const node = reader.nodeId(entity, relation);
    if (node === 0) continue;
    const action = state.actions[relation] as number;
    const sets = reader.setsWord(node);
    if ((action & 1) !== 0) {
      const users = reader.usersWord(node);
      const code = visitOwn(reader, model, closures, node, users, sets, userNode);
      if (code !== CHECK_CONTINUE) return code;
    }
    if (action > 1 && sets !== 0 && !walk(reader, model, sets, action >> 1)) return CHECK_GENERAL;
  }
  return CHECK_CONTINUE;
}

/** Whether a word of users holds the user or the wildcard. */
function visitUsers(reader: TupleReader, node: number, word: number, userNode: number): number {
  if ((word & WORD_LIST) === 0) {
    const only = word & EDGE_NODE_MASK;
    if (only === 0 || (only !== userNode && only !== WILDCARD_NODE)) return CHECK_CONTINUE;
    return word === only ? CHECK_ALLOWED : CHECK_GENERAL;
  }
  if (userNode !== 0) {
    const edge = reader.wordEdge(word, node, userNode);
    if (edge !== EDGE_ABSENT) return edge === EDGE_PLAIN ? CHECK_ALLOWED : CHECK_GENERAL;
  }
  if (hasWildcards) {
    const edge = reader.wordEdge(word, node, WILDCARD_NODE);
    if (edge !== EDGE_ABSENT) return edge === EDGE_PLAIN ? CHECK_ALLOWED : CHECK_GENERAL;
  }
  return CHECK_CONTINUE;
}

/** The tuples of one node: the user among them, and the usersets to visit. */
function visitOwn(
  reader: TupleReader,
  model: HotModel,
  closures: ClosureCache,
  node: number,
  users: number,
  sets: number,
  userNode: number,
): number {
  const held = visitUsers(reader, node, users, userNode);
  if (held !== CHECK_CONTINUE) return held;
  if (sets === 0) return CHECK_CONTINUE;
  if ((sets & WORD_LIST) === 0) return visitSet(reader, model, closures, sets, userNode);
  const count = reader.readWord(sets, chunk);
  if (count < 0) return CHECK_GENERAL;
  for (let i = 0; i < count; i++) {
    const code = visitSet(reader, model, closures, chunk[i] as number, userNode);
    if (code !== CHECK_CONTINUE) return code;
  }
  return CHECK_CONTINUE;
}

/** A userset or object that a node holds: decided by the user's closure, or to be visited. */
function visitSet(
  reader: TupleReader,
  model: HotModel,
  closures: ClosureCache,
  child: number,
  userNode: number,
): number {
  if (child >= EDGE_QUALIFIED) return CHECK_GENERAL;
  const height = closures.summaryOf(child);
  if (height !== SUMMARY_OPEN) {
    if (!isClosureKnown) {
      closureAt = closures.closureOf(userNode);
      isClosureKnown = true;
    }
    if (userNode === 0 || closureAt !== CLOSURE_NONE) {
      weight += height;
      return userNode !== 0 && isInClosure(closures.arena, closureAt, child)
        ? CHECK_ALLOWED
        : CHECK_CONTINUE;
    }
  }
  const relation = reader.relationOf(child);
  if (relation === 0) return CHECK_CONTINUE; // an object itself holds nobody
  const entity = reader.entityOf(child);
  const kind = model.single(reader.namespaceOf(entity), relation);
  if (kind < 0 || top >= STACK_MAX - 1) return CHECK_GENERAL;
  stackId[top] = kind === HOT_PLAIN ? child : entity;
  stackKind[top++] = kind;
  return CHECK_CONTINUE;
}

/** Pushes the objects that a tupleset names. Returns whether the hot path can go on. */
function walk(reader: TupleReader, model: HotModel, sets: number, target: number): boolean {
  if ((sets & WORD_LIST) === 0) return walkTo(reader, model, sets, target);
  const count = reader.readWord(sets, chunk);
  if (count < 0) return false;
  for (let i = 0; i < count; i++) {
    if (!walkTo(reader, model, chunk[i] as number, target)) return false;
  }
  return true;
}

function walkTo(reader: TupleReader, model: HotModel, child: number, target: number): boolean {
  if (child >= EDGE_QUALIFIED) return false;
  const entity = reader.entityOf(child);
  const kind = model.ofTarget(target, reader.namespaceOf(entity));
  if (kind < 0 || top >= STACK_MAX - 1) return false;
  stackId[top] = entity;
  stackKind[top++] = kind;
  return true;
}
