import { rowFromTuple } from '../cache/tuple-row.ts';
import { TRUE, UNDETERMINED } from '../engine/bound/scope.ts';
import { ExplainRun } from '../engine/explain/explain-run.ts';
import { guarded } from '../engine/general-evaluator.ts';
import { listObjects } from '../engine/lists/list-objects.ts';
import { relationsOf } from '../engine/lists/relations-of.ts';
import { startListSubjects } from '../engine/lists/start-list-subjects.ts';
import { StepsTask } from '../engine/lists/steps-task.ts';
import type { RelationTuple } from '../model/relation-tuple.ts';
import { checkAdmitted, checkNamed, refuseRepeated } from './admission.ts';
import { atBorder } from './border.ts';
import { checkInteger, engineOptionsOf } from './checked-options.ts';
import { decisionOf, EngineCore, finished, insertsOf } from './engine-core.ts';
import { EngineError } from './engine-error.ts';
import type { EngineOptions } from './engine-options.ts';
import * as input from './input.ts';
import { namespaceModelOf } from './known-models.ts';
import type { Model } from './model.ts';
import { explanationOf } from './output.ts';
import type {
  EngineQuery,
  EngineDecision,
  EngineExplanation,
  ExplainOptions,
  ListOptions,
  ObjectList,
  EngineQueryOptions,
  RelationList,
  EngineSubject,
  SubjectList,
  SubjectsQuery,
  EngineTuple,
} from './types.ts';

const REMEDIES_DEFAULT = 10;
const REMEDIES_MAX = 100;
/** Reads of all decisions for one list of relations, as a multiple of `readsMax`. Same as in the service. */
const LIST_BUDGET_FACTOR = 20;

/**
 * Decides by a model over tuples in memory. Every method is synchronous; nothing is read or written elsewhere. A
 * decision costs about a microsecond, more if lists are long, and never more reads than `readsMax`.
 */
export class Engine {
  /** Model by which the engine decides. */
  readonly model: Model;
  readonly #core: EngineCore;
  #damage: unknown;

  /** An engine without tuples. Errors: FIELD_INVALID naming the option, SHARD_TOO_LARGE. Cost: O(model). */
  constructor(model: Model, options: EngineOptions = {}) {
    this.model = model;
    this.#core = atBorder(() => new EngineCore(namespaceModelOf(model), engineOptionsOf(options)));
  }

  /** Number of tuples, including expired ones. */
  get tupleCount(): number {
    return this.#core.index.tupleCount;
  }

  /**
   * Writes tuples, as objects or as text (`doc:plan#viewer@user:ann`): all of them, or none if one is rejected.
   * Replaces the condition and expiry of an existing tuple. Returns the number of new tuples. Errors: FIELD_*,
   * TUPLE_NOT_ADMITTED, naming the tuple; SHARD_TOO_LARGE, after which the engine is damaged.
   */
  write(tuples: readonly (EngineTuple | string)[]): number {
    const checked = this.#checked(tuples, true);
    return this.#change(checked, (tuple) => this.#core.index.insert(rowFromTuple(tuple)));
  }

  /**
   * Deletes tuples by namespace, object, relation and subject, whatever their condition and expiry. Returns the number
   * of tuples that existed. Errors: FIELD_*, naming the tuple.
   */
  delete(tuples: readonly (EngineTuple | string)[]): number {
    const checked = this.#checked(tuples, false);
    return this.#change(checked, (tuple) => this.#core.index.remove(rowFromTuple(tuple)));
  }

  /**
   * Whether the subject holds the relation. Takes a query or its text (`doc:plan#viewer@user:ann`). An undecided query
   * is denied. Errors: those of `decide`.
   */
  check(query: EngineQuery | string, options?: EngineQueryOptions): boolean {
    return this.decide(query, options).allowed;
  }

  /**
   * Decides as `check` does, and reports whether a deny is certain. Errors: FIELD_*, RELATION_UNKNOWN,
   * TUPLE_NOT_ADMITTED (contextual tuples), BUDGET_EXHAUSTED.
   */
  decide(query: EngineQuery | string, options?: EngineQueryOptions): EngineDecision {
    if (options === undefined && typeof query !== 'string' && this.#damage === undefined) {
      const decision = this.#core.decidePlain(query);
      if (decision !== undefined) return decision;
    }
    return this.#answer(() => {
      const asked = input.queryOf(query);
      const checked = input.queryOptionsOf(options);
      this.#checkNamed(asked.namespace, asked.relation);
      const ground = this.#core.ground(checked.contextual);
      if (checked.contextual.length === 0) {
        const decision = this.#core.decideUser(asked, checked.contextJson, ground.nowMs);
        if (decision !== undefined) return decision;
      }
      const { contextJson, isExact } = checked;
      const wanted = { ...asked, contextJson, isExact };
      return decisionOf(ground.decider.startDecision(wanted, ground.nowMs, this.#core.readsMax));
    });
  }

