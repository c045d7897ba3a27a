import {
  EDGE_NODE_MASK,
  EDGE_QUALIFIED,
  OBJECT_NODE,
  OBJECT_RELATION,
  OBJECT_SETS,
  OBJECT_STRIDE,
  type TupleReader,
  WORD_LIST,
} from '../../model/tuple-reader.ts';
import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import {
  BACKSTOP_CYCLE,
  CHECK_ALLOWED,
  CHECK_DENIED,
  CHECK_GENERAL,
} from '../bound/evaluator-api.ts';
import { HOT_PLAIN, type HotModel, type HotState } from './hot-model.ts';
import { type HotScratch, STACK_MAX, TABLE_SLOTS } from './hot-scratch.ts';
import {
  CHECK_CONTINUE,
  entryHolds,
  isWithin,
  type Memberships,
  visitListed,
  walk,
} from './hot-tuples.ts';
import { isMember, MEMBERSHIPS_NONE, SUMMARY_OPEN } from './membership-cache.ts';

/** Target of a search of exact usersets and objects. One for all searches of an evaluator, filled anew for each. */
export class SetTarget {
  /** (entity, relation); relation 0 is the object itself. */
  entity = 0;
  relation = 0;
  /** The node of both, 0 where no tuple mentions it as a subject or has it as its object. */
  node = 0;
  /** The node of the typed wildcard of an object's namespace; 0 of a userset, and where no tuple has it. */
  wildcardNode = 0;
  /** The target's memberships in `memberships.arena`, or MEMBERSHIPS_NONE; looked up when first needed. */
  membershipsAt = MEMBERSHIPS_NONE;
  isMembershipKnown = false;
}

const TABLE_MASK = TABLE_SLOTS - 1;
/** The userset's descendants are done: it is no longer on the path. */
const EXIT = -1;

/**
 * Whether an exact userset, or an object itself, holds what `first` asks of the entity: `checkStateHot` for such a
 * target. No other subject includes it, so of each object only the sets of its tuples are read, and no list of users.
 * Rows and lists of ancestors are not read: they leave out objects, and do not name the usersets that they are made
 * of. A denial that rests on a condition that could not be decided gives CHECK_GENERAL, for its value may be another
 * one. Hot.
 */
export function checkSetHot(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  memberships: Memberships,
  target: SetTarget,
  entity: number,
  relation: number,
  first: number,
  nodesMax: number,
  readsMax: number,
): number {
  scratch.backstops = 0;
  scratch.reads = 0;
  scratch.isUndecided = false;
  scratch.weight = 0;
  // The general evaluation counts the target, and every object that is met, as one more userset of its path.
  scratch.weightMax = nodesMax - 1;
  scratch.readsLimit = readsMax;
  if (first < 0) return CHECK_GENERAL;
  // An operand of a rewrite may be the target, where no tuple mentions it either.
  if (first === HOT_PLAIN && entity === target.entity && relation === target.relation) {
    return isWithin(scratch, 1, 0) ? CHECK_ALLOWED : CHECK_GENERAL;
  }
  const start = first === HOT_PLAIN ? reader.nodeId(entity, relation) : entity;
  if (start === 0) return CHECK_DENIED;
  target.isMembershipKnown = false;
  scratch.top = 1;
  scratch.stackId[0] = start;
  scratch.stackKind[0] = first;
  const answer = search(scratch, reader, model, memberships, target);
  if (DEBUG_ASSERTIONS) assertBounds(scratch, answer);
  return answer;
}

function assertBounds(scratch: HotScratch, answer: number): void {
  assert(scratch.top <= STACK_MAX, 'the stack keeps within its bound');
  if (answer === CHECK_GENERAL) return;
  assert(answer === CHECK_ALLOWED || answer === CHECK_DENIED, 'a search ends with an answer');
  assert(scratch.reads <= scratch.readsLimit, 'an answer keeps within its budget');
  assert(scratch.weight <= scratch.weightMax, 'an answer rests on no more usersets than allowed');
}

/** Works off the stack, each userset once; exit marks show what is still on the path. */
function search(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  memberships: Memberships,
  target: SetTarget,
): number {
  const mark = ++scratch.evaluation * 2;
  let sawCycle = false;
  while (scratch.top > 0) {
    scratch.top--;
    const id = scratch.stackId[scratch.top] as number;
    const kind = scratch.stackKind[scratch.top] as number;
    if (kind === EXIT) {
      scratch.tableMark[id] = mark;
      continue;
    }
    const compound = model.states[kind];
    let slot = (Math.imul(id, 0x9e3779b1) ^ Math.imul(kind, 0x85ebca77)) >>> 23;
    let state = scratch.tableMark[slot] as number;
    while (state >= mark && (scratch.tableId[slot] !== id || scratch.tableKind[slot] !== kind)) {
      slot = (slot + 1) & TABLE_MASK;
      state = scratch.tableMark[slot] as number;
    }
    if (state >= mark) {
      if (state === mark) continue;
      // Met on the path: as in the search of a user.
      if (compound !== undefined && compound.weight > 1) return CHECK_GENERAL;
      sawCycle = true;
      continue;
    }
    scratch.tableId[slot] = id;
    scratch.tableKind[slot] = kind;
    const exit = scratch.top++;
    const code =
      compound === undefined
        ? visitPlain(scratch, reader, model, memberships, target, id)
        : visitObject(scratch, reader, model, memberships, target, id, compound);
    if (code !== CHECK_CONTINUE) {
      return code === CHECK_ALLOWED && scratch.weight > scratch.weightMax ? CHECK_GENERAL : code;
    }
    if (scratch.top === exit + 1) {
      scratch.top = exit; // nothing below: it never was on a path
      scratch.tableMark[slot] = mark;
    } else {
      scratch.stackId[exit] = slot;
      scratch.stackKind[exit] = EXIT;
      scratch.tableMark[slot] = mark + 1;
    }
  }
  if (scratch.weight > scratch.weightMax || scratch.isUndecided) return CHECK_GENERAL;
  if (sawCycle) scratch.backstops = BACKSTOP_CYCLE;
  return CHECK_DENIED;
}

