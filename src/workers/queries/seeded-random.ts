import { assert } from '../../shared/assert.ts';

/** Numbers thrown away at first, so that near seeds give sequences that have nothing in common. */
const WARM_UP = 16;

/**
 * Numbers that follow from a seed (sfc32, Chris Doty-Humphrey, PractRand): for draws that can be repeated, not for
 * secrets.
 */
export class SeededRandom {
  #a: number;
  #b: number;
  #c = 0x9e37_79b9;
  #counter = 1;

  /** Two unsigned 32-bit numbers. */
  constructor(high: number, low: number) {
    this.#a = high | 0;
    this.#b = low | 0;
    for (let i = 0; i < WARM_UP; i++) this.#next();
  }

  /** An integer from 0 to `bound` - 1. */
  below(bound: number): number {
    assert(bound >= 1 && bound <= 0x1_0000_0000, 'a bound of a draw is positive and has 32 bits');
    return Math.floor((this.#next() / 0x1_0000_0000) * bound);
  }

  /** One of `values`, which has some. */
  of<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    this.#c |= 0;
    return sum >>> 0;
  }
}
