// What a micro-benchmark is; yields nothing by itself.
/** A micro-benchmark: one number, in nanoseconds an operation. */
export type MicroBench = {
  readonly name: string;
  /** What the number says. */
  readonly yields: string;
  /** Operations of one call of the function that `prepare` makes. */
  readonly operations: number;
  /** Builds the data, compares answers with what is known, and returns the work to measure. */
  readonly prepare: () => () => unknown;
};

/** Numbered things, made once before anything is measured. */
export function listOf<T>(count: number, make: (index: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

/** Fails a bench whose work is wrong: a rate of wrong answers is worth nothing. */
export function mustHold(holds: boolean, what: string): void {
  if (!holds) throw new Error(`a benchmark does not do its work: ${what}`);
}
