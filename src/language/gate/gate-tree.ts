/**
 * The syntax tree of `.gate` text: the whole content including comments, without layout. Every tree
 * prints as exactly one text. A tree made from a document therefore prints like the formatter's
 * output for the same model.
 */

/** Comments on lines of their own in order, as `// text`; '' is a blank line next to them. */
export type Comments = readonly string[];

/**
 * A part of the tree that has comments: those on the lines before it, and the one behind it on its
 * last line.
 */
export type Item = {
  readonly leading: Comments;
  readonly trailing: string | undefined;
  /** Offset in the text; -1 in a tree that was made from a document. */
  readonly at: number;
};

export type GateTree = {
  readonly schema: SchemaStatement | undefined;
  /** `built-in`: there are no namespaces, so that the built-in model applies. */
  readonly builtIn: Item | undefined;
  /** `conditions none`: the document has an empty member `conditions`. */
  readonly noConditions: Item | undefined;
  readonly conditions: readonly ConditionStatement[];
  readonly namespaces: readonly NamespaceStatement[];
  /** Comments behind the last statement. */
  readonly dangling: Comments;
};

export type SchemaStatement = Item & { readonly version: number };

export type ConditionStatement = Item & {
  readonly name: string;
  /** Undefined: the document has no member `parameters`. */
  readonly parameters: readonly Parameter[] | undefined;
  readonly expression: string;
  readonly expressionAt: number;
};

export type Parameter = Item & { readonly name: string; readonly type: string };

export type NamespaceStatement = Item & {
  readonly name: string;
  /** Undefined: the document has no member `open`. */
  readonly open: boolean | undefined;
  /** The comment behind the opening brace. */
  readonly headerTrailing: string | undefined;
  readonly relations: readonly RelationStatement[];
  /** Comments before the closing brace. */
  readonly dangling: Comments;
};

export type RelationStatement = Item & {
  readonly name: string;
  /** Subjects in front of the colon, for a rule without a stored part that could hold them. */
  readonly subjects: SubjectEntryList | undefined;
  /** Undefined: `relation name`, a document without a member. */
  readonly rule: Rule | undefined;
};

/**
 * The rule of a relation: the operands of its outermost operator, each on a separate line if
 * necessary.
 */
export type Rule = { readonly op: RuleOperator; readonly operands: readonly Operand[] };
export type RuleOperator = 'single' | CompositeOperator;
export type CompositeOperator = 'union' | 'intersection' | 'exclusion';

export type Operand = Item & { readonly term: Term };

export type Term =
  | { readonly kind: 'empty'; readonly at: number }
  | { readonly kind: 'this'; readonly at: number }
  | { readonly kind: 'subjects'; readonly at: number; readonly list: SubjectEntryList }
  | { readonly kind: 'computed'; readonly at: number; readonly name: string }
  | {
      readonly kind: 'walk';
      readonly at: number;
      readonly computed: string;
      readonly tupleset: string;
    }
  | {
      readonly kind: 'composite';
      readonly at: number;
      readonly op: CompositeOperator;
      readonly terms: readonly Term[];
    };

export type SubjectEntryList = {
  readonly entries: readonly SubjectEntry[];
  /** Comments before the closing bracket. */
  readonly dangling: Comments;
};

export type SubjectEntry = Item & {
  /** `user`, `user:*`, `group`, `group#member`. */
  readonly type: string;
  /** True if the document's entry is an object although it demands nothing. */
  readonly isObject: boolean;
  readonly condition: string | undefined;
  readonly expires: boolean | undefined;
};

/** An item without comments. */
export const BARE: Item = { leading: [], trailing: undefined, at: -1 };
