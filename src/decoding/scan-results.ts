import type { FieldShape } from './message-shape.ts';

/** A list that hangs on the root by single messages, and the ranges of its items. */
export type FoundList = {
  /** Path from the root; the list is last. */
  readonly path: readonly FieldShape[];
  /** Range of all items, in bytes from the start of the body. */
  readonly from: number;
  readonly to: number;
  readonly count: number;
  /**
   * Alternating starts and ends of runs of items that are read at once; empty if there are too many
   * items.
   */
  readonly runs: readonly number[];
};

/**
 * A long text of the root, or of a message that hangs on it by single messages; the range includes
 * its quotes.
 */
export type FoundText = {
  readonly path: readonly FieldShape[];
  readonly from: number;
  readonly to: number;
};

/** Bytes and values of one run at most, unless a single item has more. */
const RUN_BYTES = 8_192;
const RUN_VALUES = 256;

/** Gathers items of a list into runs. */
export class ListRuns {
  count = 0;
  readonly #itemsMax: number;
  readonly #gapIsEnd: boolean;
  readonly #runs: number[] = [];
  #from = -1;
  #to = -1;
  #values = 0;

  /** `gapIsEnd`: bytes between two items do not belong to the list, so that a gap ends a run. */
  constructor(itemsMax: number, gapIsEnd: boolean) {
    this.#itemsMax = itemsMax;
    this.#gapIsEnd = gapIsEnd;
  }

  add(from: number, to: number, values: number): void {
    this.count += 1;
    if (this.count > this.#itemsMax) return;
    const isFull = to - this.#from > RUN_BYTES || this.#values + values > RUN_VALUES;
    if (isFull || (this.#gapIsEnd && from !== this.#to)) this.#close();
    if (this.#from < 0) this.#from = from;
    this.#to = to;
    this.#values += values;
  }

  finish(): readonly number[] {
    if (this.count > this.#itemsMax) return [];
    this.#close();
    return this.#runs;
  }

  #close(): void {
    if (this.#from >= 0) this.#runs.push(this.#from, this.#to);
    this.#from = -1;
    this.#values = 0;
  }
}

/** Path of a scanner's current field, for error messages. Strings are made only for these. */
export class FieldPath {
  depth = 0;
  readonly #fields: FieldShape[] = [];
  /** Depth of the list whose items are being scanned; -1: none. */
  #listAt = -1;
  #index = -1;

  /** Index of the current item of the innermost field, which is a list; -1 at its end. */
  set index(index: number) {
    this.#index = index;
    this.#listAt = index < 0 ? -1 : this.#fields.length - 1;
  }

  enter(field: FieldShape): void {
    this.#fields.push(field);
  }

  leave(): void {
    this.#fields.pop();
  }

  fields(): readonly FieldShape[] {
    return [...this.#fields];
  }

  /** "updates[3].tuple.condition_params"; '' at the root. */
  text(): string {
    return this.#fields
      .map(({ name }, i) => (i === this.#listAt ? `${name}[${this.#index}]` : name))
      .join('.');
  }
}
