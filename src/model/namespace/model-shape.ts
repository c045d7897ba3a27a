import type { ConditionDeclarations } from '../conditions/model-conditions.ts';

/** A kind of subjects that a relation admits, with the condition and expiry that its tuples must have. */
export type SubjectType = {
  /** Concrete users, the public wildcard, objects themselves, the wildcard of a namespace, or the usersets of a relation. */
  readonly kind: 'user' | 'wildcard' | 'object' | 'wildcardOf' | 'userset';
  /** '' for users and the public wildcard. */
  readonly namespace: string;
  /** '' for all but usersets. */
  readonly relation: string;
  /** The condition that the tuple must name; '': it must name none. */
  readonly condition: string;
  /** Whether the tuple must expire (true) or must not (false); undefined: as it likes. */
  readonly expires: boolean | undefined;
};

/**
 * A model as it decides: namespace → relation → rewrite; what is not listed is this(), plain stored
 * tuples. A model in which any relation says its subjects is *typed*: what is written must fit it.
 */
export type NamespaceModel = {
  readonly namespaces: ReadonlyMap<string, ReadonlyMap<string, Rewrite>>;
  /** Namespaces that hold more than they declare: what they do not declare is not looked at. */
  readonly open: ReadonlySet<string>;
  /** Namespace → relation → its subjects, each an alternative. Empty exactly where the model is not typed. */
  readonly subjects: ReadonlyMap<string, ReadonlyMap<string, readonly SubjectType[]>>;
  /** Conditions that the model declares, in addition to the built-in ones. */
  readonly conditions: ConditionDeclarations;
  /** Whether stored tuples that it does not admit are passed over; absent: they count. Only where it is typed. */
  readonly admittedOnly?: true;
};

/**
 * The model version for a version of a project's history, under which only admitted tuples count. It is
 * negative, so that it differs from every version under which settings distributed a model, all of whose
 * tuples count.
 */
export function documentVersion(version: number): number {
  return -version;
}

/** The rule of a relation: how its userset follows from stored tuples. */
export type Rewrite =
  | { readonly op: 'this' }
  | { readonly op: 'computed'; readonly relation: string }
  | { readonly op: 'tupleToUserset'; readonly tupleset: string; readonly computed: string }
  | { readonly op: 'union' | 'intersection'; readonly children: readonly Rewrite[] }
  | { readonly op: 'exclusion'; readonly include: Rewrite; readonly exclude: Rewrite };
