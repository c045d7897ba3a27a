const RUN_LENGTH = 32;
const MERGES_PER_STEP = 256;

/** A bottom-up merge sort that can stop anywhere: a long list must not hold up a worker. */
export class SlicedSort {
  /** Sorted once `step` has returned false. */
  values: Uint32Array;
  readonly #compare: (a: number, b: number) => number;
  #target: Uint32Array;
  #width = 0;
  #start = 0;
  #left = 0;
  #right = 0;
  #out = 0;

  constructor(values: Uint32Array, compare: (a: number, b: number) => number) {
    this.values = values;
    this.#compare = compare;
    this.#target = new Uint32Array(values.length);
  }

  /** A bounded piece of work (about 256 comparisons); false when sorted. */
  step(): boolean {
    if (this.#width === 0) return this.#sortRun();
    if (this.#width >= this.values.length) return false;
    for (let i = 0; i < MERGES_PER_STEP; i++) if (!this.#mergeOne()) return true;
    return true;
  }

  #sortRun(): boolean {
    const start = this.#start;
    const end = Math.min(this.values.length, start + RUN_LENGTH);
    this.values.subarray(start, end).sort(this.#compare);
    this.#start = end;
    if (end === this.values.length) {
      this.#width = RUN_LENGTH;
      this.#beginMerge(0);
    }
    return true;
  }

  #beginMerge(start: number): void {
    this.#start = start;
    this.#left = start;
    this.#right = Math.min(this.values.length, start + this.#width);
    this.#out = start;
  }

  /** Moves one value; false at the end of a pass. */
  #mergeOne(): boolean {
    const length = this.values.length;
    const middle = Math.min(length, this.#start + this.#width);
    const end = Math.min(length, this.#start + 2 * this.#width);
    if (this.#out === end) {
      if (end < length) {
        this.#beginMerge(end);
        return true;
      }
      [this.values, this.#target] = [this.#target, this.values];
      this.#width *= 2;
      this.#beginMerge(0);
      return false;
    }
    const left = this.values[this.#left] as number;
    const right = this.values[this.#right] as number;
    const takesLeft =
      this.#left < middle && (this.#right >= end || this.#compare(left, right) <= 0);
    this.#target[this.#out++] = takesLeft ? left : right;
    if (takesLeft) this.#left++;
    else this.#right++;
    return true;
  }
}
