import { type LazyContext, parseContext } from '../model/conditions/conditions.ts';
import type { ExpandTree, UsersetRef } from '../model/expand-tree.ts';
import type { NamespaceModel } from '../model/namespace/namespace-model.ts';
import type { CheckQuery } from '../model/relation-tuple.ts';
import { EMPTY_NAME, type TupleReader } from '../model/tuple-reader.ts';
import type { Clock } from '../shared/time/clock.ts';
import { BoundModel } from './bound/bound-model.ts';
import {
  CHECK_ALLOWED,
  CHECK_DENIED,
  CHECK_GENERAL,
  type EvaluationTask,
  type EvaluatorOptions,
} from './bound/evaluator-api.ts';
import { ConditionCache, FALSE, type Scope, TRUE, type Value } from './bound/scope.ts';
import { allowedOf, GeneralEvaluator, guarded } from './general-evaluator.ts';
import { ExpandRun } from './general/expand.ts';
import { ListEntitiesRun, ListObjectsRun } from './general/list-objects-run.ts';
import { exactTargetOf, subjectIdsOf } from './general/subject-set-run.ts';
import { HOT_NODES_MAX } from './hot/hot-check.ts';
import { HotEvaluator } from './hot/hot-evaluator.ts';
import { HotScratch } from './hot/hot-scratch.ts';
import type { Queries } from './hot/read-ahead.ts';
import { Admission } from './overlay/admission.ts';
import { AdmittedReader } from './overlay/admitted-reader.ts';

/** Which objects ListObjects asks for. */
type ObjectsOfUser = {
  readonly namespace: string;
  readonly relation: string;
  readonly userId: string;
};

/**
 * Decisions over one index and one version of its project's model. Built when a shard is loaded or
 * its model changes; O(model). Every evaluation sees the revision at which it started: the caller
 * applies no changes between the slices of a task.
 */
export class Evaluator {
  /** The reader of what counts: the stored tuples, or those that the model admits. */
  readonly #reader: TupleReader;
  /** The reader of all stored tuples, which the hot path filters itself. */
  readonly #stored: TupleReader;
  readonly #model: NamespaceModel;
  readonly #bound: BoundModel;
  /** Shared by evaluators of one index and one model, so that each finds the caches warm. */
  readonly hot: HotEvaluator;
  readonly #options: EvaluatorOptions;
  readonly #clock: Clock;
  /** Checks by the general evaluation alone. */
  readonly general: GeneralEvaluator;
  readonly #conditions: ConditionCache;
  readonly #hotNodesMax: number;
  /** Admission of a model that counts admitted tuples only. */
  readonly #admission: Admission | undefined;

  /**
   * `hot`: that of another evaluator of the same index and model, or memory for a new one, which all
   * evaluators of a thread may share.
   */
  constructor(
    reader: TupleReader,
    model: NamespaceModel,
    options: EvaluatorOptions,
    clock: Clock,
    hot: HotEvaluator | HotScratch = new HotScratch(),
  ) {
    this.#admission = model.admittedOnly === true ? new Admission(model, reader) : undefined;
    this.#reader = admitted(reader, this.#admission);
    this.#stored = reader;
    this.#model = model;
    this.#bound = new BoundModel(model, reader);
    this.hot =
      hot instanceof HotEvaluator
        ? hot
        : new HotEvaluator(
            reader,
            this.#bound,
            options,
            hot,
            new ConditionCache(options.cachesOff?.includes('conditions'), model.conditions),
            this.#admission ?? null,
          );
    this.#options = options;
    this.#clock = clock;
    this.#conditions = this.hot.conditions;
    this.general = this.#generalOver(this.#reader, this.#conditions);
    this.#hotNodesMax = Math.min(HOT_NODES_MAX, options.depthMax);
  }

  /** BACKSTOP_ bits of the last `checkUser` that did not return CHECK_GENERAL. */
  get lastBackstops(): number {
    return this.hot.lastBackstops;
  }

  /**
   * Bounds the steps (StepMeter) of each later `checkUser`, beyond which it returns CHECK_GENERAL. Also of evaluators
   * that share its caches.
   */
  boundSteps(stepsMax: number): void {
    this.hot.stepsMax = stepsMax;
  }

