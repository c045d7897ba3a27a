import {
  COST_PER_READ,
  CostMeter,
  EVALUATION_COST_MAX,
  readsOfCost,
} from '../../model/cel/cel-meter.ts';
import {
  CONDITION_FALSE,
  CONDITION_TRUE,
  type ConditionContext,
  type ConditionOutcome,
  parseContext,
  prepareCondition,
  type PreparedCondition,
} from '../../model/conditions/conditions.ts';
import { prepareDeclaredCondition } from '../../model/conditions/declared-condition.ts';
import type { ConditionDeclarations } from '../../model/conditions/model-conditions.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import {
  EDGE_ABSENT,
  EDGE_NODE_MASK,
  EDGE_PLAIN,
  EDGE_QUALIFIED,
  type EdgeQualifier,
  EMPTY_NAME,
  type TupleReader,
  WILDCARD_NAME,
  WILDCARD_NODE,
} from '../../model/tuple-reader.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { BoundModel, Op } from './bound-model.ts';

/** The three values of a decision; also what a stored edge contributes. UNDETERMINED answers deny. */
export const FALSE = 0;
export const TRUE = 1;
export const UNDETERMINED = 2;
export type Value = 0 | 1 | 2;

const ENTRIES_PER_READ_SHIFT = 6;
const CONDITIONS_CACHED_MAX = 1024;
/** Characters of the names and parameters of those, at most: what is prepared of them takes some ten times more. */
const CONDITIONS_CACHED_CHARACTERS_MAX = 1 << 20;
const BYTES_PER_CHARACTER = 12;
/** Entries of a list that one step reads. */
const ENTRIES_PER_STEP = 256;
const chunk = new Uint32Array(ENTRIES_PER_STEP);

/** Advice where a project's evaluations exhaust the budget. */
export const RAISE_BUDGET = "raise the project's max_check_reads";

/** Callbacks for the results of a leaf of a rewrite. */
export interface LeafSink {
  /** The subject is in the relation's own tuples, certainly (TRUE) or perhaps (UNDETERMINED). */
  onDirect(value: Value): void;
  /** Another userset; `isWeak` when a condition on the way could not be decided. */
  onChild(entity: number, relation: number, isWeak: boolean): void;
  /** A long list continues: hand these to `Scope.scanRest` in a later step. */
  onRest(node: number, relation: number, withObjects: boolean, cursor: number): void;
}

/** Subject that an evaluation searches for. */
export type Target = {
  /** Node of a concrete user, 0 when no tuple names the user; unused for a userset. */
  readonly userNode: number;
  /**
   * Userset that is searched for, or an object itself (relation 0); entity 0 for a user, NO_ENTITY for an object that
   * no tuple names.
   */
  readonly setEntity: number;
  readonly setRelation: number;
  /** The entity of the typed wildcard that holds an object itself. 0 or absent if none. */
  readonly wildcardEntity?: number | undefined;
  /** Whether no wildcard holds it but that of its own namespace, on exclude sides neither; a user is asked about as ever. */
  readonly isExact?: boolean | undefined;
};

/** `Target.setEntity` of an object that is in no tuple: a typed wildcard holds it all the same. No index has so many entities. */
export const NO_ENTITY = 0xffff_ffff;

/** Prepared conditions by name and parameters, shared by the evaluations of one evaluator. */
export class ConditionCache {
  readonly #prepared = new Map<string, PreparedCondition>();
  readonly #declared: ConditionDeclarations;
  readonly #entriesMax: number;
  #characters = 0;

  /** `declared`: those of the model, beside the built-in ones. With `isOff` it remembers nothing. */
  constructor(isOff = false, declared: ConditionDeclarations = new Map()) {
    this.#declared = declared;
    this.#entriesMax = isOff ? 0 : CONDITIONS_CACHED_MAX;
  }

  /** Whether the model declares the condition: then evaluating it has a cost. */
  isDeclared(name: string): boolean {
    return this.#declared.has(name);
  }

  /** Whether it remembers nothing. */
  get isOff(): boolean {
    return this.#entriesMax === 0;
  }

  /** About what it takes. */
  get bytes(): number {
    return this.#characters * BYTES_PER_CHARACTER;
  }

