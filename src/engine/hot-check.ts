import {
  EDGE_ABSENT,
  EDGE_NODE_MASK,
  EDGE_PLAIN,
  EDGE_QUALIFIED,
  type TupleReader,
  WILDCARD_NODE,
} from '../model/tuple-reader.ts';
import { type BoundModel, THIS_OP } from './bound-model.ts';
import { BACKSTOP_CYCLE, CHECK_ALLOWED, CHECK_DENIED, CHECK_GENERAL } from './evaluator-api.ts';

/** Usersets that one hot evaluation visits at most; longer ones take the general path. */
export const HOT_NODES_MAX = 96;
const TABLE_SLOTS = 512;
const TABLE_MASK = TABLE_SLOTS - 1;
const STACK_MAX = 1024;
const LIST_MAX = 64;

const chunk = new Uint32Array(LIST_MAX);
const stackEntity = new Uint32Array(STACK_MAX);
const stackRelation = new Int32Array(STACK_MAX);
/** Exit marks on the stack: the table slot of the userset whose descendants are done. */
const EXIT = -1;
const tableEntity = new Uint32Array(TABLE_SLOTS);
const tableRelation = new Uint32Array(TABLE_SLOTS);
/** Twice the number of the evaluation that filled the slot, plus 1 while it is on the path. */
const tableMark = new Float64Array(TABLE_SLOTS);
let evaluation = 0;

/** Of the last `checkUserHot` on this thread: BACKSTOP_ bits. */
export let hotBackstops = 0;
/** Of the last `checkUserHot` on this thread: reads, unless it said CHECK_GENERAL. */
export let hotReads = 0;

/**
 * The ordinary check of a concrete user: depth first over usersets made of unions, at most
 * HOT_NODES_MAX of them. Hot: no allocation, no closure, no exception. Answers only what needs
 * nothing else: an intersection, an exclusion, a condition, an expiry, a long list, a depth bound
 * below the number of usersets visited or a budget that could run out give CHECK_GENERAL.
 * Scratch is shared by all evaluators of the thread: one evaluation runs at a time.
 */
export function checkUserHot(
  reader: TupleReader,
  model: BoundModel,
  entity: number,
  relation: number,
  userNode: number,
  nodesMax: number,
  readsMax: number,
): number {
  hotBackstops = 0;
  hotReads = 0;
  if (entity === 0 || relation <= 0) return CHECK_DENIED;
  const hasWildcards = reader.reverseCount(WILDCARD_NODE) > 0;
  const mark = ++evaluation * 2;
  let reads = 0;
  let visited = 0;
  let top = 1;
  let sawCycle = false;
  stackEntity[0] = entity;
  stackRelation[0] = relation;
  while (top > 0) {
    top--;
    const e = stackEntity[top] as number;
    const r = stackRelation[top] as number;
    if (r === EXIT) {
      tableMark[e] = mark;
      continue;
    }
    let slot = (Math.imul(e, 0x9e3779b1) ^ Math.imul(r, 0x85ebca77)) >>> 23;
    let state = tableMark[slot] as number;
    while (state >= mark && (tableEntity[slot] !== e || tableRelation[slot] !== r)) {
      slot = (slot + 1) & TABLE_MASK;
      state = tableMark[slot] as number;
    }
    if (state >= mark) {
      if (state > mark) sawCycle = true;
      continue;
    }
    if (++visited > nodesMax) return CHECK_GENERAL;
    tableEntity[slot] = e;
    tableRelation[slot] = r;
    const program = model.programOf(reader.namespaceOf(e), r);
    if (program !== undefined && !program.isSimple) return CHECK_GENERAL;
    const leaf = program === undefined ? THIS_OP : program.root;
    reads += 1 + (leaf.walks.length >> 1);
    const exit = top;
    top++;
    if (leaf.hasThis) {
      const node = reader.nodeId(e, r);
      if (node !== 0) {
        if (reader.userCount(node) > 0) {
          const edge = userNode === 0 ? EDGE_ABSENT : reader.edge(node, userNode);
          if (edge === EDGE_PLAIN) {
            hotReads = reads;
            return reads > readsMax ? CHECK_GENERAL : CHECK_ALLOWED;
          }
          if (edge !== EDGE_ABSENT) return CHECK_GENERAL;
          if (hasWildcards) {
            const wildcard = reader.edge(node, WILDCARD_NODE);
            if (wildcard === EDGE_PLAIN) {
              hotReads = reads;
              return reads > readsMax ? CHECK_GENERAL : CHECK_ALLOWED;
            }
            if (wildcard !== EDGE_ABSENT) return CHECK_GENERAL;
          }
        }
        const count = reader.setCount(node);
        if (count > 0) {
          if (count > LIST_MAX || top + count >= STACK_MAX) return CHECK_GENERAL;
          reader.readSets(node, 0, chunk, 0);
          for (let i = 0; i < count; i++) {
            const entry = chunk[i] as number;
            if (entry >= EDGE_QUALIFIED) return CHECK_GENERAL;
            const next = reader.relationOf(entry);
            if (next === 0) continue;
            stackEntity[top] = reader.entityOf(entry);
            stackRelation[top++] = next;
          }
        }
      }
    }
    const { walks, computed } = leaf;
    for (let w = 0; w < walks.length; w += 2) {
      const node = reader.nodeId(e, walks[w] as number);
      if (node === 0) continue;
      const count = reader.setCount(node);
      if (count === 0) continue;
      if (count > LIST_MAX || top + count >= STACK_MAX) return CHECK_GENERAL;
      reader.readSets(node, 0, chunk, 0);
      const next = walks[w + 1] as number;
      for (let i = 0; i < count; i++) {
        const entry = chunk[i] as number;
        if (entry >= EDGE_QUALIFIED) return CHECK_GENERAL;
        stackEntity[top] = reader.entityOf(entry & EDGE_NODE_MASK);
        stackRelation[top++] = next;
      }
    }
    if (top + computed.length >= STACK_MAX) return CHECK_GENERAL;
    for (let i = 0; i < computed.length; i++) {
      stackEntity[top] = e;
      stackRelation[top++] = computed[i] as number;
    }
    if (top === exit + 1) {
      top = exit; // nothing below: it never was on a path
      tableMark[slot] = mark;
    } else {
      stackEntity[exit] = slot;
      stackRelation[exit] = EXIT;
      tableMark[slot] = mark + 1;
    }
  }
  if (sawCycle) hotBackstops = BACKSTOP_CYCLE;
  hotReads = reads;
  return reads > readsMax ? CHECK_GENERAL : CHECK_DENIED;
}
