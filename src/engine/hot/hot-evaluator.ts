import type { LazyContext } from '../../model/conditions/conditions.ts';
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
} from '../../model/tuple-reader.ts';
import { type BoundModel, OP_EXCLUSION, OP_LEAF, OP_UNION } from '../bound/bound-model.ts';
import {
  CHECK_ALLOWED,
  CHECK_DENIED,
  CHECK_GENERAL,
  type EngineCache,
  type EvaluatorOptions,
  type EdgeAdmission,
} from '../bound/evaluator-api.ts';
import { type ConditionCache, NO_ENTITY, type Target } from '../bound/scope.ts';
import { AncestorCache } from './ancestor-cache.ts';
import { ABSENT_CACHES, checkStateHot, checkUserHot, type HotCaches } from './hot-check.ts';
import { HotConditions } from './hot-conditions.ts';
import { HOT_PLAIN, HotModel, type HotTree } from './hot-model.ts';
import type { HotScratch } from './hot-scratch.ts';
import { checkSetHot, SetTarget } from './hot-set-check.ts';
import { MembershipCache } from './membership-cache.ts';
import { ObjectCache } from './object-cache.ts';
import { type Queries, readAhead } from './read-ahead.ts';
import { STEPS_UNBOUNDED } from './step-meter.ts';

const change = new Uint32Array(CHANGE_WORDS);
/** Used instead of a user's node: the operands of a tree are asked about the current exact userset. */
const SET_AT_WORK = -1;
/**
 * Caches below this mostly stay in the processor's last cache, from where a group comes no sooner: at 101 k tuples reading
 * ahead cost an item 0 to 60 ns.
 */
const READ_AHEAD_BYTES_MIN = 8 * 1024 * 1024;

/**
 * The hot path of the engine over one index and one model version with its caches, which follow the index's
 * changes. Holds nothing of a check between two, so that several evaluators may share one.
 */
export class HotEvaluator {
  readonly #reader: TupleReader;
  readonly #model: HotModel;
  readonly #memberships: MembershipCache;
  readonly #objects: ObjectCache;
  readonly #ancestors: AncestorCache;
  readonly #caches: HotCaches;
  readonly #scratch: HotScratch;
  readonly #hotConditions: HotConditions;
  /** Prepared conditions, for all evaluators that share this. */
  readonly conditions: ConditionCache;
  /** Steps of one evaluation (StepMeter) before it is left to the general one. */
  stepsMax = STEPS_UNBOUNDED;
  readonly #readAheadBytesMin: number;
  /** Reads of the operands of the current tree. */
  #treeReads = 0;
  readonly #set = new SetTarget();
  /** Revision that the caches speak of. */
  #revision: number;