/** A node of which only its own tuples count. */
function visitPlain(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  memberships: Memberships,
  target: SetTarget,
  node: number,
): number {
  if (!isWithin(scratch, 1, 1)) return CHECK_GENERAL;
  return visitSets(scratch, reader, model, memberships, target, node, reader.setsWord(node));
}

/** All relations that a state asks of one object: one of them may be the target. */
function visitObject(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  memberships: Memberships,
  target: SetTarget,
  entity: number,
  state: HotState,
): number {
  const { actions, relations } = state;
  if (!isWithin(scratch, state.weight, relations.length)) return CHECK_GENERAL;
  if (entity === target.entity && state.usersets.has(target.relation)) return CHECK_ALLOWED;
  const count = reader.readObject(entity, scratch.object);
  // An object of many nodes is asked by relation.
  const end = count < 0 ? relations.length : count * OBJECT_STRIDE;
  for (let at = 0; at < end; at += count < 0 ? 1 : OBJECT_STRIDE) {
    const relation = (count < 0 ? relations[at] : scratch.object[at + OBJECT_RELATION]) as number;
    const action = relation < actions.length ? (actions[relation] as number) : 0;
    if (action === 0) continue;
    const node =
      count < 0 ? reader.nodeId(entity, relation) : (scratch.object[at + OBJECT_NODE] as number);
    if (node === 0) continue;
    const sets = count < 0 ? reader.setsWord(node) : (scratch.object[at + OBJECT_SETS] as number);
    if (sets === 0) continue;
    if ((action & 1) !== 0) {
      const code = visitSets(scratch, reader, model, memberships, target, node, sets);
      if (code !== CHECK_CONTINUE) return code;
    }
    if (action > 1 && !walk(scratch, reader, model, node, sets, action >> 1)) return CHECK_GENERAL;
  }
  return CHECK_CONTINUE;
}

/**
 * Visits the usersets and objects that a node holds. The target is searched for first: that takes one lookup, however
 * long the list.
 */
function visitSets(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  memberships: Memberships,
  target: SetTarget,
  node: number,
  word: number,
): number {
  if (word === 0) return CHECK_CONTINUE;
  if ((word & WORD_LIST) === 0) {
    return visitSet(scratch, reader, model, memberships, target, node, word);
  }
  const named = visitNamed(scratch, reader, model, target.node, node, word);
  if (named !== CHECK_CONTINUE) return named;
  const everyone = visitNamed(scratch, reader, model, target.wildcardNode, node, word);
  if (everyone !== CHECK_CONTINUE) return everyone;
  const count = reader.readWord(word, scratch.chunk);
  scratch.steps -= count;
  if (count < 0) return CHECK_GENERAL;
  for (let i = 0; i < count; i++) {
    const set = scratch.chunk[i] as number;
    const code = visitSet(scratch, reader, model, memberships, target, node, set);
    if (code !== CHECK_CONTINUE) return code;
  }
  return CHECK_CONTINUE;
}

/** Whether a list names `subject`, the target or the wildcard that includes it; 0 is neither. */
function visitNamed(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  subject: number,
  node: number,
  word: number,
): number {
  if (subject === 0) return CHECK_CONTINUE;
  return visitListed(scratch, reader, model, node, word, subject);
}

/** Visits one of them: the target, a group that the target's memberships decide, or one whose own sets are visited. */
function visitSet(
  scratch: HotScratch,
  reader: TupleReader,
  model: HotModel,
  memberships: Memberships,
  target: SetTarget,
  node: number,
  entry: number,
): number {
  const child = entry & EDGE_NODE_MASK;
  if (entry >= EDGE_QUALIFIED || model.isPartial) {
    const code = entryHolds(scratch, reader, model, node, entry);
    if (code !== CHECK_ALLOWED) return code;
  }
  if (child === target.node || child === target.wildcardNode) return CHECK_ALLOWED;
  const relation = reader.relationOf(child);
  if (relation === 0) return CHECK_CONTINUE; // another object, or the wildcard of others
  // Two names would have two lists of memberships, of which making one may move the other.
  const height = target.wildcardNode === 0 ? memberships.summaryOf(child) : SUMMARY_OPEN;
  if (height !== SUMMARY_OPEN) {
    if (!target.isMembershipKnown) {
      target.isMembershipKnown = true;
      target.membershipsAt =
        target.node === 0 ? MEMBERSHIPS_NONE : memberships.membershipsOf(target.node);
    }
    if (target.node === 0 || target.membershipsAt !== MEMBERSHIPS_NONE) {
      scratch.weight += height;
      return target.node !== 0 && isMember(memberships.arena, target.membershipsAt, child)
        ? CHECK_ALLOWED
        : CHECK_CONTINUE;
    }
  }
  const entity = reader.entityOf(child);
  const kind = model.single(reader.namespaceOf(entity), relation);
  if (kind < 0 || scratch.top >= STACK_MAX - 1) return CHECK_GENERAL;
  scratch.stackId[scratch.top] = kind === HOT_PLAIN ? child : entity;
  scratch.stackKind[scratch.top++] = kind;
  return CHECK_CONTINUE;
}
