import { type TupleReader, WILDCARD_NODE } from '../../model/tuple-reader.ts';
import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import {
  BACKSTOP_CYCLE,
  CHECK_ALLOWED,
  CHECK_DENIED,
  CHECK_GENERAL,
} from '../bound/evaluator-api.ts';
import {
  ANCESTORS_COUNTS,
  ANCESTORS_ENTRIES,
  ANCESTORS_READS,
  ANCESTORS_WEIGHT,
  type AncestorCache,
} from './ancestor-cache.ts';
import { HOT_PLAIN, type HotModel, type HotState } from './hot-model.ts';
import { type HotScratch, STACK_MAX, TABLE_SLOTS } from './hot-scratch.ts';
import {
  CHECK_CONTINUE,
  type Memberships,
  isWithin,
  visitObject,
  visitPlain,
  visitUsers,
} from './hot-tuples.ts';
import { isMember, MEMBERSHIPS_NONE, SUMMARY_OPEN } from './membership-cache.ts';
import {
  type ObjectCache,
  ROW_COUNTS,
  ROW_ENTRIES,
  ROW_HEIGHT,
  ROW_OPAQUE,
} from './object-cache.ts';
import { ObjectTable } from './object-table.ts';

/** Caches that the hot path keeps between evaluations of one model version. */
export type HotCaches = {
  readonly memberships: Memberships;
  readonly objects: Pick<ObjectCache, 'table' | 'lines' | 'rowOf'>;
  readonly ancestors: Pick<AncestorCache, 'table' | 'lines' | 'ancestorsOf'>;
};

/**
 * Usersets that one hot evaluation visits at most; longer ones take the general path. Below half of TABLE_SLOTS, so that a
 * search for a free slot stays short.
 */
export const HOT_NODES_MAX = 250;
const TABLE_MASK = TABLE_SLOTS - 1;
/** The userset's descendants are done: it is no longer on the path. */
const EXIT = -1;

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
 * by `scratch.nowMs` and `scratch.conditions`. Hot: no allocation of its own, no memberships, no exception. Answers only what
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
  scratch.isMembershipKnown = userNode === 0; // an unknown user is in no group
  scratch.membershipsAt = MEMBERSHIPS_NONE;
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
 * A function of its own, since code that is left out counts when the compiler decides what to inline: in row it took 1.4 %
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
 * Works off the stack, each userset once; exit marks show what is still on the path. While nothing
 * else waits, what was visited is not noted: a list of ancestors of parents needs no table, and a cycle without
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
        // another without leading back: only the general path can decide.
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
        ? visitPlain(scratch, reader, model, caches.memberships, id, userNode)
        : isFirst
          ? visitRow(scratch, reader, model, caches, id, compound, userNode)
          : visitAncestors(scratch, reader, model, caches, id, compound, userNode);
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

/** All that an object and those above it hold, from their list of ancestors; as visitRow without one. */
function visitAncestors(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  caches: HotCaches,
  entity: number,
  state: HotState,
  userNode: number,
): number {
  const { ancestors } = caches;
  const at = ancestors.ancestorsOf(entity, state);
  const { lines } = ancestors;
  const counts = lines[at + ANCESTORS_COUNTS] as number;
  if (counts === ROW_OPAQUE)
    return visitRow(scratch, reader, model, caches, entity, state, userNode);
  if (
    !isWithin(
      scratch,
      lines[at + ANCESTORS_WEIGHT] as number,
      lines[at + ANCESTORS_READS] as number,
    )
  ) {
    return CHECK_GENERAL;
  }
  const entries = at + ANCESTORS_ENTRIES;
  return visitEntries(scratch, reader, model, caches, lines, entries, counts, 0, userNode);
}

/** All relations that a state asks of one object, from its row. */
function visitRow(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  caches: HotCaches,
  entity: number,
  state: HotState,
  userNode: number,
): number {
  const { objects, memberships } = caches;
  if (!isWithin(scratch, state.weight, state.relations.length)) return CHECK_GENERAL;
  const at = objects.rowOf(entity, state);
  const { lines } = objects;
  const counts = lines[at + ROW_COUNTS] as number;
  if (counts === ROW_OPAQUE)
    return visitObject(scratch, reader, model, memberships, entity, state, userNode);
  const height = lines[at + ROW_HEIGHT] as number;
  const entries = at + ROW_ENTRIES;
  return visitEntries(scratch, reader, model, caches, lines, entries, counts, height, userNode);
}

/** The users, lists, groups and children of a row or list of ancestors; `height` is what its groups weigh. */
function visitEntries(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  caches: HotCaches,
  lines: Uint32Array,
  entries: number,
  counts: number,
  height: number,
  userNode: number,
): number {
  const { memberships } = caches;
  let at = entries;
  for (const end = at + (counts & 255); at < end; at++) {
    if (lines[at] === userNode) return CHECK_ALLOWED;
  }
  for (const end = at + ((counts >>> 7) & 510); at < end; at += 2) {
    const code = visitUsers(
      scratch,
      reader,
      model,
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
      if (!scratch.isMembershipKnown) {
        scratch.membershipsAt = memberships.membershipsOf(userNode);
        scratch.isMembershipKnown = true;
      }
      if (scratch.membershipsAt === MEMBERSHIPS_NONE) {
        if (scratch.top + groupsEnd - at >= STACK_MAX) return CHECK_GENERAL;
        for (; at < groupsEnd; at++) {
          scratch.stackId[scratch.top] = lines[at] as number;
          scratch.stackKind[scratch.top++] = HOT_PLAIN;
        }
      } else {
        for (; at < groupsEnd; at++) {
          if (isMember(memberships.arena, scratch.membershipsAt, lines[at] as number))
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

const nothing = new ObjectTable(5, 0);
const opaque = new Uint32Array(ROW_COUNTS + 1).fill(ROW_OPAQUE);

/** Replacement for caches that are off, with the answers of a cache that holds nothing. */
export const ABSENT_CACHES: HotCaches = {
  memberships: {
    arena: new Uint32Array(0),
    slots: new Uint32Array(4),
    homeOf: () => 0,
    membershipsOf: () => MEMBERSHIPS_NONE,
    summaryOf: () => SUMMARY_OPEN,
  },
  objects: { table: nothing, lines: opaque, rowOf: () => 0 },
  ancestors: { table: nothing, lines: opaque, ancestorsOf: () => 0 },
};
