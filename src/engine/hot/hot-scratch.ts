import { OBJECT_STRIDE } from '../../model/tuple-reader.ts';
import type { HotConditions } from './hot-conditions.ts';
import { MEMBERSHIPS_NONE } from './membership-cache.ts';
import { STEPS_UNBOUNDED, type StepMeter } from './step-meter.ts';

/** A power of two: a slot is the upper nine bits of a hash. */
export const TABLE_SLOTS = 512;
export const STACK_MAX = 1024;
const LIST_MAX = 64;
/** Objects with more nodes are asked relation by relation. */
const ANCESTORS_MAX = 12;

/**
 * The working memory of hot evaluations, 17 KiB: of one at a time, and one after the other, so that a thread
 * needs one for all of its indexes. After an evaluation it holds what that one took.
 */
export class HotScratch implements StepMeter {
  readonly chunk = new Uint32Array(LIST_MAX);
  /** The nodes of the object at work. */
  readonly object = new Uint32Array(ANCESTORS_MAX * OBJECT_STRIDE);
  /** An entity, or a node when the kind is HOT_PLAIN, or a table slot when the kind is EXIT. */
  readonly stackId = new Uint32Array(STACK_MAX);
  /** State index, HOT_PLAIN, or EXIT. */
  readonly stackKind = new Int32Array(STACK_MAX);
  readonly tableId = new Uint32Array(TABLE_SLOTS);
  readonly tableKind = new Int32Array(TABLE_SLOTS);
  /** Twice the number of the evaluation that filled the slot, plus 1 while it is on the path. */
  readonly tableMark = new Float64Array(TABLE_SLOTS);
  evaluation = 0;
  steps = STEPS_UNBOUNDED;
  top = 0;
  hasWildcards = false;
  /** Usersets visited, and the height of those that a summary stood for. */
  weight = 0;
  /** The user's memberships in `memberships.arena`, or MEMBERSHIPS_NONE; looked up when first needed. */
  membershipsAt = MEMBERSHIPS_NONE;
  isMembershipKnown = false;
  /** BACKSTOP_ bits of the last evaluation. */
  backstops = 0;
  /** Reads of the last evaluation, for budgets over several. */
  reads = 0;
  weightMax = 0;
  /** By which expiries are decided; NaN: none is. */
  nowMs = Number.NaN;
  readsLimit = 0;
  /** Conditions of the current index. */
  conditions: HotConditions | null = null;
  /** Whether the last evaluation left out a tuple whose condition could not be decided. */
  isUndecided = false;
}
