import {
  COST_PER_READ,
  CostMeter,
  EVALUATION_COST_MAX,
  readsOfCost,
} from '../../model/cel/cel-meter.ts';
import {
  CONDITION_FALSE,
  CONDITION_TRUE,
  type LazyContext,
  type PreparedCondition,
} from '../../model/conditions/conditions.ts';
import {
  expiresAtMsOf,
  QUALIFIED_CONDITION,
  QUALIFIED_HIGH,
  QUALIFIED_LOW,
  type TupleReader,
} from '../../model/tuple-reader.ts';
import { type ConditionCache, UNDETERMINED, FALSE, TRUE, type Value } from '../bound/scope.ts';

/** Words of an edge's qualifier, at most; longer parameters are looked up by their text. */
const WORDS_MAX = 64;
/** Conditions with their parameters that are found by their words; a power of two. */
const SLOTS = 1024;

/** About the bytes of a slot, and those that are prepared for it of each byte of its parameters. */
const BYTES_PER_SLOT = 256;
const BYTES_PER_WORD_BYTE = 12;
/** Qualifier of the current edge. */
const words = new Uint32Array(WORDS_MAX);

/** `HotConditions.valueOf` of an edge that only the general evaluation can decide. */
export const VALUE_GENERAL = 3;

type ConditionSlot = {
  /** Condition's name id, bytes of the parameters and these, as the index has them. */
  readonly words: Uint32Array;
  readonly name: string;
  readonly isDeclared: boolean;
  readonly prepared: PreparedCondition;
  /** Revision of the index when the name id was last known to be that of `name`. */
  revision: number;
};

/**
 * Conditions of tuples on the hot path, found by the words of the index without making texts of them, and
 * evaluated with the context of the present query. No state of an evaluation is kept. Belongs to one index
 * and model version.
 */
export class HotConditions {
  readonly #reader: TupleReader;
  readonly #cache: ConditionCache;
  #slots: (ConditionSlot | undefined)[] = [];
  #bytes = 0;
  readonly #meter = new CostMeter(0);
  #context: LazyContext | null = null;
  /** Cost of this check's conditions so far. */
  #spent = 0;
  /** Reads that the last `valueOf` counts as. */
  reads = 0;

  constructor(reader: TupleReader, cache: ConditionCache) {
    this.#reader = reader;
    this.#cache = cache;
  }

  /** About what it remembers takes. */
  get bytes(): number {
    return this.#bytes + this.#slots.length * 8;
  }

  /** Another check begins. null: it has no context, so that no condition is decided. */
  begin(context: LazyContext | null): void {
    this.#context = context;
    this.#spent = 0;
  }

  /**
   * The value of an edge with a condition, as `Scope.qualify` gives it; VALUE_GENERAL where `readsLeft`, or what one
   * check may spend on conditions without a pause, is not enough. Hot.
   */
  valueOf(
    node: number,
    subject: number,
    nowMs: number,
    readsLeft: number,
  ): Value | typeof VALUE_GENERAL {
    this.reads = 0;
    const count = this.#reader.readQualifier(node, subject, words);
    if (count < 0) return this.#valueOfText(node, subject, nowMs, readsLeft);
    const expiresAtMs = expiresAtMsOf(
      words[QUALIFIED_LOW] as number,
      words[QUALIFIED_HIGH] as number,
    );
    if (nowMs >= expiresAtMs) return FALSE;
    if (this.#context === null) return UNDETERMINED;
    const { isDeclared, prepared } = this.#slotOf(count, node, subject);
    return this.#evaluate(prepared, isDeclared, readsLeft);
  }

  #valueOfText(
    node: number,
    subject: number,
    nowMs: number,
    readsLeft: number,
  ): Value | typeof VALUE_GENERAL {
    const { expiresAtMs, conditionName, conditionParams } = this.#reader.qualifier(node, subject);
    if (nowMs >= expiresAtMs) return FALSE;
    if (this.#context === null) return UNDETERMINED;
    const prepared = this.#cache.get(conditionName, conditionParams);
    return this.#evaluate(prepared, this.#cache.isDeclared(conditionName), readsLeft);
  }

  #evaluate(
    prepared: PreparedCondition,
    isDeclared: boolean,
    readsLeft: number,
  ): Value | typeof VALUE_GENERAL {
    const context = this.#context?.value();
    if (context === undefined) return UNDETERMINED;
    if (!isDeclared) return valueOfOutcome(prepared(context));
    // An evaluation cannot be interrupted: all of one check together are as long as one of the general path's.
    const limit = Math.min(readsLeft * COST_PER_READ, EVALUATION_COST_MAX - this.#spent);
    const meter = this.#meter;
    meter.reset(limit);
    const value = valueOfOutcome(prepared(context, meter));
    if (meter.isExhausted && limit < EVALUATION_COST_MAX) return VALUE_GENERAL;
    const spent = Math.min(meter.spent, limit);
    this.#spent += spent;
    this.reads = readsOfCost(spent);
    return value;
  }

  /** The condition of the first `count` words. */
  #slotOf(count: number, node: number, subject: number): ConditionSlot {
    let hash = 0;
    for (let i = QUALIFIED_CONDITION; i < count; i++) {
      hash = Math.imul(hash ^ (words[i] as number), 0x9e3779b1);
    }
    const slot = (hash ^ (hash >>> 15)) & (SLOTS - 1);
    const known = this.#slots[slot];
    return known !== undefined && this.#isAt(known, count)
      ? known
      : this.#fill(slot, count, node, subject);
  }

  #isAt(held: ConditionSlot, count: number): boolean {
    const known = held.words;
    if (known.length !== count - QUALIFIED_CONDITION) return false;
    for (let i = 0; i < known.length; i++) {
      if (known[i] !== words[QUALIFIED_CONDITION + i]) return false;
    }
    const { revision } = this.#reader;
    if (held.revision === revision) return true;
    // An id whose last tuple went may be that of another name by now.
    if (this.#reader.nameId(held.name) !== known[0]) return false;
    held.revision = revision;
    return true;
  }

  #fill(slot: number, count: number, node: number, subject: number): ConditionSlot {
    const { conditionName: name, conditionParams } = this.#reader.qualifier(node, subject);
    const held = {
      words: words.slice(QUALIFIED_CONDITION, count),
      name,
      isDeclared: this.#cache.isDeclared(name),
      prepared: this.#cache.get(name, conditionParams),
      revision: this.#reader.revision,
    };
    if (this.#cache.isOff) return held;
    if (this.#slots.length === 0) this.#slots = Array.from({ length: SLOTS });
    this.#bytes += bytesOf(held) - bytesOf(this.#slots[slot]);
    this.#slots[slot] = held;
    return held;
  }
}

function bytesOf(held: ConditionSlot | undefined): number {
  return held === undefined ? 0 : BYTES_PER_SLOT + held.words.byteLength * BYTES_PER_WORD_BYTE;
}

function valueOfOutcome(outcome: number): Value {
  if (outcome === CONDITION_TRUE) return TRUE;
  return outcome === CONDITION_FALSE ? FALSE : UNDETERMINED;
}
