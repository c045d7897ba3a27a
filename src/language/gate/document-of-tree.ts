import type {
  ConditionDocument,
  ModelDocument,
  NamespaceDocument,
  RelationDocument,
  RewriteDocument,
  SubjectDocument,
} from '../model-document.ts';
import type {
  CompositeOperator,
  ConditionStatement,
  GateTree,
  NamespaceStatement,
  RelationStatement,
  SubjectEntry,
  SubjectEntryList,
  Term,
} from './gate-tree.ts';

/** Offsets in the text of the parts of a document, by JSON path. */
export type Places = Map<string, number>;

/** The document of a tree, and the places of its parts. O(size). */
export function documentOfTree(tree: GateTree): {
  readonly document: ModelDocument;
  readonly places: Places;
} {
  const places: Places = new Map([['$', 0]]);
  const conditions = tree.conditions.map((one) => conditionEntry(one, places));
  const namespaces = tree.namespaces.map((one) => namespaceEntry(one, places));
  const document: ModelDocument = {
    ...(tree.schema === undefined ? {} : { schema_version: tree.schema.version }),
    ...(conditions.length === 0 && tree.noConditions === undefined
      ? {}
      : { conditions: Object.fromEntries(conditions) }),
    namespaces: Object.fromEntries(namespaces),
  };
  return { document, places };
}

function conditionEntry(
  { name, at, parameters, expression, expressionAt }: ConditionStatement,
  places: Places,
): [string, ConditionDocument] {
  const path = `$.conditions.${name}`;
  places.set(path, at).set(`${path}.expression`, expressionAt);
  for (const parameter of parameters ?? []) {
    places.set(`${path}.parameters.${parameter.name}`, parameter.at);
  }
  if (parameters === undefined) return [name, { expression }];
  const types = parameters.map((parameter) => [parameter.name, parameter.type] as const);
  return [name, { parameters: Object.fromEntries(types), expression }];
}

function namespaceEntry(
  { name, at, open, relations }: NamespaceStatement,
  places: Places,
): [string, NamespaceDocument] {
  const path = `$.namespaces.${name}`;
  places.set(path, at);
  const documents = Object.fromEntries(
    relations.map((relation) => [
      relation.name,
      relationDocument(relation, `${path}.relations.${relation.name}`, places),
    ]),
  );
  return [name, { ...(open === undefined ? {} : { open }), relations: documents }];
}

function relationDocument(
  relation: RelationStatement,
  path: string,
  places: Places,
): RelationDocument {
  places.set(path, relation.at);
  const context: Context = { places, list: undefined, path };
  const { rule } = relation;
  const only = rule?.op === 'single' ? rule.operands[0]?.term : undefined;
  let rewrite: RewriteDocument = {};
  if (only?.kind === 'subjects') {
    context.list = subjectDocuments(only.list, path, places);
  } else if (only !== undefined) {
    rewrite = rewriteOf(only, path, context);
  } else if (rule !== undefined && rule.op !== 'single') {
    const terms = rule.operands.map(({ term }) => term);
    rewrite = compositeOf(rule.op, terms, path, context);
  }
  if (relation.subjects !== undefined) {
    context.list = subjectDocuments(relation.subjects, path, places);
  }
  return context.list === undefined ? rewrite : { ...rewrite, subjects: context.list };
}

type Context = {
  readonly places: Places;
  readonly path: string;
  list: readonly SubjectDocument[] | undefined;
};

function rewriteOf(term: Term, path: string, context: Context): RewriteDocument {
  context.places.set(path, term.at);
  switch (term.kind) {
    case 'empty':
      return {};
    case 'this':
      return { this: {} };
    case 'subjects':
      context.list = subjectDocuments(term.list, context.path, context.places);
      return { this: {} };
    case 'computed':
      return { computed: term.name };
    case 'walk':
      return { tuple_to_userset: { tupleset: term.tupleset, computed: term.computed } };
    case 'composite':
      return compositeOf(term.op, term.terms, path, context);
  }
}

function compositeOf(
  op: CompositeOperator,
  terms: readonly Term[],
  path: string,
  context: Context,
): RewriteDocument {
  if (op === 'exclusion') {
    const [include, exclude] = terms as readonly [Term, Term];
    return {
      exclusion: {
        include: rewriteOf(include, `${path}.exclusion.include`, context),
        exclude: rewriteOf(exclude, `${path}.exclusion.exclude`, context),
      },
    };
  }
  const children = terms.map((term, index) => rewriteOf(term, `${path}.${op}[${index}]`, context));
  return op === 'union' ? { union: children } : { intersection: children };
}

function subjectDocuments(
  list: SubjectEntryList,
  path: string,
  places: Places,
): readonly SubjectDocument[] {
  return list.entries.map((entry, index) => {
    places.set(`${path}.subjects[${index}]`, entry.at);
    return subjectDocument(entry);
  });
}

function subjectDocument({ type, isObject, condition, expires }: SubjectEntry): SubjectDocument {
  if (!isObject && condition === undefined && expires === undefined) return type;
  return {
    type,
    ...(condition === undefined ? {} : { condition }),
    ...(expires === undefined ? {} : { expires }),
  };
}
