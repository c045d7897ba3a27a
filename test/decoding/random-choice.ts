/** Choices of one body, all drawn from a seed (mulberry32): some nanoseconds each. */
export class Random {
  #state: number;
  /** How many places of a body hold one that is odd; 0: none does. */
  readonly #placesPerOdd: number;

  constructor(seed: number, body: number) {
    this.#state = (seed ^ Math.imul(body + 1, 0x9e37_79b1)) | 0;
    this.#placesPerOdd = this.pick([0, 0, 0, 120, 40, 12]);
  }

  /** A whole number from 0 to `below` - 1. */
  next(below: number): number {
    this.#state = (this.#state + 0x6d2b_79f5) | 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  }

  oneIn(count: number): boolean {
    return this.next(count) === 0;
  }

  /** Whether something odd stands at this place of the body. */
  odd(): boolean {
    return this.#placesPerOdd > 0 && this.oneIn(this.#placesPerOdd);
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[this.next(values.length)] as Value;
  }

  shuffle(values: unknown[]): void {
    for (let i = values.length - 1; i > 0; i--) {
      const other = this.next(i + 1);
      [values[i], values[other]] = [values[other], values[i]];
    }
  }
}
