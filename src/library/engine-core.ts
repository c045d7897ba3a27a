import { TupleIndex } from '../cache/tuple-index.ts';
import {
  BACKSTOP_CYCLE,
  BACKSTOP_DEPTH,
  CHECK_ALLOWED,
  CHECK_DENIED,
  type EvaluationTask,
} from '../engine/bound/evaluator-api.ts';
import { TRUE, UNDETERMINED, type Value } from '../engine/bound/scope.ts';
import { Evaluator } from '../engine/evaluator.ts';
import type { GeneralEvaluator } from '../engine/general-evaluator.ts';
import { OverlayReader } from '../engine/overlay/overlay-reader.ts';
import { parseContext } from '../model/conditions/conditions.ts';
import { isTyped } from '../model/namespace/model-references.ts';
import type { NamespaceModel } from '../model/namespace/namespace-model.ts';
import type { RelationTuple, TupleChange, TupleKey } from '../model/relation-tuple.ts';
import { EMPTY_NAME, WILDCARD_NAME } from '../model/tuple-reader.ts';
import type { Clock } from '../shared/time/clock.ts';
import { checkAdmitted, refuseRepeated } from './admission.ts';
import type { engineOptionsOf } from './checked-options.ts';
import { EngineError } from './engine-error.ts';
import type { EngineQuery, EngineDecision } from './types.ts';

const ALLOWED: EngineDecision = Object.freeze({ allowed: true, undecided: false });
const DENIED: EngineDecision = Object.freeze({ allowed: false, undecided: false });
/** Upper bound of the number of names in any index. */
const NAMES_MAX = 2 ** 22;

const QUERY_MEMBERS = 4;

/** Evaluators and time for one query. */
export type Ground = {
  /** Evaluator over the index and the contextual tuples of the query. */
  readonly evaluator: GeneralEvaluator;
  /** Evaluator over the same tuples, which decides faster if the query has no contextual ones. */
  readonly decider: Pick<GeneralEvaluator, 'startDecision'>;
  readonly nowMs: number;
};

/** The index and the evaluator over it, shared by all methods of an engine. */
export class EngineCore {
  readonly rules: NamespaceModel;
  readonly index: TupleIndex;
  readonly evaluator: Evaluator;
  readonly clock: Clock;
  readonly readsMax: number;
  /** Relations that the model declares, by the ids of namespace and relation; null if any relation may be queried. */
  readonly #named: ReadonlySet<number> | null;

  constructor(rules: NamespaceModel, options: ReturnType<typeof engineOptionsOf>) {
    const { depthMax, readsMax, indexBytesMax, cacheBytesMax, now } = options;
    this.rules = rules;
    // Evaluations run in one slice, so the monotonic clock is never needed.
    this.clock = { nowMs: () => instantOf(now()), monotonicMs: () => 0 };
    this.readsMax = readsMax;
    this.index = new TupleIndex({ bytesMax: indexBytesMax });
    const settings = { depthMax, membershipBytesMax: cacheBytesMax };
    this.evaluator = new Evaluator(this.index, rules, settings, this.clock);
    this.#named = namedRelations(rules, this.index);
  }

  /**
   * Decides the most common check: about a user, with names and ids that tuples have. Undefined if it needs the general
   * evaluation. Hot: names and ids in the index were checked when they were written, and are not checked again.
   */
  decidePlain(query: EngineQuery): EngineDecision | undefined {
    if (typeof query !== 'object' || query === null) return undefined;
    const { namespace, objectId, relation, subject } = query;
    const isText =
      typeof namespace === 'string' &&
      typeof objectId === 'string' &&
      typeof relation === 'string' &&
      typeof subject === 'string';
    if (!isText) return undefined;
    // Queries with other members are not decided here.
    let count = 0;
    for (const _ in query) count += 1;
    if (count !== QUERY_MEMBERS) return undefined;
    return this.#decideIds(namespace, objectId, relation, subject, this.clock.nowMs());
  }

