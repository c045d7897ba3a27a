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
import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import {
  BACKSTOP_CYCLE,
  CHECK_ALLOWED,
  CHECK_DENIED,
  CHECK_GENERAL,
} from '../bound/evaluator-api.ts';
import { CUT, TRUE } from '../bound/scope.ts';
import {
  CHAIN_COUNTS,
  CHAIN_ENTRIES,
  CHAIN_READS,
  CHAIN_WEIGHT,
  type ChainCache,
} from './chain-cache.ts';
import { type ClosureCache, CLOSURE_NONE, isInClosure, SUMMARY_OPEN } from './closure-cache.ts';
import { VALUE_GENERAL } from './hot-conditions.ts';
import { HOT_PLAIN, type HotModel, type HotState } from './hot-model.ts';
import { type HotScratch, STACK_MAX, TABLE_SLOTS } from './hot-scratch.ts';
import {
  LINE_COUNTS,
  LINE_ENTRIES,
  LINE_HEIGHT,
  LINE_OPAQUE,
  type ObjectCache,
} from './object-cache.ts';

/** What evaluations ask of a ClosureCache. */
export type Closures = Pick<ClosureCache, 'arena' | 'slots' | 'homeOf' | 'closureOf' | 'summaryOf'>;

/** What the hot path keeps between evaluations of one model version. */
export type HotCaches = {
  readonly closures: Closures;
  readonly objects: Pick<ObjectCache, 'table' | 'lines' | 'lineOf'>;
  readonly chains: Pick<ChainCache, 'table' | 'lines' | 'chainOf'>;
};

/**
 * Usersets that one hot evaluation visits at most; longer ones take the general path. Below half of TABLE_SLOTS, so that a
 * search for a free slot stays short.
 */
export const HOT_NODES_MAX = 250;
const TABLE_MASK = TABLE_SLOTS - 1;
/** The userset's descendants are done: it is no longer on the path. */
const EXIT = -1;

/** Inside this file: go on. */
const CHECK_CONTINUE = 3;

/** `checkStateHot` for a relation; CHECK_GENERAL for one with other operators than union. */
export function checkUserHot(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  caches: HotCaches,
  entity: number,
  relation: number,
  userNode: number,
  nodesMax: number,
  readsMax: number,
): number {
  scratch.backstops = 0;
  scratch.reads = 0;
  if (entity === 0 || relation <= 0) return CHECK_DENIED;
  const first = model.single(reader.namespaceOf(entity), relation);
  if (first < 0) return CHECK_GENERAL;
  return checkStateHot(
    scratch,
    reader,
    model,
    caches,
    entity,
    relation,
    first,
    userNode,
    nodesMax,
    readsMax,
  );
}

/**
 * Whether a concrete user holds what `first` asks of the entity: a state, or HOT_PLAIN for the tuples of `relation` alone.
 * Depth first over objects, each visited once for all the relations asked of it (see HotModel), at most `nodesMax` usersets,
 * by `scratch.nowMs` and `scratch.conditions`. Hot: no allocation of its own, no closure, no exception. Answers only what
 * is a union throughout: an intersection, an exclusion, a long list, a depth bound below the number of usersets visited or
 * a budget that could run out give CHECK_GENERAL. `scratch` then holds its BACKSTOP_ bits, how many reads it took, and
 * whether a denial rests on a condition that could not be decided.
 */
export function checkStateHot(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  caches: HotCaches,
  entity: number,
  relation: number,
  first: number,
  userNode: number,
  nodesMax: number,
  readsMax: number,
): number {
  scratch.backstops = 0;
  scratch.reads = 0;
  scratch.isUndecided = false;
  const start = first === HOT_PLAIN ? reader.nodeId(entity, relation) : entity;
  if (start === 0) return CHECK_DENIED;
  scratch.hasWildcards = reader.reverseCount(WILDCARD_NODE) > 0;
  scratch.weight = 0;
  scratch.isClosureKnown = userNode === 0; // an unknown user is in no group
  scratch.closureAt = CLOSURE_NONE;
  scratch.top = 1;
  scratch.stackId[0] = start;
  scratch.stackKind[0] = first;
  scratch.weightMax = nodesMax;
  scratch.readsLimit = readsMax;
  const answer = search(scratch, reader, model, caches, userNode);
  if (DEBUG_ASSERTIONS) assertBounds(scratch, answer);
  return answer;
}

/**
 * A function of its own, since code that is left out counts when the compiler decides what to inline: in line it took 1.4 %
 * of engine-check (111.7 ns instead of 110.1, medians of 14 turns), so nothing (107.4 and 107.0, of 12).
 */