  /** Steps of the last `checkUser`. */
  get lastSteps(): number {
    return this.hot.lastSteps;
  }

  /** Whether the last `checkUser` met a condition that it could not decide: with a context its answer might be another one. */
  get isLastUndecided(): boolean {
    return this.hot.isLastUndecided;
  }

  /** Reads of the last `checkUser` that did not return CHECK_GENERAL: a batch has a total budget. */
  get lastReads(): number {
    return this.hot.lastReads;
  }

  /**
   * Whether a concrete user holds a relation: CHECK_ALLOWED, CHECK_DENIED, or CHECK_GENERAL when only `startCheckIds`
   * can decide. `entity` and `userEntity` are 0 and `relation` is -1 for names that the index lacks. `context`: null
   * decides no condition; it is read when one is met. Hot: does not allocate unless a condition does, never throws.
   */
  checkUser(
    entity: number,
    relation: number,
    userEntity: number,
    nowMs: number,
    readBudget: number,
    context: LazyContext | null = null,
  ): number {
    const user = this.#stored.userNodeOf(userEntity);
    return this.hot.check(entity, relation, user, this.#hotNodesMax, readBudget, nowMs, context);
  }

  /**
   * Brings what `checkUser` will read for the first `count` queries, at most READ_AHEAD_MAX, into the
   * processor's cache, all at once. A hint: it changes no answer. Hot.
   */
  readAhead(queries: Queries, count: number): void {
    this.hot.readAhead(queries, count);
  }

  /**
   * Whether an exact userset or an object itself holds a relation: as `checkUser`, but a denial is one for certain, so that a
   * condition that could not be decided gives CHECK_GENERAL. All other queries do, too. `context`: as there. Allocates the
   * ids of the set.
   */
  checkExact(
    query: CheckQuery,
    nowMs: number,
    readBudget: number,
    context: LazyContext | null = null,
  ): number {
    const { subject, namespace, objectId } = query;
    if (query.isExact !== true || subject.kind !== 'set') return CHECK_GENERAL;
    const reader = this.#stored;
    const ofNamespace = reader.nameId(namespace);
    const relation = reader.nameId(query.relation);
    const entity = ofNamespace > 0 ? reader.entityId(ofNamespace, objectId) : 0;
    const set = subjectIdsOf(reader, subject);
    // Names absent from the index may still be decided by the model alone.
    const isKnown = entity !== 0 && relation > 0 && set !== undefined;
    const isSame = subject.relation === query.relation && subject.objectId === objectId;
    if (!isKnown || (isSame && subject.namespace === namespace)) return CHECK_GENERAL;
    const target = exactTargetOf(set);
    return this.hot.checkSet(
      entity,
      relation,
      target,
      this.#hotNodesMax,
      readBudget,
      nowMs,
      context,
    );
  }

  /** `checkUser` by names. A denial is one for certain, as that of `checkExact`. */
  #checkNamedUser(
    { namespace, objectId, relation }: CheckQuery,
    userId: string,
    nowMs: number,
    readBudget: number,
    context: LazyContext | null,
  ): number {
    const reader = this.#stored;
    const ofNamespace = reader.nameId(namespace);
    const entity = ofNamespace > 0 ? reader.entityId(ofNamespace, objectId) : 0;
    const user = reader.entityId(EMPTY_NAME, userId);
    const code = this.checkUser(entity, reader.nameId(relation), user, nowMs, readBudget, context);
    return code === CHECK_DENIED && this.isLastUndecided ? CHECK_GENERAL : code;
  }

  /**
   * `GeneralEvaluator.startDecision`, of users, exact usersets and objects decided by the hot path where it can. Errors: those of the
   * task.
   */
  startDecision(query: CheckQuery, nowMs: number, readBudget: number): EvaluationTask<Value> {
    const { contextJson, subject } = query;
    const context = contextJson === '' ? null : { value: () => parseContext(contextJson) };
    const code =
      subject.kind === 'user'
        ? this.#checkNamedUser(query, subject.userId, nowMs, readBudget, context)
        : this.checkExact(query, nowMs, readBudget, context);
    if (code === CHECK_GENERAL) return this.general.startDecision(query, nowMs, readBudget);
    const value = code === CHECK_ALLOWED ? TRUE : FALSE;
    const { lastReads: reads, lastBackstops: backstops } = this;
    return { run: () => 'done', result: () => value, reads, backstops };
  }

