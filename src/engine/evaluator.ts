import type { CheckQuery } from '../model/check-query.ts';
import type { ExpandTree, UsersetRef } from '../model/expand-tree.ts';
import type { NamespaceModel } from '../model/namespace-model.ts';
import { EMPTY_NAME, type TupleReader } from '../model/tuple-reader.ts';
import type { Clock } from '../shared/clock.ts';
import { BoundModel, type Op } from './bound/bound-model.ts';
import {
  BACKSTOP_BUDGET,
  type EvaluationTask,
  type EvaluatorOptions,
} from './bound/evaluator-api.ts';
import { ConditionCache, Scope, type Target, TRUE } from './bound/scope.ts';
import { CheckRun } from './general/check-run.ts';
import { ExpandRun } from './general/expand.ts';
import { ListObjectsRun } from './general/list-objects-run.ts';
import { SubjectSetRun } from './general/subject-set-run.ts';
import { HOT_NODES_MAX } from './hot/hot-check.ts';
import { HotEvaluator } from './hot/hot-evaluator.ts';
import { HotScratch } from './hot/hot-scratch.ts';
import type { Questions } from './hot/read-ahead.ts';

/**
 * Decisions over one index and one version of its project's model. Built when a shard is loaded or
 * its model changes; O(model). Every evaluation sees the revision at which it started: the caller
 * applies no changes between the slices of a task.
 */
export class Evaluator {
  readonly #reader: TupleReader;
  readonly #model: NamespaceModel;
  readonly #bound: BoundModel;
  /** Shared by evaluators of one index and one model, so that each finds the caches warm. */
  readonly hot: HotEvaluator;
  readonly #options: EvaluatorOptions;
  readonly #clock: Clock;
  readonly #conditions: ConditionCache;
  readonly #hotNodesMax: number;

  /**
   * `hot`: that of another evaluator of the same index and model, or the memory in which a new one works, which
   * all evaluators of a thread may share.
   */
  constructor(
    reader: TupleReader,
    model: NamespaceModel,
    options: EvaluatorOptions,
    clock: Clock,
    hot: HotEvaluator | HotScratch = new HotScratch(),
  ) {
    this.#reader = reader;
    this.#model = model;
    this.#bound = new BoundModel(model, reader);
    this.hot =
      hot instanceof HotEvaluator ? hot : new HotEvaluator(reader, this.#bound, options, hot);
    this.#options = options;
    this.#conditions = new ConditionCache(
      options.cachesOff?.includes('conditions'),
      model.conditions,
    );
    this.#clock = clock;
    this.#hotNodesMax = Math.min(HOT_NODES_MAX, options.depthMax);
  }

  /** BACKSTOP_ bits of the last `checkUser` that did not say CHECK_GENERAL. */
  get lastBackstops(): number {
    return this.hot.lastBackstops;
  }

  /** Reads of the last `checkUser` that did not say CHECK_GENERAL: a batch has a total budget. */
  get lastReads(): number {
    return this.hot.lastReads;
  }

