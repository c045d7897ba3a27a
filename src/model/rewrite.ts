/** The rule of a relation: how its userset follows from stored tuples. */
export type Rewrite =
  | { readonly op: 'this' }
  | { readonly op: 'computed'; readonly relation: string }
  | { readonly op: 'tupleToUserset'; readonly tupleset: string; readonly computed: string }
  | { readonly op: 'union' | 'intersection'; readonly children: readonly Rewrite[] }
  | { readonly op: 'exclusion'; readonly include: Rewrite; readonly exclude: Rewrite };
