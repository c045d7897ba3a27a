import type { Mark } from './tuple-parts.ts';

/** Counts the tuples of an export by its marks: each beginning counts from 0 again. */
export class TupleTally {
  #before = 0;
  #current = 0;

  get count(): number {
    return this.#before + this.#current;
  }

  pass({ begin: isBegin, count }: Mark): void {
    if (isBegin === true) {
      this.#before += this.#current;
      this.#current = 0;
    } else this.#current = count ?? this.#current;
  }
}