  /**
   * A quarter of `membershipBytesMax` for memberships, half for rows of objects, a quarter for lists of ancestors. `admission`:
   * which stored tuples count; null: all do.
   */
  constructor(
    reader: TupleReader,
    model: BoundModel,
    options: EvaluatorOptions,
    scratch: HotScratch,
    conditions: ConditionCache,
    admission: EdgeAdmission | null = null,
  ) {
    this.#scratch = scratch;
    this.conditions = conditions;
    this.#hotConditions = new HotConditions(reader, conditions);
    const quarter = options.membershipBytesMax / 4;
    this.#readAheadBytesMin = options.readAheadBytesMin ?? READ_AHEAD_BYTES_MIN;
    this.#reader = reader;
    this.#model = new HotModel(model, admission);
    this.#memberships = new MembershipCache(reader, this.#model, quarter, scratch);
    const isOn = (cache: EngineCache): boolean => options.cachesOff?.includes(cache) !== true;
    const memberships = isOn('closures') ? this.#memberships : ABSENT_CACHES.memberships;
    this.#objects = new ObjectCache(reader, this.#model, memberships, quarter * 2, scratch);
    this.#ancestors = new AncestorCache(this.#model, this.#objects, quarter, scratch);
    this.#caches = {
      memberships,
      objects: isOn('objects') ? this.#objects : ABSENT_CACHES.objects,
      ancestors: isOn('chains') ? this.#ancestors : ABSENT_CACHES.ancestors,
    };
    this.#revision = reader.revision;
  }

  /** Bytes of the caches. */
  get bytes(): number {
    return this.#memberships.bytes + this.#objects.bytes + this.#ancestors.bytes;
  }

  /** Bytes of what is remembered of conditions. */
  get conditionBytes(): number {
    return this.#hotConditions.bytes + this.conditions.bytes;
  }

  /** BACKSTOP_ bits of the last `check` with the same scratch memory. */
  get lastBackstops(): number {
    return this.#scratch.backstops;
  }

  /** Whether the last `check` with the same scratch memory met a condition that it could not decide. */
  get isLastUndecided(): boolean {
    return this.#scratch.isUndecided;
  }

  /** Steps of the last `check` with the same scratch memory. */
  get lastSteps(): number {
    return this.stepsMax - this.#scratch.steps;
  }

  /** Reads of the last `check` with the same scratch memory. */
  get lastReads(): number {
    return this.#scratch.reads;
  }

  /**
   * `checkUserHot` on the index as it is now, and the trees of operators over it. Without a context no condition is
   * decided. Hot.
   */
  check(
    entity: number,
    relation: number,
    userNode: number,
    nodesMax: number,
    readsMax: number,
    nowMs: number,
    context: LazyContext | null,
  ): number {
    const reader = this.#reader;
    if (reader.revision !== this.#revision) this.#catchUp();
    const scratch = this.#scratch;
    scratch.nowMs = nowMs;
    scratch.steps = this.stepsMax;
    scratch.conditions = this.#hotConditions;
    this.#hotConditions.begin(context);
    const code = this.#decide(entity, relation, userNode, nodesMax, readsMax);
    // A context holds on to the bytes of its request.
    if (context !== null) this.#hotConditions.begin(null);
    return code;
  }

  /**
   * Checks an exact userset, or an object itself (relation 0), like `check`: what is granted to it and to no other.
   * `set.wildcardEntity` is that of the typed wildcard of its namespace, and `set.entity` may be one that no tuple
   * has. A denial is certain: where a condition could not be decided only the general evaluation can decide. Hot.
   */
  checkSet(
    entity: number,
    relation: number,
    set: Pick<Target, 'setEntity' | 'setRelation' | 'wildcardEntity'>,
    nodesMax: number,
    readsMax: number,
    nowMs: number,
    context: LazyContext | null,
  ): number {
    const reader = this.#reader;
    if (reader.revision !== this.#revision) this.#catchUp();
    const scratch = this.#scratch;
    scratch.nowMs = nowMs;
    scratch.steps = this.stepsMax;
    scratch.conditions = this.#hotConditions;
    this.#hotConditions.begin(context);
    const target = this.#set;
    const { setEntity, setRelation, wildcardEntity = 0 } = set;
    target.entity = setEntity;
    target.relation = setRelation;
    target.node = setEntity === NO_ENTITY ? 0 : reader.nodeId(setEntity, setRelation);
    target.wildcardNode = wildcardEntity === 0 ? 0 : reader.nodeId(wildcardEntity, EMPTY_NAME);
    const code = this.#decideSet(entity, relation, nodesMax, readsMax);
    if (context !== null) this.#hotConditions.begin(null);
    return code;
  }

  #decideSet(entity: number, relation: number, nodesMax: number, readsMax: number): number {
    const namespace = this.#reader.namespaceOf(entity);
    const first = this.#model.single(namespace, relation);
    const tree = first < 0 ? this.#model.treeOf(namespace, relation) : null;
    if (tree !== null) return this.#checkTree(tree, entity, SET_AT_WORK, nodesMax, readsMax);
    return this.#checkSetState(entity, relation, first, nodesMax, readsMax);
  }

  #checkSetState(
    entity: number,
    relation: number,
    first: number,
    nodesMax: number,
    readsMax: number,
  ): number {
    return checkSetHot(
      this.#scratch,
      this.#reader,
      this.#model,
      this.#caches.memberships,
      this.#set,
      entity,
      relation,
      first,
      nodesMax,
      readsMax,
    );
  }

  #decide(
    entity: number,
    relation: number,
    userNode: number,
    nodesMax: number,
    readsMax: number,
  ): number {
    const reader = this.#reader;
    const code = checkUserHot(
      this.#scratch,
      reader,
      this.#model,
      this.#caches,
      entity,
      relation,
      userNode,
      nodesMax,
      readsMax,
    );
    if (code !== CHECK_GENERAL) return code;
    const tree = this.#model.treeOf(reader.namespaceOf(entity), relation);
    return tree === null ? code : this.#checkTree(tree, entity, userNode, nodesMax, readsMax);
  }

  #checkTree(
    tree: HotTree,
    entity: number,
    userNode: number,
    nodesMax: number,
    readsMax: number,
  ): number {
    // The relation itself is a userset on every path.
    this.#treeReads = 1;
    const code = this.#valueOf(tree, entity, userNode, nodesMax - 1, readsMax);
    this.#scratch.reads = this.#treeReads;
    this.#scratch.backstops = 0;
    return code;
  }

  /**
   * Operands are asked until one decides, the one that did so last first: all of them are searches without a trace, so
   * that their order changes no answer. What is not certain is left to the general path: an exclude side would turn it round.
   */
  #valueOf(
    tree: HotTree,
    entity: number,
    userNode: number,
    nodesMax: number,
    readsMax: number,
  ): number {
    if (tree.kind === OP_LEAF) return this.#leafOf(tree, entity, userNode, nodesMax, readsMax);
    const { children, decisive } = tree;
    const isUnion = tree.kind === OP_UNION;
    for (let k = 0; k < children.length; k++) {
      const i = k === 0 ? decisive : k <= decisive ? k - 1 : k;
      const child = children[i] as HotTree;
      const code = this.#valueOf(child, entity, userNode, nodesMax, readsMax);
      if (code === CHECK_GENERAL) return code;
      const holds = (code === CHECK_ALLOWED) !== (tree.kind === OP_EXCLUSION && i > 0);
      if (holds === isUnion) {
        tree.decisive = i;
        return holds ? CHECK_ALLOWED : CHECK_DENIED;
      }
    }
    return isUnion ? CHECK_DENIED : CHECK_ALLOWED;
  }

  #leafOf(
    tree: HotTree,
    entity: number,
    userNode: number,
    nodesMax: number,
    readsMax: number,
  ): number {
    const scratch = this.#scratch;
    const readsLeft = readsMax - this.#treeReads;
    const code =
      userNode === SET_AT_WORK
        ? this.#checkSetState(entity, tree.relation, tree.state, nodesMax, readsLeft)
        : checkStateHot(
            scratch,
            this.#reader,
            this.#model,
            this.#caches,
            entity,
            tree.relation,
            tree.state,
            userNode,
            nodesMax,
            readsLeft,
          );
    this.#treeReads += scratch.reads;
    const isCertain = code === CHECK_ALLOWED || (scratch.backstops === 0 && !scratch.isUndecided);
    return isCertain ? code : CHECK_GENERAL;
  }

  /**
   * Reads ahead the rows that `check` will read for the first `count` queries, at most READ_AHEAD_MAX.
   * Skipped while the caches are small enough to stay in the processor's caches. Hot.
   */
  readAhead(queries: Queries, count: number): void {
    if (this.bytes < this.#readAheadBytesMin) return;
    readAhead(this.#reader, this.#model, this.#caches, queries, count);
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
    const kind = this.#model.single(namespace, change[CHANGE_RELATION] as number);
    this.#objects.invalidate(change[CHANGE_ENTITY] as number, namespace);
    this.#ancestors.invalidate(change[CHANGE_ENTITY] as number);
    // Either node may be gone, and its id another node's by now.
    this.#memberships.invalidateNode(change[CHANGE_NODE] as number);
    this.#memberships.invalidateNode(subject);
    this.#memberships.invalidateUser(change[CHANGE_NODE] as number);
    this.#memberships.invalidateUser(subject);
    if (kind === HOT_PLAIN && ((flags & CHANGE_OF_USER) === 0 || subject === WILDCARD_NODE)) {
      this.#clear(); // the shape of groups changed
    } else if ((flags & CHANGE_FIRST_MENTION) !== 0) {
      this.#memberships.clear(); // memberships leave out what nothing refers to
    }
  }

  #clear(): void {
    this.#memberships.clear();
    this.#objects.clear();
    this.#ancestors.clear();
  }
}