  #decideIds(
    namespace: string,
    objectId: string,
    relation: string,
    userId: string,
    nowMs: number,
  ): EngineDecision | undefined {
    const index = this.index;
    const ofNamespace = index.nameId(namespace);
    const name = index.nameId(relation);
    if (ofNamespace <= WILDCARD_NAME || name <= WILDCARD_NAME) return undefined;
    if (this.#named?.has(ofNamespace * NAMES_MAX + name) === false) return undefined;
    const entity = index.entityId(ofNamespace, objectId);
    const user = index.entityId(EMPTY_NAME, userId);
    if (entity === 0 || user === 0) return undefined;
    const evaluator = this.evaluator;
    const code = evaluator.checkUser(entity, name, user, nowMs, this.readsMax);
    if (code === CHECK_ALLOWED) return ALLOWED;
    return this.#isCertain(code) ? DENIED : undefined;
  }

  /** Decides a check about a user on the hot path; undefined if the result is not certain. */
  decideUser(asked: TupleKey, contextJson: string, nowMs: number): EngineDecision | undefined {
    const { namespace, objectId, relation, subject } = asked;
    if (subject.kind !== 'user') return undefined;
    const index = this.index;
    const ofNamespace = index.nameId(namespace);
    const entity = ofNamespace > 0 ? index.entityId(ofNamespace, objectId) : 0;
    const user = index.entityId(EMPTY_NAME, subject.userId);
    const name = index.nameId(relation);
    if (entity === 0 || name <= 0) return undefined;
    const context = contextJson === '' ? null : { value: () => parseContext(contextJson) };
    const code = this.evaluator.checkUser(entity, name, user, nowMs, this.readsMax, context);
    if (code === CHECK_ALLOWED) return ALLOWED;
    return this.#isCertain(code) ? DENIED : undefined;
  }

  #isCertain(code: number): boolean {
    const evaluator = this.evaluator;
    return code === CHECK_DENIED && !evaluator.isLastUndecided && evaluator.lastBackstops === 0;
  }

  /**
   * Prepares the evaluators and the time for a query. Errors: FIELD_INVALID, TUPLE_NOT_ADMITTED, naming the contextual
   * tuple.
   */
  ground(contextual: readonly RelationTuple[]): Ground {
    const nowMs = this.clock.nowMs();
    const evaluator = this.evaluator;
    if (contextual.length === 0) return { evaluator: evaluator.general, decider: evaluator, nowMs };
    refuseRepeated('options.contextualTuples', contextual);
    checkAdmitted(this.rules, 'options.contextualTuples', contextual);
    const over = this.over(insertsOf(contextual));
    return { evaluator: over, decider: over, nowMs };
  }

  /** Evaluator over the stored tuples with `changes` applied in their order. */
  over(changes: readonly TupleChange[]): GeneralEvaluator {
    return this.evaluator.over(new OverlayReader(this.index, changes));
  }
}

/** Rejects a time that is no finite number: no tuple would ever expire. Errors: FIELD_INVALID. */
function instantOf(nowMs: number): number {
  if (Number.isFinite(nowMs)) return nowMs;
  const field = 'options.now';
  throw new EngineError('FIELD_INVALID', `${field}: must return milliseconds`, { field });
}

function namedRelations(rules: NamespaceModel, index: TupleIndex): ReadonlySet<number> | null {
  if (!isTyped(rules)) return null;
  const named = new Set<number>();
  for (const [namespace, relations] of rules.namespaces) {
    const id = index.pinName(namespace);
    for (const relation of relations.keys()) named.add(id * NAMES_MAX + index.pinName(relation));
  }
  return named;
}

/** Changes that insert tuples over an index. */
export function insertsOf(tuples: readonly RelationTuple[]): TupleChange[] {
  return tuples.map((tuple) => ({ op: 'insert', tuple }));
}

/** Runs a check to its end. Errors: those of the task. */
export function decisionOf(task: EvaluationTask<Value>): EngineDecision {
  const value = finished(task);
  if (value === TRUE) return ALLOWED;
  if (value !== UNDETERMINED) return DENIED;
  const { backstops } = task;
  const reason =
    (backstops & BACKSTOP_DEPTH) !== 0
      ? 'depth'
      : (backstops & BACKSTOP_CYCLE) !== 0
        ? 'cycle'
        : 'condition';
  return { allowed: false, undecided: true, reason };
}

/** Runs a task to its end. Errors: those of the task. */
export function finished<T>(task: EvaluationTask<T>): T {
  while (task.run(Infinity) === 'more') continue;
  return task.result();
}
