import type { CheckQuery } from '../model/relation-tuple.ts';
import { EMPTY_NAME, type TupleReader } from '../model/tuple-reader.ts';
import type { Clock } from '../shared/time/clock.ts';
import type { BoundModel, Op } from './bound/bound-model.ts';
import { BACKSTOP_BUDGET, type EvaluationTask } from './bound/evaluator-api.ts';
import { type ConditionCache, FALSE, Scope, type Target, TRUE, type Value } from './bound/scope.ts';
import { CheckRun } from './general/check-run.ts';
import { exactTargetOf, SubjectSetRun, subjectIdsOf } from './general/subject-set-run.ts';

/** Parts that a general evaluator works with. `model` is bound to the name ids of `reader`. */
export type GeneralParts = {
  readonly reader: TupleReader;
  readonly model: BoundModel;
  readonly clock: Clock;
  readonly conditions: ConditionCache;
  /** Nodes on one path of a derivation. */
  readonly depthMax: number;
};

/**
 * Checks by the general evaluation alone, over any reader: nothing is remembered between two of them but the
 * conditions that `conditions` prepares. Any number of tasks may be under way, as long as the reader does not change.
 */
export class GeneralEvaluator {
  readonly reader: TupleReader;
  readonly model: BoundModel;
  readonly #parts: GeneralParts;

  constructor(parts: GeneralParts) {
    this.reader = parts.reader;
    this.model = parts.model;
    this.#parts = parts;
  }

  /** Nodes on one path of a derivation. */
  get depthMax(): number {
    return this.#parts.depthMax;
  }

