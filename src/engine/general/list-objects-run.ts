import { WILDCARD_NODE } from '../../model/tuple-reader.ts';
import type { EvaluationTask } from '../bound/evaluator-api.ts';
import type { Scope } from '../bound/scope.ts';
import { ObjectCheck } from './object-check.ts';
import { ObjectWalk, SURE } from './object-walk.ts';
import { SlicedSort } from './sliced-sort.ts';

const STEPS_PER_CLOCK_LOOK = 32;
const TEXTS_PER_STEP = 64;
/** Steps that a piece of a list, of a sort or of texts counts for. */
const STEPS_OF_PIECE = 8;

type Phase = 'start' | 'walk' | 'confirm' | 'sort' | 'text' | 'done';

/**
 * The objects of a namespace on which a user holds a relation, found backwards from the tuples of
 * the user and of the wildcard. What was reached through unions alone is an answer; what met an
 * intersection or exclusion is confirmed forward. Relations that no tuple and no rewrite refers to
 * cost nothing further. Sorted by the objects' ids in UTF-8 byte order.
 */
export class ListObjectsRun implements EvaluationTask<readonly string[]> {
  readonly #scope: Scope;
  readonly #namespace: number;
  readonly #relation: number;
  readonly #userNode: number;
  readonly #confirmation: ObjectCheck;
  readonly #walk: ObjectWalk;
  readonly #found: number[] = [];
  readonly #texts: string[] = [];
  #sort: SlicedSort | undefined;
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
    this.#confirmation = new ObjectCheck(scope, userNode, relation);
  }

  get backstops(): number {
    return this.#scope.backstops;
  }

  result(): readonly string[] {
    return this.#texts;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    let steps = 0;
    while (this.#phase !== 'done') {
      const isPiece = this.#walk.isReading || this.#phase === 'sort' || this.#phase === 'text';
      if (!this.#step(sliceEndMs)) return 'more';
      steps += isPiece ? STEPS_OF_PIECE : 1;
      if (steps < STEPS_PER_CLOCK_LOOK) continue;
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
        if (!this.#walk.step()) this.#phase = 'confirm';
        return true;
      case 'confirm':
        return this.#stepConfirm(sliceEndMs);
      case 'sort':
        this.#sort ??= new SlicedSort(Uint32Array.from(this.#found), (a, b) =>
          this.#scope.reader.compareEntityIds(a, b),
        );
        if (!this.#sort.step()) this.#phase = 'text';
        return true;
      case 'text':
        this.#stepText();
        return true;
      case 'done':
        return true;
    }
  }

  #start(): void {
    if (this.#userNode !== 0) this.#walk.fromSubject(this.#userNode, SURE);
    this.#walk.fromSubject(WILDCARD_NODE, SURE);
  }

  #stepConfirm(sliceEndMs: number): boolean {
    if (this.#next >= this.#walk.count) {
      this.#next = 0;
      this.#phase = 'sort';
      return true;
    }
    const entity = this.#walk.entityAt(this.#next);
    if (!this.#walk.isSureAt(this.#next)) {
      if (!this.#isConfirming) this.#confirmation.start(entity);
      this.#isConfirming = true;
      if (this.#confirmation.run(sliceEndMs) === 'more') return false;
      this.#isConfirming = false;
      if (this.#confirmation.isHeld) this.#found.push(entity);
    } else {
      this.#found.push(entity);
    }
    this.#next++;
    return true;
  }

  #stepText(): void {
    const sorted = (this.#sort as SlicedSort).values;
    const end = Math.min(sorted.length, this.#next + TEXTS_PER_STEP);
    for (; this.#next < end; this.#next++) {
      this.#texts.push(this.#scope.reader.entityText(sorted[this.#next] as number));
    }
    if (this.#next === sorted.length) this.#phase = 'done';
  }
}
