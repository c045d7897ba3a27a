import { WILDCARD_NODE } from '../../model/tuple-reader.ts';
import type { EvaluationTask } from '../bound/evaluator-api.ts';
import { RAISE_BUDGET, type Scope, TRUE } from '../bound/scope.ts';
import { EntityOrder } from './entity-order.ts';
import { ObjectCheck } from './object-check.ts';
import { ObjectWalk } from './object-walk.ts';

const STEPS_PER_CLOCK_READ = 32;
const TEXTS_PER_STEP = 256;
const SURE_PER_STEP = 64;
/** Steps that a piece of a list or of a sort counts for. */
const STEPS_OF_PIECE = 8;

type Phase = 'start' | 'walk' | 'confirm' | 'sort' | 'done';
const NOTHING = new Uint32Array(0);

/** Advice where the walk back from the subject exhausts the budget, and where the checks after it do. */
export const WALK_ADVICE = `${RAISE_BUDGET}; a smaller page_size does not help, as the way back from the subject is the same for each page`;
export const CHECKS_ADVICE = `${RAISE_BUDGET}, or take pages: gatehouse.v1.QueryService/ListObjects with a smaller page_size`;

/**
 * The objects of a namespace on which a user holds a relation, found backwards from the tuples of
 * the user and of the wildcard. What was reached through unions alone is an answer; what met an
 * intersection or exclusion is confirmed forward. Relations that no tuple and no rewrite refers to
 * cost nothing further. Entities, sorted by their ids in UTF-8 byte order.
 */
export class ListEntitiesRun implements EvaluationTask<Uint32Array> {
  readonly #scope: Scope;
  readonly #namespace: number;
  readonly #relation: number;
  readonly #userNode: number;
  readonly #confirmation: ObjectCheck;
  readonly #walk: ObjectWalk;
  #found = NOTHING;
  #foundCount = 0;
  #order: EntityOrder | undefined;
  #phase: Phase = 'start';
  #next = 0;
  #isConfirming = false;

  /** Namespace and relation by name id; 0 or less: no tuple and no model mentions it. */
  constructor(scope: Scope, namespace: number, relation: number, userNode: number) {
    this.#scope = scope;
    this.#namespace = namespace;
    this.#relation = relation;
    this.#userNode = userNode;
    this.#walk = new ObjectWalk(scope, namespace, relation);
    const target = { userNode, setEntity: 0, setRelation: 0 };
    this.#confirmation = new ObjectCheck(scope, target, relation, this.#walk);
    scope.budgetAdvice = WALK_ADVICE;
  }

  get backstops(): number {
    return this.#scope.backstops;
  }

  result(): Uint32Array {
    return this.#order?.values ?? NOTHING;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    let steps = 0;
    while (this.#phase !== 'done') {
      const isPiece = this.#walk.isReading || this.#phase === 'sort';
      if (!this.#step(sliceEndMs)) return 'more';
      steps += isPiece ? STEPS_OF_PIECE : 1;
      if (steps < STEPS_PER_CLOCK_READ) continue;
      steps = 0;
      if (this.#scope.clock.monotonicMs() >= sliceEndMs) return 'more';
    }
    return 'done';
  }

  #step(sliceEndMs: number): boolean {
    switch (this.#phase) {
      case 'start':
        this.#phase = this.#namespace > 0 && this.#relation > 0 ? 'walk' : 'done';
        if (this.#phase === 'walk') this.#start();
        return true;
      case 'walk':
        if (this.#walk.step()) return true;
        this.#found = new Uint32Array(this.#walk.count);
        this.#phase = 'confirm';
        this.#scope.budgetAdvice = CHECKS_ADVICE;
        return true;
      case 'confirm':
        return this.#stepConfirm(sliceEndMs);
      case 'sort':
        this.#order ??= new EntityOrder(
          this.#scope.reader,
          this.#found.subarray(0, this.#foundCount),
        );
        if (!this.#order.step()) this.#phase = 'done';
        return true;
      case 'done':
        return true;
    }
  }

  #start(): void {
    if (this.#userNode !== 0) this.#walk.fromSubject(this.#userNode, true);
    this.#walk.fromSubject(WILDCARD_NODE, true);
  }

  #stepConfirm(sliceEndMs: number): boolean {
    const end = Math.min(this.#walk.count, this.#next + SURE_PER_STEP);
    for (; this.#next < end; this.#next++) {
      const entity = this.#walk.entityAt(this.#next);
      if (!this.#walk.isSureAt(this.#next)) return this.#confirm(entity, sliceEndMs);
      this.#found[this.#foundCount++] = entity;
    }
    if (end === this.#walk.count) this.#phase = 'sort';
    return true;
  }

  #confirm(entity: number, sliceEndMs: number): boolean {
    if (!this.#isConfirming) this.#confirmation.start(entity);
    this.#isConfirming = true;
    if (this.#confirmation.run(sliceEndMs) === 'more') return false;
    this.#isConfirming = false;
    if (this.#confirmation.value === TRUE) this.#found[this.#foundCount++] = entity;
    this.#next++;
    return true;
  }
}

/** The same with the ids as strings. */
export class ListObjectsRun implements EvaluationTask<readonly string[]> {
  readonly #scope: Scope;
  readonly #run: ListEntitiesRun;
  readonly #texts: string[] = [];

  constructor(scope: Scope, namespace: number, relation: number, userNode: number) {
    this.#scope = scope;
    this.#run = new ListEntitiesRun(scope, namespace, relation, userNode);
  }

  get backstops(): number {
    return this.#run.backstops;
  }

  result(): readonly string[] {
    return this.#texts;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    if (this.#run.run(sliceEndMs) === 'more') return 'more';
    const { clock, reader } = this.#scope;
    const entities = this.#run.result();
    while (this.#texts.length < entities.length) {
      const end = Math.min(entities.length, this.#texts.length + TEXTS_PER_STEP);
      for (let i = this.#texts.length; i < end; i++) {
        this.#texts.push(reader.entityText(entities[i] as number));
      }
      if (end < entities.length && clock.monotonicMs() >= sliceEndMs) return 'more';
    }
    return 'done';
  }
}
