import type { ConditionDeclarations } from '../conditions/model-conditions.ts';

/** A type of subject that a relation admits, and the condition and expiry that its tuples must have. */
export type SubjectType = {
  /**
   * Kind: concrete users, the public wildcard, objects themselves, the wildcard of a namespace, or the usersets of a
   * relation.
   */
  readonly kind: 'user' | 'wildcard' | 'object' | 'wildcardOf' | 'userset';
  /** Namespace of the subject; '' for users and the public wildcard. */
  readonly namespace: string;
  /** Relation of usersets; '' for all other kinds. */
  readonly relation: string;
  /** Condition that the tuple must name; '' if it must not name any. */
  readonly condition: string;
  /** Whether the tuple must expire (true) or must not (false); undefined if both are admitted. */
  readonly expires: boolean | undefined;
};

/**
 * A model in the form that decisions use: namespace → relation → rewrite. A relation that is not listed is this(),
 * plain stored tuples. A model is *typed* if any relation declares its subjects: written tuples must then fit it.
 */
export type NamespaceModel = {
  readonly namespaces: ReadonlyMap<string, ReadonlyMap<string, Rewrite>>;
  /** Namespaces that may have more relations than they declare. Undeclared ones are not checked. */
  readonly open: ReadonlySet<string>;
  /** Namespace → relation → its subjects, each an alternative. Empty exactly if the model is not typed. */
  readonly subjects: ReadonlyMap<string, ReadonlyMap<string, readonly SubjectType[]>>;
  /** Conditions that the model declares, in addition to the built-in ones. */
  readonly conditions: ConditionDeclarations;
  /** Whether stored tuples that it does not admit are ignored; absent if they count. Only for typed models. */
  readonly admittedOnly?: true;
};

/**
 * Model version for a version of a project's history, for which only admitted tuples count. It is negative, so that it
 * never equals a version under which settings distributed a model. For those, all tuples count.
 */
export function documentVersion(version: number): number {
  return -version;
}

/** Rule of a relation: how its userset follows from stored tuples. */
export type Rewrite =
  | { readonly op: 'this' }
  | { readonly op: 'computed'; readonly relation: string }
  | { readonly op: 'tupleToUserset'; readonly tupleset: string; readonly computed: string }
  | { readonly op: 'union' | 'intersection'; readonly children: readonly Rewrite[] }
  | { readonly op: 'exclusion'; readonly include: Rewrite; readonly exclude: Rewrite };