  /** A scope that one request's evaluations share. `relationText` names the query where the budget runs out. */
  scope(relationText: string, contextJson: string, nowMs: number, readBudget: number): Scope {
    return new Scope({ ...this.#parts, nowMs, readBudget, contextJson, relationText });
  }

  /** Check with any subject and context. The caller has validated names and ids. */
  startCheck(input: CheckQuery, nowMs: number, readBudget: number): EvaluationTask<boolean> {
    return allowedOf(this.#start(input, nowMs, readBudget, false));
  }

  /**
   * Starts a check like `startCheck`, whose value is UNDETERMINED where a deny rests on something that could not be
   * decided.
   */
  startDecision(input: CheckQuery, nowMs: number, readBudget: number): EvaluationTask<Value> {
    return this.#start(input, nowMs, readBudget, true);
  }

  /** Check of a concrete user by ids. `entity` and `userEntity` may be 0, `relation` -1. */
  startCheckIds(
    entity: number,
    relation: number,
    userEntity: number,
    nowMs: number,
    readBudget: number,
    contextJson = '',
  ): EvaluationTask<boolean> {
    const { reader } = this;
    const namespace = reader.nameText(reader.namespaceOf(entity));
    const text = `${namespace}#${relation > 0 ? reader.nameText(relation) : ''}`;
    const scope = this.scope(text, contextJson, nowMs, readBudget);
    return allowedOf(guarded(scope, this.#userTask(scope, entity, relation, userEntity)));
  }

  #start(
    input: CheckQuery,
    nowMs: number,
    readBudget: number,
    reportsUndecided: boolean,
  ): EvaluationTask<Value> {
    const { subject } = input;
    const { reader } = this;
    const text = `${input.namespace}#${input.relation}`;
    const scope = this.scope(text, input.contextJson, nowMs, readBudget);
    const namespace = reader.nameId(input.namespace);
    const entity = namespace > 0 ? reader.entityId(namespace, input.objectId) : 0;
    const relation = reader.nameId(input.relation);
    if (subject.kind === 'user') {
      const userEntity = reader.entityId(EMPTY_NAME, subject.userId);
      return guarded(scope, this.#userTask(scope, entity, relation, userEntity));
    }
    // Nobody is a wildcard.
    if (subject.kind !== 'set') return decided(FALSE);
    const isSameObject =
      subject.namespace === input.namespace && subject.objectId === input.objectId;
    if (isSameObject && subject.relation === input.relation) return decided(TRUE);
    // The model's names are pinned: a name that the index lacks is in no rewrite either.
    const setRelation = reader.nameId(subject.relation);
    if (setRelation < 0 || relation < 0 || namespace <= 0) return decided(FALSE);
    if (entity === 0) {
      const isIncluded = isSameObject && this.#isComputedFrom(namespace, relation, setRelation);
      return decided(isIncluded ? TRUE : FALSE);
    }
    const set = subjectIdsOf(reader, subject);
    if (set === undefined) return decided(FALSE);
    if (input.isExact === true) {
      return guarded(scope, new CheckTask(scope, exactTargetOf(set), entity, relation));
    }
    return guarded(scope, new SubjectSetRun(scope, { entity, relation }, set, reportsUndecided));
  }

  #userTask(
    scope: Scope,
    entity: number,
    relation: number,
    userEntity: number,
  ): EvaluationTask<Value> {
    // Every grant starts at a tuple of the object itself.
    if (entity === 0 || relation <= 0) return decided(FALSE);
    const userNode = userEntity === 0 ? 0 : this.reader.nodeId(userEntity, EMPTY_NAME);
    return new CheckTask(scope, { userNode, setEntity: 0, setRelation: 0 }, entity, relation);
  }

  /** Whether relation `from` of an object without tuples is included in `relation` of the same. */
  #isComputedFrom(namespace: number, relation: number, from: number): boolean {
    if (relation === from) return true;
    const program = this.model.programOf(namespace, relation);
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

/** Check of one target as a task. */
class CheckTask implements EvaluationTask<Value> {
  readonly #scope: Scope;
  readonly #run: CheckRun;

  constructor(scope: Scope, target: Target, entity: number, relation: number) {
    this.#scope = scope;
    this.#run = new CheckRun(scope, target);
    this.#run.start(entity, relation);
  }

  get backstops(): number {
    return this.result() === TRUE ? 0 : this.#scope.backstops;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    return this.#run.run(sliceEndMs);
  }

  result(): Value {
    return this.#run.outcome.value;
  }
}

/** A task whose answer needs no evaluation. */
function decided(value: Value): EvaluationTask<Value> {
  return { run: () => 'done', result: () => value, backstops: 0 };
}

/** Reduces a task's value to whether it is allowed. */
export function allowedOf(task: EvaluationTask<Value>): EvaluationTask<boolean> {
  return new AllowedTask(task);
}

/** Adds the budget bit when a task runs out of it, and the reads of its scope. */
export function guarded<T>(scope: Scope, task: EvaluationTask<T>): EvaluationTask<T> {
  return new GuardedTask(scope, task);
}

// Classes: V8 makes a dictionary of each object literal with accessors, which takes longer than a short evaluation.
class AllowedTask implements EvaluationTask<boolean> {
  readonly #task: EvaluationTask<Value>;

  constructor(task: EvaluationTask<Value>) {
    this.#task = task;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    return this.#task.run(sliceEndMs);
  }

  result(): boolean {
    return this.#task.result() === TRUE;
  }

  get backstops(): number {
    return this.#task.backstops;
  }

  get reads(): number | undefined {
    return this.#task.reads;
  }
}

class GuardedTask<T> implements EvaluationTask<T> {
  readonly #scope: Scope;
  readonly #task: EvaluationTask<T>;
  #isExhausted = false;

  constructor(scope: Scope, task: EvaluationTask<T>) {
    this.#scope = scope;
    this.#task = task;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    try {
      return this.#task.run(sliceEndMs);
    } catch (error) {
      this.#isExhausted = this.#scope.isExhausted;
      throw error;
    }
  }

  result(): T {
    return this.#task.result();
  }

  get backstops(): number {
    return this.#isExhausted ? BACKSTOP_BUDGET : this.#task.backstops;
  }

  get reads(): number {
    return this.#scope.reads;
  }
}