  /**
   * Whether a concrete user holds a relation: CHECK_ALLOWED, CHECK_DENIED, or CHECK_GENERAL when
   * only `startCheckIds` can tell. `entity` and `userEntity` are 0 and `relation` is -1 for what
   * the index does not know. Hot: does not allocate, never throws.
   */
  checkUser(
    entity: number,
    relation: number,
    userEntity: number,
    _nowMs: number,
    readBudget: number,
  ): number {
    const user = this.#reader.userNodeOf(userEntity);
    return this.hot.check(entity, relation, user, this.#hotNodesMax, readBudget);
  }

  /**
   * Brings what `checkUser` will read for the first `count` questions, at most READ_AHEAD_MAX, into the
   * processor's cache, all at once. A hint: it changes no answer. Hot.
   */
  readAhead(questions: Questions, count: number): void {
    this.hot.readAhead(questions, count);
  }

  /** The general form of `checkUser`: any model, resumable, without context. */
  startCheckIds(
    entity: number,
    relation: number,
    userEntity: number,
    nowMs: number,
    readBudget: number,
  ): EvaluationTask<boolean> {
    const reader = this.#reader;
    const namespace = reader.nameText(reader.namespaceOf(entity));
    const text = `${namespace}#${relation > 0 ? reader.nameText(relation) : ''}`;
    const scope = this.#scope(text, '', nowMs, readBudget);
    return guarded(scope, this.#userTask(scope, entity, relation, userEntity));
  }

  /** Check with any subject and context. The caller has validated names and ids. */
  startCheck(input: CheckQuery, nowMs: number, readBudget: number): EvaluationTask<boolean> {
    const { subject } = input;
    const reader = this.#reader;
    const text = `${input.namespace}#${input.relation}`;
    const scope = this.#scope(text, input.contextJson, nowMs, readBudget);
    const namespace = reader.nameId(input.namespace);
    const entity = namespace > 0 ? reader.entityId(namespace, input.objectId) : 0;
    const relation = reader.nameId(input.relation);
    if (subject.kind === 'user') {
      const userEntity = reader.entityId(EMPTY_NAME, subject.userId);
      return guarded(scope, this.#userTask(scope, entity, relation, userEntity));
    }
    if (subject.kind === 'wildcard') return decided(false);
    const isSameObject =
      subject.namespace === input.namespace && subject.objectId === input.objectId;
    if (isSameObject && subject.relation === input.relation) return decided(true);
    // The model's names are pinned: a name that the index lacks stands in no rewrite either.
    const setRelation = reader.nameId(subject.relation);
    if (setRelation < 0 || relation < 0 || namespace <= 0) return decided(false);
    if (entity === 0) {
      return decided(isSameObject && this.#isComputedFrom(namespace, relation, setRelation));
    }
    const setNamespace = reader.nameId(subject.namespace);
    const setEntity = setNamespace > 0 ? reader.entityId(setNamespace, subject.objectId) : 0;
    if (setEntity === 0) return decided(false);
    const set = { entity: setEntity, relation: setRelation };
    return guarded(scope, new SubjectSetRun(scope, { entity, relation }, set));
  }

  /** The effective userset tree. */
  startExpand(root: UsersetRef, nowMs: number, readBudget: number): EvaluationTask<ExpandTree> {
    const scope = this.#scope(`${root.namespace}#${root.relation}`, '', nowMs, readBudget);
    return guarded(scope, new ExpandRun(scope, this.#model, root));
  }

  /** Ids of all objects on which a user holds a relation; sorted, complete, without context. */
  startListObjects(
    query: { readonly namespace: string; readonly relation: string; readonly userId: string },
    nowMs: number,
    readBudget: number,
  ): EvaluationTask<readonly string[]> {
    const reader = this.#reader;
    const scope = this.#scope(`${query.namespace}#${query.relation}`, '', nowMs, readBudget);
    const userEntity = reader.entityId(EMPTY_NAME, query.userId);
    const user = userEntity === 0 ? 0 : reader.nodeId(userEntity, EMPTY_NAME);
    const namespace = reader.nameId(query.namespace);
    const relation = reader.nameId(query.relation);
    return guarded(scope, new ListObjectsRun(scope, namespace, relation, user));
  }

  /** Bytes of the caches that grow with use; of all evaluators that share a hot path together. */
  get cacheBytes(): number {
    return this.hot.bytes;
  }

  #scope(relationText: string, contextJson: string, nowMs: number, readBudget: number): Scope {
    return new Scope({
      reader: this.#reader,
      model: this.#bound,
      clock: this.#clock,
      conditions: this.#conditions,
      depthMax: this.#options.depthMax,
      nowMs,
      readBudget,
      contextJson,
      relationText,
    });
  }

  #userTask(
    scope: Scope,
    entity: number,
    relation: number,
    userEntity: number,
  ): EvaluationTask<boolean> {
    // Every grant starts at a tuple of the object itself.
    if (entity === 0 || relation <= 0) return decided(false);
    const userNode = userEntity === 0 ? 0 : this.#reader.nodeId(userEntity, EMPTY_NAME);
    return new CheckTask(scope, { userNode, setEntity: 0, setRelation: 0 }, entity, relation);
  }

  /** Whether relation `from` of an object without tuples is included in `relation` of the same. */
  #isComputedFrom(namespace: number, relation: number, from: number): boolean {
    if (relation === from) return true;
    const program = this.#bound.programOf(namespace, relation);
    return program !== undefined && this.#opIncludes(program.root, namespace, from);
  }

  #opIncludes(op: Op, namespace: number, from: number): boolean {
    const holds = (child: Op): boolean => this.#opIncludes(child, namespace, from);
    switch (op.kind) {
      case 0:
        return op.computed.some((relation) => this.#isComputedFrom(namespace, relation, from));
      case 1:
        return op.children.some(holds);
      case 2:
        return op.children.every(holds);
      case 3:
        return holds(op.children[0] as Op) && !holds(op.children[1] as Op);
    }
  }
}

/** Check of a concrete user as a task. */
class CheckTask implements EvaluationTask<boolean> {
  readonly #scope: Scope;
  readonly #run: CheckRun;

  constructor(scope: Scope, target: Target, entity: number, relation: number) {
    this.#scope = scope;
    this.#run = new CheckRun(scope, target);
    this.#run.start(entity, relation);
  }

  get backstops(): number {
    return this.result() ? 0 : this.#scope.backstops;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    return this.#run.run(sliceEndMs);
  }

  result(): boolean {
    return this.#run.outcome.value === TRUE;
  }
}

/** A task whose answer needs no evaluation. */
function decided(answer: boolean): EvaluationTask<boolean> {
  return { run: () => 'done', result: () => answer, backstops: 0 };
}

/** Adds the budget bit when a task runs out of it. */
function guarded<T>(scope: Scope, task: EvaluationTask<T>): EvaluationTask<T> {
  let isExhausted = false;
  return {
    run(sliceEndMs) {
      try {
        return task.run(sliceEndMs);
      } catch (error) {
        isExhausted = scope.isExhausted;
        throw error;
      }
    },
    result: () => task.result(),
    get backstops() {
      return isExhausted ? BACKSTOP_BUDGET : task.backstops;
    },
    get reads() {
      return scope.reads;
    },
  };
}
