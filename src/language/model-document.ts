/** The stored JSON form of a model, which `parseModel` takes as text. */
export type ModelDocument = {
  /** Location of the schema for editors of JSON; not part of the model. */
  readonly $schema?: string;
  readonly schema_version?: number;
  readonly conditions?: { readonly [name: string]: ConditionDocument };
  readonly namespaces: { readonly [name: string]: NamespaceDocument };
};

/**
 * A condition that the model declares: the types of its parameters by name, and an expression in
 * CEL.
 */
export type ConditionDocument = {
  readonly parameters?: { readonly [name: string]: string };
  readonly expression: string;
};

export type NamespaceDocument = {
  readonly open?: boolean;
  readonly relations: { readonly [name: string]: RelationDocument };
};

/** A rewrite, and the subjects that may be stored on the relation. */
export type RelationDocument = RewriteDocument & {
  readonly subjects?: readonly SubjectDocument[];
};

/** Has at most one member. Without any, it means the stored tuples, like `this`. */
export type RewriteDocument = {
  readonly this?: { readonly [member: string]: never };
  readonly computed?: string;
  readonly tuple_to_userset?: { readonly tupleset: string; readonly computed: string };
  readonly union?: readonly RewriteDocument[];
  readonly intersection?: readonly RewriteDocument[];
  readonly exclusion?: { readonly include: RewriteDocument; readonly exclude: RewriteDocument };
};

/**
 * `user`, `user:*`, `NS`, `NS#REL`, or an object with one of these that demands a condition or sets
 * a rule for expiry.
 */
export type SubjectDocument =
  | string
  | { readonly type: string; readonly condition?: string; readonly expires?: boolean };