  get(name: string, params: string): PreparedCondition {
    const key = `${name} ${params}`;
    let condition = this.#prepared.get(key);
    if (condition === undefined) {
      const declaration = this.#declared.get(name);
      condition =
        declaration === undefined
          ? prepareCondition(name, params)
          : prepareDeclaredCondition(declaration, params);
      this.#characters += key.length;
      const isFull =
        this.#prepared.size >= this.#entriesMax ||
        this.#characters > CONDITIONS_CACHED_CHARACTERS_MAX;
      if (isFull) {
        this.#prepared.clear();
        this.#characters = key.length;
      }
      if (this.#entriesMax > 0) this.#prepared.set(key, condition);
    }
    return condition;
  }
}

/**
 * Everything that one request's evaluations share: the index at one revision, one `now`, the
 * context, the read budget and the backstops that fired.
 */
export class Scope {
  readonly reader: TupleReader;
  readonly model: BoundModel;
  readonly clock: Clock;
  readonly depthMax: number;
  readonly nowMs: number;
  backstops = 0;
  /** A cycle was solved of so many usersets that the depth bound may have decided some of them. */
  hasDeepCycle = false;
  reads = 0;
  /** Advice about an exhausted budget, for its message. */
  budgetAdvice = RAISE_BUDGET;
  /** Expiries of the tuples that are read are noted here, in milliseconds, while there is a set. */
  notedExpiries: Set<number> | undefined;
  /** Entries of lists of usersets that were read, whatever they count. */
  entriesSeen = 0;
  /** Whether a tuple was met that could not be decided, or something beyond the depth bound. */
  hasUndecided = false;
  /** Visits that make no whole read yet. */
  #partialReads = 0;
  readonly #readsMax: number;
  readonly #subject: string;
  readonly #conditions: ConditionCache;
  readonly #context: ConditionContext | undefined;
  readonly #hasWildcards: boolean;
  /** Values of the model's conditions, by name and parameters: each is paid for once a request. */
  #decided: Map<string, Value> | undefined;
  #meter: CostMeter | undefined;

  constructor(init: {
    readonly reader: TupleReader;
    readonly model: BoundModel;
    readonly clock: Clock;
    readonly conditions: ConditionCache;
    readonly depthMax: number;
    readonly nowMs: number;
    readonly readBudget: number;
    readonly contextJson: string;
    /** `namespace#relation`, for the message of an exhausted budget. */
    readonly relationText: string;
  }) {
    this.reader = init.reader;
    this.model = init.model;
    this.clock = init.clock;
    this.depthMax = init.depthMax;
    this.nowMs = init.nowMs;
    this.#readsMax = init.readBudget;
    this.#subject = init.relationText;
    this.#conditions = init.conditions;
    // A request without context decides no condition, whatever the tuple's parameters are.
    this.#context = init.contextJson === '' ? undefined : parseContext(init.contextJson);
    this.#hasWildcards = init.reader.reverseCount(WILDCARD_NODE) > 0;
  }

  /** Whether the budget ran out. */
  get isExhausted(): boolean {
    return this.reads > this.#readsMax;
  }

