import type { BodyBudget, BodyHold, HeldBody } from '../bodies/body-budget.ts';
import { PieceGatherer } from '../bodies/piece-gatherer.ts';
import type { UnreadBytes } from './own-stream.ts';

/** Bytes of a body that wait for its reader, in blocks that count against the budget of all bodies. */
export class CountedUnreadBytes implements UnreadBytes, HeldBody {
  readonly #gatherer = new PieceGatherer();
  readonly #hold: BodyHold;

  constructor(budget: BodyBudget, owner: string) {
    this.#hold = budget.open(owner, this);
  }

  get length(): number {
    return this.#gatherer.length;
  }

  add(chunk: Uint8Array): boolean {
    this.#gatherer.add(chunk);
    return this.#counted();
  }

  shift(): Uint8Array {
    const bytes = this.#gatherer.shift();
    this.#counted();
    return bytes;
  }

  moveTo(owner: string): boolean {
    return this.#hold.moveTo(owner) === null;
  }

  release(): void {
    this.#gatherer.clear();
    this.#hold.release();
  }

  /** Never called: it waits for us, and not for who sends it. */
  cutForCapacity(): void {
    this.#gatherer.clear();
  }

  #counted(): boolean {
    return this.#hold.set(this.#gatherer.capacity, false) === null;
  }
}