  /** The general form of `checkUser`: any model, resumable. `contextJson`: '' for none. */
  startCheckIds(
    entity: number,
    relation: number,
    userEntity: number,
    nowMs: number,
    readBudget: number,
    contextJson = '',
  ): EvaluationTask<boolean> {
    return this.general.startCheckIds(entity, relation, userEntity, nowMs, readBudget, contextJson);
  }

  /** Check with any subject and context. The caller has validated names and ids. */
  startCheck(input: CheckQuery, nowMs: number, readBudget: number): EvaluationTask<boolean> {
    if (input.isExact !== true) return this.general.startCheck(input, nowMs, readBudget);
    return allowedOf(this.startDecision(input, nowMs, readBudget));
  }

  /**
   * The general evaluation over another reader with the same name ids, such as one with a request's tuples laid over
   * it. What it prepares is its own: nothing of it stays here.
   */
  over(reader: TupleReader): GeneralEvaluator {
    const conditions = new ConditionCache(false, this.#model.conditions);
    return this.#generalOver(admitted(reader, this.#admission), conditions);
  }

  /**
   * The general evaluation of the same tuples under another model. `reader` keeps names that the index lacks to
   * itself, as OverlayReader does: nothing of the model stays in the index, and nothing that was remembered
   * under this one is read.
   */
  under(model: NamespaceModel, reader: TupleReader): GeneralEvaluator {
    const { depthMax } = this.#options;
    const bound = new BoundModel(model, reader);
    const conditions = new ConditionCache(false, model.conditions);
    const admission = model.admittedOnly === true ? new Admission(model, reader) : undefined;
    const parts = { reader: admitted(reader, admission), model: bound, clock: this.#clock };
    return new GeneralEvaluator({ ...parts, conditions, depthMax });
  }

  #generalOver(reader: TupleReader, conditions: ConditionCache): GeneralEvaluator {
    const { depthMax } = this.#options;
    const [model, clock] = [this.#bound, this.#clock];
    return new GeneralEvaluator({ reader, model, clock, conditions, depthMax });
  }

  /** The effective userset tree. */
  startExpand(root: UsersetRef, nowMs: number, readBudget: number): EvaluationTask<ExpandTree> {
    const scope = this.general.scope(`${root.namespace}#${root.relation}`, '', nowMs, readBudget);
    return guarded(scope, new ExpandRun(scope, this.#model, root));
  }

  /** Ids of all objects on which a user holds a relation; sorted, complete, without context. */
  startListObjects(
    query: ObjectsOfUser,
    nowMs: number,
    readBudget: number,
  ): EvaluationTask<readonly string[]> {
    const scope = this.#listScope(query, nowMs, readBudget);
    return guarded(scope, new ListObjectsRun(...this.#listStart(scope, query)));
  }

  /** The same as entities, whose ids the reader has as long as its revision stays. */
  startListEntities(
    query: ObjectsOfUser,
    nowMs: number,
    readBudget: number,
  ): EvaluationTask<Uint32Array> {
    const scope = this.#listScope(query, nowMs, readBudget);
    return guarded(scope, new ListEntitiesRun(...this.#listStart(scope, query)));
  }

  #listScope({ namespace, relation }: ObjectsOfUser, nowMs: number, readBudget: number): Scope {
    return this.general.scope(`${namespace}#${relation}`, '', nowMs, readBudget);
  }

  #listStart(scope: Scope, query: ObjectsOfUser): ConstructorParameters<typeof ListEntitiesRun> {
    const reader = this.#reader;
    const userEntity = reader.entityId(EMPTY_NAME, query.userId);
    const user = userEntity === 0 ? 0 : reader.nodeId(userEntity, EMPTY_NAME);
    return [scope, reader.nameId(query.namespace), reader.nameId(query.relation), user];
  }

  /** Bytes of the caches that grow with use; of all evaluators that share a hot path together. */
  get cacheBytes(): number {
    return this.hot.bytes + this.hot.conditionBytes;
  }
}

function admitted(reader: TupleReader, admission: Admission | undefined): TupleReader {
  return admission === undefined ? reader : new AdmittedReader(reader, admission);
}