  /**
   * Explains the result of `decide`: the shortest derivation of an allow, or the obstacles of a deny and its remedies.
   * The explanation has four times `readsMax` for itself. Errors: those of `decide`.
   */
  explain(query: EngineQuery | string, options: ExplainOptions = {}): EngineExplanation {
    return this.#answer(() => {
      const asked = input.queryOf(query);
      const checked = input.queryOptionsOf(options, ['remediesMax']);
      const { remediesMax = REMEDIES_DEFAULT } = options;
      checkInteger('options.remediesMax', remediesMax, 0, REMEDIES_MAX);
      this.#checkNamed(asked.namespace, asked.relation);
      const { contextual, contextJson, isExact } = checked;
      const { evaluator, nowMs } = this.#core.ground(contextual);
      const held = insertsOf(contextual);
      const ground = {
        evaluator,
        // Contextual tuples are applied after the remedy, so a remedy that they override does not count.
        withTuple: (tuple: RelationTuple) => this.#core.over([...insertsOf([tuple]), ...held]),
        model: this.#core.rules,
        contextual,
        nowMs,
        readBudget: this.#core.readsMax,
      };
      const run = new ExplainRun(
        ground,
        { ...asked, contextJson, isExact },
        remediesMax,
        this.#core.clock,
      );
      return explanationOf(finished(run));
    });
  }

  /**
   * Lists the objects of a namespace on which the subject holds the relation. Errors: those of `decide`;
   * RESULT_TOO_LARGE.
   */
  listObjects(
    query: {
      readonly namespace: string;
      readonly relation: string;
      readonly subject: EngineSubject;
    },
    options: ListOptions = {},
  ): ObjectList {
    return this.#answer(() => {
      const asked = input.objectsQueryOf(query);
      const { contextual, contextJson, isExact } = listOptionsOf(options);
      const { namespace, relation } = asked;
      this.#checkNamed(namespace, relation);
      const { evaluator, nowMs } = this.#core.ground(contextual);
      const scope = evaluator.scope(
        `${namespace}#${relation}`,
        contextJson,
        nowMs,
        this.#core.readsMax,
      );
      const objectIds: string[] = [];
      const wanted = { ...asked, contextJson, isExact, page: input.pageOf(options) };
      const steps = listObjects(evaluator, scope, wanted, (id) => void objectIds.push(id));
      const { next, isUndecided } = finished(guarded(scope, new StepsTask(scope, steps)));
      return { objectIds, undecided: isUndecided, next: next === '' ? undefined : next };
    });
  }

  /** Lists the subjects that hold a relation on an object. Errors: those of `decide`; RESULT_TOO_LARGE. */
  listSubjects(query: SubjectsQuery, options: ListOptions = {}): SubjectList {
    return this.#answer(() => {
      const asked = input.subjectsQueryOf(query);
      const { contextual, contextJson } = listOptionsOf(options);
      this.#checkNamed(asked.namespace, asked.relation);
      const { evaluator, nowMs } = this.#core.ground(contextual);
      const wanted = { ...asked, contextJson, page: input.pageOf(options) };
      const list = finished(startListSubjects(evaluator, wanted, nowMs, this.#core.readsMax));
      return {
        subjectIds: list.userIds,
        everyone: list.wildcard,
        excludedIds: list.excludedUserIds,
        undecidedIds: list.undecidedUserIds,
        everyoneUndecided: list.isWildcardUndecided,
        next: list.next === '' ? undefined : list.next,
      };
    });
  }

  /** Lists the relations that a subject holds on an object. Errors: those of `decide`. */
  listRelations(
    query: {
      readonly namespace: string;
      readonly objectId: string;
      readonly subject: EngineSubject;
    },
    options?: EngineQueryOptions,
  ): RelationList {
    return this.#answer(() => {
      const { namespace, objectId } = input.relationsQueryOf(query);
      const subject = input.subjectOfQuery(query.subject);
      const { contextual, contextJson, isExact } = input.queryOptionsOf(options);
      this.#checkNamed(namespace, undefined);
      const { evaluator, decider, nowMs } = this.#core.ground(contextual);
      const readsMax = this.#core.readsMax;
      const scope = evaluator.scope(`relations of ${namespace}`, '', nowMs, readsMax);
      const search = new StepsTask(
        scope,
        relationsOf(scope, this.#core.rules, namespace, objectId),
      );
      const [relations, undecidedRelations]: [string[], string[]] = [[], []];
      let reads = 0;
      for (const relation of [...finished(search)].sort()) {
        const asked = { namespace, objectId, relation, subject, contextJson, isExact };
        const left = readsMax * LIST_BUDGET_FACTOR - reads;
        const task = decider.startDecision(asked, nowMs, Math.min(readsMax, left));
        const value = finished(task);
        reads += task.reads ?? 0;
        if (value === TRUE) relations.push(relation);
        if (value === UNDETERMINED) undecidedRelations.push(relation);
      }
      return { relations, undecidedRelations };
    });
  }

  #checkNamed(namespace: string, relation: string | undefined): void {
    checkNamed(this.#core.rules, namespace, relation);
  }

  #checked(tuples: readonly (EngineTuple | string)[], isWrite: boolean): readonly RelationTuple[] {
    return this.#answer(() => {
      const checked = input.tuplesOf('tuples', tuples);
      refuseRepeated('tuples', checked);
      if (isWrite) checkAdmitted(this.#core.rules, 'tuples', checked);
      return checked;
    });
  }

  /** Changes the index. Any error on the way leaves the engine damaged. */
  #change(tuples: readonly RelationTuple[], apply: (tuple: RelationTuple) => boolean): number {
    try {
      return atBorder(() => tuples.filter(apply).length);
    } catch (error) {
      this.#damage = error;
      throw error;
    }
  }

  /** Runs `work`. Throws ENGINE_DAMAGED if an earlier write failed. */
  #answer<T>(work: () => T): T {
    if (this.#damage !== undefined) {
      const message = 'a write failed in the middle: make a new engine and write its tuples';
      throw new EngineError('ENGINE_DAMAGED', message, { cause: this.#damage });
    }
    return atBorder(work);
  }
}

function listOptionsOf(options: ListOptions): input.CheckedOptions {
  return input.queryOptionsOf(options, ['after', 'limit']);
}