function assertBounds(scratch: HotScratch, answer: number): void {
  assert(scratch.top <= STACK_MAX, 'the stack keeps within its bound');
  if (answer === CHECK_GENERAL) return;
  assert(answer === CHECK_ALLOWED || answer === CHECK_DENIED, 'a search ends with an answer');
  assert(scratch.reads <= scratch.readsLimit, 'an answer keeps within its budget');
  assert(scratch.weight <= scratch.weightMax, 'an answer rests on no more usersets than allowed');
  // Each visit weighs one at least, and takes one slot at most: the search for a free one ends.
  assert(scratch.weightMax < TABLE_SLOTS, 'the table of visits has free slots');
}

/**
 * Works off the stack, each userset once; exit marks tell what is still on the path. While nothing
 * else waits, what was visited is not noted: a chain of parents needs no table, and a cycle without
 * branches ends at `weightMax`.
 */
function search(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  caches: HotCaches,
  userNode: number,
): number {
  const mark = ++scratch.evaluation * 2;
  let sawCycle = false;
  let isFirst = true;
  while (scratch.top > 0) {
    scratch.top--;
    const id = scratch.stackId[scratch.top] as number;
    const kind = scratch.stackKind[scratch.top] as number;
    if (kind === EXIT) {
      scratch.tableMark[id] = mark;
      continue;
    }
    const compound = model.states[kind];
    let slot = -1;
    const exit = scratch.top;
    if (exit > 0) {
      slot = (Math.imul(id, 0x9e3779b1) ^ Math.imul(kind, 0x85ebca77)) >>> 23;
      let state = scratch.tableMark[slot] as number;
      while (state >= mark && (scratch.tableId[slot] !== id || scratch.tableKind[slot] !== kind)) {
        slot = (slot + 1) & TABLE_MASK;
        state = scratch.tableMark[slot] as number;
      }
      if (state >= mark) {
        if (state === mark) continue;
        // Met on the path. One userset that leads to itself is a cycle; of several, one may lead to
        // another without leading back: only the general path can tell.
        if (compound !== undefined && compound.weight > 1) return CHECK_GENERAL;
        sawCycle = true;
        continue;
      }
      scratch.tableId[slot] = id;
      scratch.tableKind[slot] = kind;
      scratch.top++;
    }
    const code =
      compound === undefined
        ? visitPlain(scratch, reader, model, caches.closures, id, userNode)
        : isFirst
          ? visitLine(scratch, reader, model, caches, id, compound, userNode)
          : visitChain(scratch, reader, model, caches, id, compound, userNode);
    isFirst = false;
    if (code !== CHECK_CONTINUE) {
      return code === CHECK_ALLOWED && scratch.weight > scratch.weightMax ? CHECK_GENERAL : code;
    }
    if (slot < 0) continue;
    if (scratch.top === exit + 1) {
      scratch.top = exit; // nothing below: it never was on a path
      scratch.tableMark[slot] = mark;
    } else {
      scratch.stackId[exit] = slot;
      scratch.stackKind[exit] = EXIT;
      scratch.tableMark[slot] = mark + 1;
    }
  }
  if (scratch.weight > scratch.weightMax) return CHECK_GENERAL;
  if (sawCycle) scratch.backstops = BACKSTOP_CYCLE;
  return CHECK_DENIED;
}

/** Counts a visit. Whether the bounds allow it: no path is longer than all usersets visited. */
function isWithin(scratch: HotScratch, usersets: number, readCount: number): boolean {
  scratch.weight += usersets;
  scratch.reads += readCount;
  return (
    scratch.weight <= scratch.weightMax && scratch.reads <= scratch.readsLimit && scratch.steps >= 0
  );
}

/** All that an object and those above it hold, from their chain; as visitLine without one. */
function visitChain(
  scratch: HotScratch,
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
  if (counts === LINE_OPAQUE)
    return visitLine(scratch, reader, model, caches, entity, state, userNode);
  if (!isWithin(scratch, lines[at + CHAIN_WEIGHT] as number, lines[at + CHAIN_READS] as number)) {
    return CHECK_GENERAL;
  }
  return visitEntries(scratch, reader, caches, lines, at + CHAIN_ENTRIES, counts, 0, userNode);
}

/** All relations that a state asks of one object, from its line. */
function visitLine(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  caches: HotCaches,
  entity: number,
  state: HotState,
  userNode: number,
): number {
  const { objects, closures } = caches;
  if (!isWithin(scratch, state.weight, state.relations.length)) return CHECK_GENERAL;
  const at = objects.lineOf(entity, state);
  const { lines } = objects;
  const counts = lines[at + LINE_COUNTS] as number;
  if (counts === LINE_OPAQUE)
    return visitObject(scratch, reader, model, closures, entity, state, userNode);
  const height = lines[at + LINE_HEIGHT] as number;
  return visitEntries(scratch, reader, caches, lines, at + LINE_ENTRIES, counts, height, userNode);
}

