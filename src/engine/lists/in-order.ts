import type { Steps } from '../general/gate-system.ts';
import { SlicedSort } from '../general/sliced-sort.ts';

const WORK_PER_STEP = 64;
/** Below this part of the values a heap hands them out with fewer comparisons than sorting them takes. */
const HEAP_PART = 8;

/**
 * Hands out values from the smallest on, without sorting many more than are taken: a page of a
 * list costs 2 comparisons a value, and 2 × log2 of their number for each that is taken.
 */
export class InOrder {
  readonly #compare: (a: number, b: number) => number;
  readonly #isSorted: boolean;
  #values: Uint32Array;
  #count: number;
  #next = 0;

  /** `expected`: how many will be taken, about. `values` is the callee's. */
  constructor(values: Uint32Array, compare: (a: number, b: number) => number, expected: number) {
    this.#values = values;
    this.#compare = compare;
    this.#count = values.length;
    this.#isSorted = expected > values.length / HEAP_PART;
  }

  /** To be run to its end before anything is taken. */
  *prepare(): Steps<void> {
    if (this.#isSorted) {
      const sort = new SlicedSort(this.#values, this.#compare);
      while (sort.step()) yield;
      this.#values = sort.values;
      return;
    }
    for (let at = (this.#count >> 1) - 1; at >= 0; at--) {
      this.#sink(at);
      if (at % WORK_PER_STEP === 0) yield;
    }
  }

  /** The smallest value that was not taken yet, or -1. */
  next(): number {
    if (this.#next === this.#count) return -1;
    if (this.#isSorted) {
      this.#next++;
      return this.#values[this.#next - 1] as number;
    }
    const least = this.#values[0] as number;
    this.#count--;
    this.#values[0] = this.#values[this.#count] as number;
    this.#sink(0);
    return least;
  }

  /** Restores the heap below `at`: no value is smaller than the one above it. */
  #sink(at: number): void {
    const values = this.#values;
    const value = values[at] as number;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.#count) break;
      if (child + 1 < this.#count && this.#isLess(child + 1, child)) child++;
      if (this.#compare(values[child] as number, value) >= 0) break;
      values[at] = values[child] as number;
      at = child;
    }
    values[at] = value;
  }

  #isLess(a: number, b: number): boolean {
    return this.#compare(this.#values[a] as number, this.#values[b] as number) < 0;
  }
}