  /** Counts reads. Errors: BUDGET_EXHAUSTED. */
  charge(reads: number): void {
    if (DEBUG_ASSERTIONS) this.#assertMayRead(reads);
    this.reads += reads;
    if (this.reads > this.#readsMax) {
      throw new AppError<AuthzReason>(
        'BUDGET_EXHAUSTED',
        `evaluation of ${this.#subject} exceeded the read budget of ${this.#readsMax}: ${this.budgetAdvice}`,
        { relation: this.#subject, limit: String(this.#readsMax) },
      );
    }
  }

  /** Takes back reads of usersets that come to nothing here, as a check reads them again. */
  uncharge(reads: number): void {
    this.reads -= reads;
  }

  /** Counts visited lists of objects in a row, and their entries: 64 of them are a read. Errors: BUDGET_EXHAUSTED. */
  chargePartialReads(count: number): void {
    this.#partialReads += count;
    if (this.#partialReads >> ENTRIES_PER_READ_SHIFT === 0) return;
    this.charge(this.#partialReads >> ENTRIES_PER_READ_SHIFT);
    this.#partialReads &= (1 << ENTRIES_PER_READ_SHIFT) - 1;
  }

  #assertMayRead(reads: number): void {
    assert(Number.isSafeInteger(reads) && reads >= 0, 'reads are counted up');
    assert(this.reads <= this.#readsMax, 'nothing is read once the budget has run out');
  }

  /** The value of a qualified edge now: FALSE when expired or decided false, UNDETERMINED when undecided. */
  qualify(node: number, subject: number): Value {
    const qualifier = this.reader.qualifier(node, subject);
    if (this.nowMs >= qualifier.expiresAtMs) return FALSE;
    this.notedExpiries?.add(qualifier.expiresAtMs);
    if (qualifier.conditionName === '') return TRUE;
    const value = this.#conditionValue(qualifier);
    if (value === UNDETERMINED) this.hasUndecided = true;
    return value;
  }

  #conditionValue({ conditionName, conditionParams }: EdgeQualifier): Value {
    if (this.#context === undefined) return UNDETERMINED;
    if (this.#conditions.isDeclared(conditionName)) {
      return this.#declared(conditionName, conditionParams, this.#context);
    }
    return valueOfOutcome(this.#conditions.get(conditionName, conditionParams)(this.#context));
  }

  /** A condition of the model, whose cost counts as reads. Errors: BUDGET_EXHAUSTED. */
  #declared(name: string, params: string, context: ConditionContext): Value {
    const key = `${name} ${params}`;
    const decided = (this.#decided ??= new Map());
    let value = decided.get(key);
    if (value !== undefined) return value;
    const affordable = (this.#readsMax - this.reads) * COST_PER_READ;
    const limit = Math.min(affordable, EVALUATION_COST_MAX);
    const meter = (this.#meter ??= new CostMeter(0));
    meter.reset(limit);
    value = valueOfOutcome(this.#conditions.get(name, params)(context, meter));
    // A condition that the budget cut short has no value; one that its own bound cut short is undecided.
    const isOverBudget = meter.isExhausted && limit < EVALUATION_COST_MAX;
    this.charge(readsOfCost(isOverBudget ? limit + 1 : Math.min(meter.spent, limit)));
    decided.set(key, value);
    return value;
  }

  /** Value of the stored tuple (node, subject); FALSE when there is none. */
  edge(node: number, subject: number): Value {
    const edge = this.reader.edge(node, subject);
    if (edge === EDGE_ABSENT) return FALSE;
    return edge === EDGE_PLAIN ? TRUE : this.qualify(node, subject);
  }

  /** Value of an entry of a list of sets or users of `node`. */
  entryValue(node: number, entry: number): Value {
    return entry >= EDGE_QUALIFIED ? this.qualify(node, entry & EDGE_NODE_MASK) : TRUE;
  }

  /** Whether an entity is the typed wildcard of a namespace: no walk leads to an object by it. */
  isWildcard(entity: number): boolean {
    return this.reader.hasTypedWildcards && this.reader.namespaceOf(entity) === WILDCARD_NAME;
  }

  /**
   * Whether a subject is the target, or a typed wildcard that includes it: of its namespace for an object itself. Any
   * typed wildcard includes a userset, but only on exclude sides: a set counts as held there by whatever might hold
   * its members. No wildcard includes an exact userset.
   */
  isTarget(target: Target, entity: number, relation: number, isExcluding: boolean): boolean {
    if (target.setEntity === 0 || entity === 0) return false;
    if (entity === target.setEntity && relation === target.setRelation) return true;
    if (relation !== EMPTY_NAME) return false;
    if (target.setRelation === EMPTY_NAME) return entity === target.wildcardEntity;
    return isExcluding && target.isExact !== true && this.isWildcard(entity);
  }

  /**
   * The value of the target itself in the tuples of `node`. A wildcard holds sets only when excluding, and no exact
   * one.
   */
  #direct(node: number, target: Target, isExcluding: boolean): Value {
    let value: Value = FALSE;
    if (target.setEntity === 0) {
      if (target.userNode !== 0) value = this.edge(node, target.userNode);
    } else if (!isExcluding || target.isExact === true) {
      return FALSE;
    }
    if (value === TRUE || !this.#hasWildcards) return value;
    const wildcard = this.edge(node, WILDCARD_NODE);
    return wildcard === FALSE ? value : wildcard;
  }

  /**
   * One step of a leaf: the tuples of (entity, relation), its computed relations, and the objects
   * that its tuplesets reference. Counts one read a list and one per 64 entries.
   */
  scanLeaf(
    entity: number,
    relation: number,
    leaf: Op,
    target: Target,
    isExcluding: boolean,
    sink: LeafSink,
  ): void {
    this.charge(listsOf(leaf));
    if (leaf.hasThis && this.scanThis(entity, relation, target, isExcluding, sink)) return;
    for (let i = 0; i < leaf.computed.length; i++) {
      sink.onChild(entity, leaf.computed[i] as number, false);
    }
    this.scanWalks(entity, leaf, sink);
  }

  /**
   * Scans the tuples of (entity, relation) alone: true if one of them names the target for certain. Counts entries, as
   * visits if `isPartial`, and not the list.
   */
  scanThis(
    entity: number,
    relation: number,
    target: Target,
    isExcluding: boolean,
    sink: LeafSink,
    isPartial = false,
  ): boolean {
    const node = this.reader.nodeId(entity, relation);
    if (node === 0) return false;
    const value = this.#direct(node, target, isExcluding);
    if (value !== FALSE) sink.onDirect(value);
    if (value === TRUE) return true;
    // An object itself holds nobody; as a target it is found by its own pair.
    this.#scanSets(node, -1, target.setEntity !== 0, sink, isPartial);
    return false;
  }

  /**
   * Scans the objects that the tuplesets of a leaf reference. Counts entries, as visits if `isPartial`, and not the
   * lists.
   */
  scanWalks(entity: number, leaf: Op, sink: LeafSink, isPartial = false): void {
    for (let i = 0; i < leaf.walks.length; i += 2) {
      const node = this.reader.nodeId(entity, leaf.walks[i] as number);
      if (node !== 0) this.#scanSets(node, leaf.walks[i + 1] as number, false, sink, isPartial);
    }
  }

  #scanSets(
    node: number,
    relation: number,
    withObjects: boolean,
    sink: LeafSink,
    isPartial: boolean,
  ): void {
    const { reader } = this;
    const total = reader.setCount(node);
    if (total === 0) return;
    this.entriesSeen += Math.min(total, ENTRIES_PER_STEP);
    if (isPartial) this.chargePartialReads(Math.min(total, ENTRIES_PER_STEP));
    else this.charge(total >> ENTRIES_PER_READ_SHIFT);
    this.scanRest(node, relation, withObjects, 0, sink);
  }

  /** The next entries of a list that `scanLeaf` began; its reads are already counted. */
  scanRest(
    node: number,
    relation: number,
    withObjects: boolean,
    cursor: number,
    sink: LeafSink,
  ): void {
    const { reader } = this;
    // Sinks only note what they are given, so the shared chunk is not overwritten meanwhile.
    const count = reader.readSets(node, cursor, chunk, 0);
    const { nextCursor } = reader;
    for (let i = 0; i < count; i++) {
      const entry = chunk[i] as number;
      const value = this.entryValue(node, entry);
      if (value === FALSE) continue;
      const subject = entry & EDGE_NODE_MASK;
      const next = relation < 0 ? reader.relationOf(subject) : relation;
      if (next === 0 && !withObjects) continue;
      const entity = reader.entityOf(subject);
      if (relation >= 0 && this.isWildcard(entity)) continue;
      sink.onChild(entity, next, value === UNDETERMINED);
    }
    if (nextCursor >= 0) sink.onRest(node, relation, withObjects, nextCursor);
  }
}

/** Count of the lists that a leaf looks up. */
export function listsOf(leaf: Op): number {
  return 1 + (leaf.walks.length >> 1);
}

function valueOfOutcome(outcome: ConditionOutcome): Value {
  if (outcome === CONDITION_TRUE) return TRUE;
  return outcome === CONDITION_FALSE ? FALSE : UNDETERMINED;
}