/** The users, lists, groups and children of a line or chain; `height` is what its groups weigh. */
function visitEntries(
  scratch: HotScratch,
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
    const code = visitUsers(
      scratch,
      reader,
      lines[at] as number,
      lines[at + 1] as number,
      userNode,
    );
    if (code !== CHECK_CONTINUE) return code;
  }
  const groupsEnd = at + ((counts >>> 16) & 255);
  if (at < groupsEnd) {
    scratch.weight += height;
    if (userNode !== 0) {
      if (!scratch.isClosureKnown) {
        scratch.closureAt = closures.closureOf(userNode);
        scratch.isClosureKnown = true;
      }
      if (scratch.closureAt === CLOSURE_NONE) {
        if (scratch.top + groupsEnd - at >= STACK_MAX) return CHECK_GENERAL;
        for (; at < groupsEnd; at++) {
          scratch.stackId[scratch.top] = lines[at] as number;
          scratch.stackKind[scratch.top++] = HOT_PLAIN;
        }
      } else {
        for (; at < groupsEnd; at++) {
          if (isInClosure(closures.arena, scratch.closureAt, lines[at] as number))
            return CHECK_ALLOWED;
        }
      }
    }
    at = groupsEnd;
  }
  const end = at + ((counts >>> 24) << 1);
  if (scratch.top + end - at >= STACK_MAX) return CHECK_GENERAL;
  for (; at < end; at += 2) {
    scratch.stackId[scratch.top] = lines[at] as number;
    scratch.stackKind[scratch.top++] = lines[at + 1] as number;
  }
  return CHECK_CONTINUE;
}

/** A node of which only its own tuples count. */
function visitPlain(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  closures: Closures,
  node: number,
  userNode: number,
): number {
  if (!isWithin(scratch, 1, 1)) return CHECK_GENERAL;
  const users = reader.usersWord(node);
  return visitOwn(scratch, reader, model, closures, node, users, reader.setsWord(node), userNode);
}

/** All relations that a state asks of one object. */
function visitObject(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  closures: Closures,
  entity: number,
  state: HotState,
  userNode: number,
): number {
  const { actions } = state;
  const count = reader.readObject(entity, scratch.object);
  if (count < 0) return visitRelations(scratch, reader, model, closures, entity, state, userNode);
  const end = count * OBJECT_STRIDE;
  for (let at = 0; at < end; at += OBJECT_STRIDE) {
    const relation = scratch.object[at + OBJECT_RELATION] as number;
    const action = relation < actions.length ? (actions[relation] as number) : 0;
    if (action === 0) continue;
    const sets = scratch.object[at + OBJECT_SETS] as number;
    if ((action & 1) !== 0) {
      const users = scratch.object[at + OBJECT_USERS] as number;
      const node = scratch.object[at + OBJECT_NODE] as number;
      const code = visitOwn(scratch, reader, model, closures, node, users, sets, userNode);
      if (code !== CHECK_CONTINUE) return code;
    }
    if (action > 1 && sets !== 0) {
      const node = scratch.object[at + OBJECT_NODE] as number;
      if (!walk(scratch, reader, model, node, sets, action >> 1)) return CHECK_GENERAL;
    }
  }
  return CHECK_CONTINUE;
}

function visitRelations(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  closures: Closures,
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
      const code = visitOwn(scratch, reader, model, closures, node, users, sets, userNode);
      if (code !== CHECK_CONTINUE) return code;
    }
    if (action > 1 && sets !== 0 && !walk(scratch, reader, model, node, sets, action >> 1))
      return CHECK_GENERAL;
  }
  return CHECK_CONTINUE;
}

/** Whether a word of users holds the user or the wildcard. */
function visitUsers(
  scratch: HotScratch,
  reader: TupleReader,
  node: number,
  word: number,
  userNode: number,
): number {
  if ((word & WORD_LIST) === 0) {
    const only = word & EDGE_NODE_MASK;
    if (only === 0 || (only !== userNode && only !== WILDCARD_NODE)) return CHECK_CONTINUE;
    return word === only ? CHECK_ALLOWED : qualifiedEdge(scratch, reader, node, only);
  }
  if (userNode !== 0) {
    const edge = reader.wordEdge(word, node, userNode);
    if (edge === EDGE_PLAIN) return CHECK_ALLOWED;
    if (edge !== EDGE_ABSENT) {
      const code = qualifiedEdge(scratch, reader, node, userNode);
      if (code !== CHECK_CONTINUE) return code;
    }
  }
  if (scratch.hasWildcards) {
    const edge = reader.wordEdge(word, node, WILDCARD_NODE);
    if (edge === EDGE_PLAIN) return CHECK_ALLOWED;
    if (edge !== EDGE_ABSENT) return qualifiedEdge(scratch, reader, node, WILDCARD_NODE);
  }
  return CHECK_CONTINUE;
}

