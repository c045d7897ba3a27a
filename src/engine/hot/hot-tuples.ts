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
import { CHECK_ALLOWED, CHECK_GENERAL } from '../bound/evaluator-api.ts';
import { UNDETERMINED, TRUE } from '../bound/scope.ts';
import { VALUE_GENERAL } from './hot-conditions.ts';
import { HOT_PLAIN, type HotModel, type HotState } from './hot-model.ts';
import { type HotScratch, STACK_MAX } from './hot-scratch.ts';
import {
  type MembershipCache,
  MEMBERSHIPS_NONE,
  isMember,
  SUMMARY_OPEN,
} from './membership-cache.ts';

/** The part of a MembershipCache that evaluations call. */
export type Memberships = Pick<
  MembershipCache,
  'arena' | 'slots' | 'homeOf' | 'membershipsOf' | 'summaryOf'
>;

/** A visit found nothing that decides: the search continues. */
export const CHECK_CONTINUE = 3;

/** Counts a visit. Whether the bounds allow it: no path is longer than all usersets visited. */
export function isWithin(scratch: HotScratch, usersets: number, readCount: number): boolean {
  scratch.weight += usersets;
  scratch.reads += readCount;
  return (
    scratch.weight <= scratch.weightMax && scratch.reads <= scratch.readsLimit && scratch.steps >= 0
  );
}

/** A node of which only its own tuples count. */
export function visitPlain(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  memberships: Memberships,
  node: number,
  userNode: number,
): number {
  if (!isWithin(scratch, 1, 1)) return CHECK_GENERAL;
  const users = reader.usersWord(node);
  return visitOwn(
    scratch,
    reader,
    model,
    memberships,
    node,
    users,
    reader.setsWord(node),
    userNode,
  );
}

/** All relations that a state asks of one object. */
export function visitObject(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  memberships: Memberships,
  entity: number,
  state: HotState,
  userNode: number,
): number {
  const { actions } = state;
  const count = reader.readObject(entity, scratch.object);
  if (count < 0)
    return visitRelations(scratch, reader, model, memberships, entity, state, userNode);
  const end = count * OBJECT_STRIDE;
  for (let at = 0; at < end; at += OBJECT_STRIDE) {
    const relation = scratch.object[at + OBJECT_RELATION] as number;
    const action = relation < actions.length ? (actions[relation] as number) : 0;
    if (action === 0) continue;
    const sets = scratch.object[at + OBJECT_SETS] as number;
    if ((action & 1) !== 0) {
      const users = scratch.object[at + OBJECT_USERS] as number;
      const node = scratch.object[at + OBJECT_NODE] as number;
      const code = visitOwn(scratch, reader, model, memberships, node, users, sets, userNode);
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
  memberships: Memberships,
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
      const code = visitOwn(scratch, reader, model, memberships, node, users, sets, userNode);
      if (code !== CHECK_CONTINUE) return code;
    }
    if (action > 1 && sets !== 0 && !walk(scratch, reader, model, node, sets, action >> 1))
      return CHECK_GENERAL;
  }
  return CHECK_CONTINUE;
}

/** Whether a word of users holds the user or the wildcard. */
export function visitUsers(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  node: number,
  word: number,
  userNode: number,
): number {
  if ((word & WORD_LIST) === 0) {
    const only = word & EDGE_NODE_MASK;
    if (only === 0 || (only !== userNode && only !== WILDCARD_NODE)) return CHECK_CONTINUE;
    return word === only && !model.isPartial
      ? CHECK_ALLOWED
      : entryHolds(scratch, reader, model, node, word);
  }
  if (userNode !== 0) {
    const code = visitListed(scratch, reader, model, node, word, userNode);
    if (code !== CHECK_CONTINUE) return code;
  }
  return scratch.hasWildcards
    ? visitListed(scratch, reader, model, node, word, WILDCARD_NODE)
    : CHECK_CONTINUE;
}

/** Whether a list holds a subject. */
export function visitListed(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  node: number,
  word: number,
  subject: number,
): number {
  const edge = reader.wordEdge(word, node, subject);
  if (edge === EDGE_ABSENT) return CHECK_CONTINUE;
  if (edge === EDGE_PLAIN && !model.isPartial) return CHECK_ALLOWED;
  const entry = edge === EDGE_PLAIN ? subject : (subject | EDGE_QUALIFIED) >>> 0;
  return entryHolds(scratch, reader, model, node, entry);
}

/**
 * Whether the tuple of an entry in a node's list counts: CHECK_ALLOWED if so, CHECK_CONTINUE if it is ignored. Called where one is
 * qualified, or the model ignores some: elsewhere all count.
 */
export function entryHolds(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  node: number,
  entry: number,
): number {
  const subject = entry & EDGE_NODE_MASK;
  const isQualified = entry >= EDGE_QUALIFIED;
  if (!model.admits(reader, node, subject, isQualified)) return CHECK_CONTINUE;
  return isQualified ? qualifiedEdge(scratch, reader, node, subject) : CHECK_ALLOWED;
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
  if (value === UNDETERMINED) scratch.isUndecided = true;
  return CHECK_CONTINUE;
}

/** The tuples of one node: the user among them, and the usersets to visit. */
function visitOwn(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  memberships: Memberships,
  node: number,
  users: number,
  sets: number,
  userNode: number,
): number {
  const held = visitUsers(scratch, reader, model, node, users, userNode);
  if (held !== CHECK_CONTINUE) return held;
  if (sets === 0) return CHECK_CONTINUE;
  if ((sets & WORD_LIST) === 0) {
    return visitSet(scratch, reader, model, memberships, node, sets, userNode);
  }
  const count = reader.readWord(sets, scratch.chunk);
  scratch.steps -= count;
  if (count < 0) return CHECK_GENERAL;
  for (let i = 0; i < count; i++) {
    const set = scratch.chunk[i] as number;
    const code = visitSet(scratch, reader, model, memberships, node, set, userNode);
    if (code !== CHECK_CONTINUE) return code;
  }
  return CHECK_CONTINUE;
}

/** A userset or object that a node holds: decided by the user's memberships, or to be visited. */
function visitSet(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  memberships: Memberships,
  node: number,
  entry: number,
  userNode: number,
): number {
  const child = entry & EDGE_NODE_MASK;
  if (entry >= EDGE_QUALIFIED || model.isPartial) {
    const code = entryHolds(scratch, reader, model, node, entry);
    if (code !== CHECK_ALLOWED) return code;
  }
  const height = memberships.summaryOf(child);
  if (height !== SUMMARY_OPEN) {
    if (!scratch.isMembershipKnown) {
      scratch.membershipsAt = memberships.membershipsOf(userNode);
      scratch.isMembershipKnown = true;
    }
    if (userNode === 0 || scratch.membershipsAt !== MEMBERSHIPS_NONE) {
      scratch.weight += height;
      return userNode !== 0 && isMember(memberships.arena, scratch.membershipsAt, child)
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

/** Pushes the objects that a tupleset names. Returns whether the hot path can continue. */
export function walk(
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
  if (entry >= EDGE_QUALIFIED || model.isPartial) {
    const code = entryHolds(scratch, reader, model, node, entry);
    if (code !== CHECK_ALLOWED) return code === CHECK_CONTINUE;
  }
  const entity = reader.entityOf(child);
  const kind = model.ofTarget(target, reader.namespaceOf(entity));
  if (kind < 0 || scratch.top >= STACK_MAX - 1) return false;
  scratch.stackId[scratch.top] = entity;
  scratch.stackKind[scratch.top++] = kind;
  return true;
}
