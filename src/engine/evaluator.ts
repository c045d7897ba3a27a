import type { NamespaceModel } from '../model/namespace-model.ts';
import {
  CHANGE_ENTITY,
  CHANGE_FIRST_MENTION,
  CHANGE_FLAGS,
  CHANGE_NAMESPACE,
  CHANGE_NODE,
  CHANGE_OF_USER,
  CHANGE_RELATION,
  CHANGE_SUBJECT,
  CHANGE_WORDS,
  EMPTY_NAME,
  type TupleReader,
  WILDCARD_NODE,
} from '../model/tuple-reader.ts';
import type { Clock } from '../shared/clock.ts';
import { BoundModel, type Op } from './bound-model.ts';
import { ChainCache } from './chain-cache.ts';
import { CheckRun } from './check-run.ts';
import { ClosureCache } from './closure-cache.ts';
import {
  BACKSTOP_BUDGET,
  type CheckInput,
  type EvaluationTask,
  type EvaluatorOptions,
  type ExpandTree,
  type UsersetRef,
} from './evaluator-api.ts';
import { ExpandRun } from './expand.ts';
import {
  checkUserHot,
  type HotCaches,
  hotBackstops,
  hotReads,
  HOT_NODES_MAX,
} from './hot-check.ts';
import { HOT_PLAIN, HotModel } from './hot-model.ts';
import { ListObjectsRun } from './list-objects-run.ts';
import { ObjectCache } from './object-cache.ts';
import { ConditionCache, Scope, type Target, TRUE } from './scope.ts';
import { SubjectSetRun } from './subject-set-run.ts';

const change = new Uint32Array(CHANGE_WORDS);

/**
 * Decisions over one index and one version of its project's model. Built when a shard is loaded or
 * its model changes; O(model). Every evaluation sees the revision at which it started: the caller
 * applies no changes between the slices of a task.
 */
export class Evaluator {
  readonly #reader: TupleReader;
  readonly #model: NamespaceModel;
  readonly #bound: BoundModel;
  readonly #hot: HotModel;
  readonly #closures: ClosureCache;
  readonly #objects: ObjectCache;
  readonly #chains: ChainCache;
  readonly #caches: HotCaches;
  /** Revision that the caches speak of. */
  #revision: number;
  readonly #options: EvaluatorOptions;
  readonly #clock: Clock;
  readonly #conditions = new ConditionCache();
  readonly #hotNodesMax: number;

  constructor(reader: TupleReader, model: NamespaceModel, options: EvaluatorOptions, clock: Clock) {
    this.#reader = reader;
    this.#model = model;
    this.#bound = new BoundModel(model, reader);
    this.#hot = new HotModel(this.#bound);
    const cacheBytesMax = options.closureBytesMax / 4;
    this.#closures = new ClosureCache(reader, this.#hot, cacheBytesMax);
    this.#objects = new ObjectCache(reader, this.#hot, this.#closures, cacheBytesMax * 2);
    this.#chains = new ChainCache(this.#hot, this.#objects, cacheBytesMax);
    this.#caches = { closures: this.#closures, objects: this.#objects, chains: this.#chains };
    this.#revision = reader.revision;
    this.#options = options;
    this.#clock = clock;
    this.#hotNodesMax = Math.min(HOT_NODES_MAX, options.depthMax);
  }

  /** BACKSTOP_ bits of the last `checkUser` that did not say CHECK_GENERAL. */
  get lastBackstops(): number {
    return hotBackstops();
  }

  /** Reads of the last `checkUser` that did not say CHECK_GENERAL: a batch has a total budget. */
  get lastReads(): number {
    return hotReads();
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
    const user = userEntity === 0 ? 0 : this.#reader.nodeId(userEntity, EMPTY_NAME);
    const nodesMax = this.#hotNodesMax;
    if (this.#reader.revision !== this.#revision) this.#catchUp();
    return checkUserHot(
      this.#reader,
      this.#hot,
      this.#caches,
      entity,
      relation,
      user,
      nodesMax,
      readBudget,
    );
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
  startCheck(input: CheckInput, nowMs: number, readBudget: number): EvaluationTask<boolean> {
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

  /** Bytes of the caches that grow with use. */
  get cacheBytes(): number {
    return this.#closures.bytes + this.#objects.bytes + this.#chains.bytes;
  }

  /** Drops what the changes since the last evaluation touched; everything if they are not known. */
  #catchUp(): void {
    const reader = this.#reader;
    const { revision } = reader;
    while (this.#revision < revision) {
      if (!reader.readChange(revision, change) || !reader.readChange(this.#revision + 1, change)) {
        this.#clear();
        break;
      }
      this.#revision++;
      this.#dropTouched();
    }
    this.#revision = revision;
  }

  #dropTouched(): void {
    const subject = change[CHANGE_SUBJECT] as number;
    const flags = change[CHANGE_FLAGS] as number;
    const namespace = change[CHANGE_NAMESPACE] as number;
    const kind = this.#hot.single(namespace, change[CHANGE_RELATION] as number);
    this.#objects.invalidate(change[CHANGE_ENTITY] as number, namespace);
    this.#chains.invalidate(change[CHANGE_ENTITY] as number);
    // Either node may be gone, and its id another node's by now.
    this.#closures.invalidateNode(change[CHANGE_NODE] as number);
    this.#closures.invalidateNode(subject);
    this.#closures.invalidateUser(change[CHANGE_NODE] as number);
    this.#closures.invalidateUser(subject);
    if (kind === HOT_PLAIN && ((flags & CHANGE_OF_USER) === 0 || subject === WILDCARD_NODE)) {
      this.#clear(); // the shape of groups changed
    } else if ((flags & CHANGE_FIRST_MENTION) !== 0) {
      this.#closures.clear(); // closures leave out what nothing refers to
    }
  }

  #clear(): void {
    this.#closures.clear();
    this.#objects.clear();
    this.#chains.clear();
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
