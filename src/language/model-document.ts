/** The JSON form of a model, as it is stored: what `parseModel` takes, as a value. */
export type ModelDocument = {
  /** Address of the schema, for editors of JSON; it has no effect on the model. */
  readonly $schema?: string;
  readonly schema_version?: number;
  readonly conditions?: { readonly [name: string]: ConditionDocument };
  readonly namespaces: { readonly [name: string]: NamespaceDocument };
};

/** A condition that the model declares: its parameters' types by name, and an expression in CEL. */
export type ConditionDocument = {
  readonly parameters?: { readonly [name: string]: string };
  readonly expression: string;
};

export type NamespaceDocument = {
  readonly open?: boolean;
  readonly relations: { readonly [name: string]: RelationDocument };
};

/** A rewrite, with who may be a stored subject beside it. */
export type RelationDocument = RewriteDocument & {
  readonly subjects?: readonly SubjectDocument[];
};

/** At most one member is there; none, like `this`, are the stored tuples. */
export type RewriteDocument = {
  readonly this?: { readonly [member: string]: never };
  readonly computed?: string;
  readonly tuple_to_userset?: { readonly tupleset: string; readonly computed: string };
  readonly union?: readonly RewriteDocument[];
  readonly intersection?: readonly RewriteDocument[];
  readonly exclusion?: { readonly include: RewriteDocument; readonly exclude: RewriteDocument };
};

/** `user`, `user:*`, `NS`, `NS#REL`, or one of these that demands a condition or says of an expiry. */
export type SubjectDocument =
  | string
  | { readonly type: string; readonly condition?: string; readonly expires?: boolean };
