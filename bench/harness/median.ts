// What benchmarks make of their rounds; yields nothing by itself.
/** The middle one, the upper one of two; NaN of none. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
