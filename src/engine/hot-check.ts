import {
  EDGE_ABSENT,
  EDGE_PLAIN,
  EDGE_QUALIFIED,
  type TupleReader,
  WILDCARD_NODE,
} from '../model/tuple-reader.ts';
import { type ClosureCache, CLOSURE_NONE, SUMMARY_OPEN } from './closure-cache.ts';
import { BACKSTOP_CYCLE, CHECK_ALLOWED, CHECK_DENIED, CHECK_GENERAL } from './evaluator-api.ts';
import { HOT_PLAIN, type HotModel, type HotState } from './hot-model.ts';

/** Usersets that one hot evaluation visits at most; longer ones take the general path. */
export const HOT_NODES_MAX = 250;
const TABLE_SLOTS = 512;
const TABLE_MASK = TABLE_SLOTS - 1;
const STACK_MAX = 1024;
const LIST_MAX = 64;
/** Objects with more nodes are asked relation by relation. */
const CHAIN_MAX = 12;

const chunk = new Uint32Array(LIST_MAX);
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
  closures: ClosureCache,
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
  return search(reader, model, closures, userNode, nodesMax, readsMax);
}

/** Works off the stack, each userset once; exit marks tell what is still on the path. */
function search(
  reader: TupleReader,
  model: HotModel,
  closures: ClosureCache,
  userNode: number,
  nodesMax: number,
  readsMax: number,
): number {
  const mark = ++evaluation * 2;
  let sawCycle = false;
  while (top > 0) {
    top--;
    const id = stackId[top] as number;
    const kind = stackKind[top] as number;
    if (kind === EXIT) {
      tableMark[id] = mark;
      continue;
    }
    let slot = (Math.imul(id, 0x9e3779b1) ^ Math.imul(kind, 0x85ebca77)) >>> 23;
    let state = tableMark[slot] as number;
    while (state >= mark && (tableId[slot] !== id || tableKind[slot] !== kind)) {
      slot = (slot + 1) & TABLE_MASK;
      state = tableMark[slot] as number;
    }
    const compound = model.states[kind];
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
    // No path is longer than all usersets that were visited.
    weight += compound === undefined ? 1 : compound.weight;
    reads += compound === undefined ? 1 : compound.relations.length;
    if (weight > nodesMax || reads > readsMax) return CHECK_GENERAL;
    const exit = top++;
    const code =
      compound === undefined
        ? visitOwn(reader, model, closures, id, userNode)
        : visitObject(reader, model, closures, id, compound, userNode);
    if (code === CHECK_ALLOWED && weight > nodesMax) return CHECK_GENERAL;
    if (code !== CHECK_CONTINUE) return code;
    if (top === exit + 1) {
      top = exit; // nothing below: it never was on a path
      tableMark[slot] = mark;
    } else {
      stackId[exit] = slot;
      stackKind[exit] = EXIT;
      tableMark[slot] = mark + 1;
    }
  }
  if (weight > nodesMax) return CHECK_GENERAL;
  if (sawCycle) backstops = BACKSTOP_CYCLE;
  return CHECK_DENIED;
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
  let node = reader.firstNodeOf(entity);
  for (let count = 0; node !== 0; node = reader.nextNodeOf(node)) {
    if (++count > CHAIN_MAX)
      return visitRelations(reader, model, closures, entity, state, userNode);
    const relation = reader.relationOf(node);
    const action = relation < actions.length ? (actions[relation] as number) : 0;
    if (action === 0) continue;
    const code = act(reader, model, closures, node, action, userNode);
    if (code !== CHECK_CONTINUE) return code;
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
    const code = act(reader, model, closures, node, state.actions[relation] as number, userNode);
    if (code !== CHECK_CONTINUE) return code;
  }
  return CHECK_CONTINUE;
}

function act(
  reader: TupleReader,
  model: HotModel,
  closures: ClosureCache,
  node: number,
  action: number,
  userNode: number,
): number {
  if ((action & 1) === 1) {
    const code = visitOwn(reader, model, closures, node, userNode);
    if (code !== CHECK_CONTINUE) return code;
  }
  return action > 1 ? walk(reader, model, node, action >> 1) : CHECK_CONTINUE;
}

/** The tuples of one node: the user among them, and the usersets to visit. */
function visitOwn(
  reader: TupleReader,
  model: HotModel,
  closures: ClosureCache,
  node: number,
  userNode: number,
): number {
  if (userNode !== 0) {
    const edge = reader.edge(node, userNode);
    if (edge !== EDGE_ABSENT) return edge === EDGE_PLAIN ? CHECK_ALLOWED : CHECK_GENERAL;
  }
  if (hasWildcards) {
    const wildcard = reader.edge(node, WILDCARD_NODE);
    if (wildcard !== EDGE_ABSENT) return wildcard === EDGE_PLAIN ? CHECK_ALLOWED : CHECK_GENERAL;
  }
  const count = reader.setCount(node);
  if (count === 0) return CHECK_CONTINUE;
  if (count > LIST_MAX || top + count >= STACK_MAX) return CHECK_GENERAL;
  reader.readSets(node, 0, chunk, 0);
  for (let i = 0; i < count; i++) {
    const child = chunk[i] as number;
    if (child >= EDGE_QUALIFIED) return CHECK_GENERAL;
    const relation = reader.relationOf(child);
    if (relation === 0) continue; // an object itself holds nobody
    const entity = reader.entityOf(child);
    const kind = model.single(reader.namespaceOf(entity), relation);
    if (kind < 0) return CHECK_GENERAL;
    if (kind === HOT_PLAIN) {
      const height = closures.summaryOf(child);
      if (height !== SUMMARY_OPEN) {
        if (!isClosureKnown) {
          closureAt = closures.closureOf(userNode);
          isClosureKnown = true;
        }
        if (userNode === 0 || closureAt !== CLOSURE_NONE) {
          weight += height;
          if (userNode !== 0 && isInClosure(closures.arena, child)) return CHECK_ALLOWED;
          continue;
        }
      }
    }
    stackId[top] = kind === HOT_PLAIN ? child : entity;
    stackKind[top++] = kind;
  }
  return CHECK_CONTINUE;
}

/** The objects that a tupleset names. */
function walk(reader: TupleReader, model: HotModel, node: number, target: number): number {
  const count = reader.setCount(node);
  if (count === 0) return CHECK_CONTINUE;
  if (count > LIST_MAX || top + count >= STACK_MAX) return CHECK_GENERAL;
  reader.readSets(node, 0, chunk, 0);
  for (let i = 0; i < count; i++) {
    const child = chunk[i] as number;
    if (child >= EDGE_QUALIFIED) return CHECK_GENERAL;
    const entity = reader.entityOf(child);
    const kind = model.ofTarget(target, reader.namespaceOf(entity));
    if (kind < 0) return CHECK_GENERAL;
    stackId[top] = entity;
    stackKind[top++] = kind;
  }
  return CHECK_CONTINUE;
}

function isInClosure(arena: Uint32Array, node: number): boolean {
  const end = closureAt + (arena[closureAt] as number);
  for (let i = closureAt + 1; i <= end; i++) if (arena[i] === node) return true;
  return false;
}