/**
 * A qualified tuple counts, or is as one that is not there: it has expired, or its condition does not hold. One that cannot
 * be decided denies as well, which is noted. Nothing that is kept rests on it.
 */
function qualifiedEdge(
  scratch: HotScratch,
  reader: TupleReader,
  node: number,
  subject: number,
): number {
  const { nowMs } = scratch;
  const expiresAtMs = reader.bareExpiryMs(node, subject);
  if (nowMs >= expiresAtMs) return CHECK_CONTINUE;
  if (nowMs < expiresAtMs) return CHECK_ALLOWED;
  const { conditions } = scratch;
  // Without a clock nothing is decided here.
  if (conditions === null || Number.isNaN(nowMs)) return CHECK_GENERAL;
  const value = conditions.valueOf(node, subject, nowMs, scratch.readsLimit - scratch.reads);
  scratch.reads += conditions.reads;
  if (value === TRUE) return CHECK_ALLOWED;
  if (value === VALUE_GENERAL || scratch.reads > scratch.readsLimit) return CHECK_GENERAL;
  if (value === CUT) scratch.isUndecided = true;
  return CHECK_CONTINUE;
}

/** The tuples of one node: the user among them, and the usersets to visit. */
function visitOwn(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  closures: Closures,
  node: number,
  users: number,
  sets: number,
  userNode: number,
): number {
  const held = visitUsers(scratch, reader, node, users, userNode);
  if (held !== CHECK_CONTINUE) return held;
  if (sets === 0) return CHECK_CONTINUE;
  if ((sets & WORD_LIST) === 0) {
    return visitSet(scratch, reader, model, closures, node, sets, userNode);
  }
  const count = reader.readWord(sets, scratch.chunk);
  scratch.steps -= count;
  if (count < 0) return CHECK_GENERAL;
  for (let i = 0; i < count; i++) {
    const set = scratch.chunk[i] as number;
    const code = visitSet(scratch, reader, model, closures, node, set, userNode);
    if (code !== CHECK_CONTINUE) return code;
  }
  return CHECK_CONTINUE;
}

/** A userset or object that a node holds: decided by the user's closure, or to be visited. */
function visitSet(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  closures: Closures,
  node: number,
  entry: number,
  userNode: number,
): number {
  const child = entry & EDGE_NODE_MASK;
  if (entry >= EDGE_QUALIFIED) {
    const code = qualifiedEdge(scratch, reader, node, child);
    if (code !== CHECK_ALLOWED) return code;
  }
  const height = closures.summaryOf(child);
  if (height !== SUMMARY_OPEN) {
    if (!scratch.isClosureKnown) {
      scratch.closureAt = closures.closureOf(userNode);
      scratch.isClosureKnown = true;
    }
    if (userNode === 0 || scratch.closureAt !== CLOSURE_NONE) {
      scratch.weight += height;
      return userNode !== 0 && isInClosure(closures.arena, scratch.closureAt, child)
        ? CHECK_ALLOWED
        : CHECK_CONTINUE;
    }
  }
  const relation = reader.relationOf(child);
  if (relation === 0) return CHECK_CONTINUE; // an object itself holds nobody
  const entity = reader.entityOf(child);
  const kind = model.single(reader.namespaceOf(entity), relation);
  if (kind < 0 || scratch.top >= STACK_MAX - 1) return CHECK_GENERAL;
  scratch.stackId[scratch.top] = kind === HOT_PLAIN ? child : entity;
  scratch.stackKind[scratch.top++] = kind;
  return CHECK_CONTINUE;
}

/** Pushes the objects that a tupleset names. Returns whether the hot path can go on. */
function walk(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  node: number,
  sets: number,
  target: number,
): boolean {
  if ((sets & WORD_LIST) === 0) return walkTo(scratch, reader, model, node, sets, target);
  const count = reader.readWord(sets, scratch.chunk);
  scratch.steps -= count;
  if (count < 0) return false;
  for (let i = 0; i < count; i++) {
    if (!walkTo(scratch, reader, model, node, scratch.chunk[i] as number, target)) return false;
  }
  return true;
}

function walkTo(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  node: number,
  entry: number,
  target: number,
): boolean {
  const child = entry & EDGE_NODE_MASK;
  if (entry >= EDGE_QUALIFIED) {
    const code = qualifiedEdge(scratch, reader, node, child);
    if (code !== CHECK_ALLOWED) return code === CHECK_CONTINUE;
  }
  const entity = reader.entityOf(child);
  const kind = model.ofTarget(target, reader.namespaceOf(entity));
  if (kind < 0 || scratch.top >= STACK_MAX - 1) return false;
  scratch.stackId[scratch.top] = entity;
  scratch.stackKind[scratch.top++] = kind;
  return true;
}
