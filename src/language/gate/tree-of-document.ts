import { MODEL_NESTING_MAX } from '../../model/namespace/model-document.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import {
  BARE,
  type ConditionStatement,
  type GateTree,
  type NamespaceStatement,
  type Operand,
  type RelationStatement,
  type Rule,
  type SubjectEntry,
  type Term,
} from './gate-tree.ts';
import { placeSubjects } from './place-subjects.ts';

type DocumentObject = { readonly [member: string]: unknown };

/**
 * The tree of a model's JSON form. Refuses what the tree cannot hold, so that nothing is lost:
 * unknown members, values of another type, ill-formed text. Does not check names and references.
 * Drops `$schema`, which is for editors of JSON.
 * Errors: MODEL_INVALID naming the JSON path. O(size).
 */
export function treeOfDocument(document: unknown): GateTree {
  const root = objectOf(document, '$', ['$schema', 'schema_version', 'conditions', 'namespaces']);
  const schema = root['$schema'];
  if (schema !== undefined) textOf(schema, '$.$schema');
  const version = root['schema_version'];
  if (version !== undefined && version !== 1) throw documentError('$.schema_version', 'must be 1');
  const conditions = root['conditions'];
  const namespaces = entriesOf(root['namespaces'], '$.namespaces');
  const declared = conditions === undefined ? [] : entriesOf(conditions, '$.conditions');
  const hasNone = conditions !== undefined && declared.length === 0;
  return {
    schema: version === undefined ? undefined : { ...BARE, version },
    builtIn: namespaces.length === 0 ? BARE : undefined,
    noConditions: hasNone ? BARE : undefined,
    conditions: declared.map(([name, value]) => conditionOf(name, value)),
    namespaces: namespaces.map(([name, value]) => namespaceOf(name, value)),
    dangling: [],
  };
}

function conditionOf(name: string, value: unknown): ConditionStatement {
  const path = `$.conditions.${name}`;
  const document = objectOf(value, path, ['parameters', 'expression']);
  const types = document['parameters'];
  const parameters =
    types === undefined
      ? undefined
      : entriesOf(types, `${path}.parameters`).map(([parameter, type]) => ({
          ...BARE,
          name: parameter,
          type: textOf(type, `${path}.parameters.${parameter}`),
        }));
  const expression = textOf(document['expression'], `${path}.expression`);
  return { ...BARE, name, parameters, expression, expressionAt: -1 };
}

function namespaceOf(name: string, value: unknown): NamespaceStatement {
  const path = `$.namespaces.${name}`;
  const document = objectOf(value, path, ['open', 'relations']);
  const relations = entriesOf(document['relations'], `${path}.relations`).map(([relation, inner]) =>
    relationOf(relation, inner, `${path}.relations.${relation}`),
  );
  const isOpen = document['open'];
  const open = isOpen === undefined ? undefined : booleanOf(isOpen, `${path}.open`);
  return { ...BARE, name, open, headerTrailing: undefined, relations, dangling: [] };
}

function relationOf(name: string, value: unknown, path: string): RelationStatement {
  const { subjects, ...rewrite } = objectOf(value, path);
  const bare = { ...BARE, name };
  const list =
    subjects === undefined
      ? undefined
      : {
          entries: listOf(subjects, `${path}.subjects`).map((entry, index) =>
            subjectOf(entry, `${path}.subjects[${index}]`),
          ),
          dangling: [],
        };
  if (Object.keys(rewrite).length === 0) {
    const term: Term | undefined = list && { kind: 'subjects', at: -1, list };
    const rule: Rule | undefined = term && { op: 'single', operands: [{ ...BARE, term }] };
    return { ...bare, subjects: undefined, rule };
  }
  const term = termOf(rewrite, path, 1);
  const rule: Rule =
    term.kind === 'composite'
      ? { op: term.op, operands: term.terms.map((one): Operand => ({ ...BARE, term: one })) }
      : { op: 'single', operands: [{ ...BARE, term }] };
  return placeSubjects({ ...bare, subjects: list, rule });
}

function subjectOf(value: unknown, path: string): SubjectEntry {
  if (typeof value === 'string') {
    const entry = { ...BARE, type: textOf(value, path), isObject: false };
    return { ...entry, condition: undefined, expires: undefined };
  }
  const document = objectOf(value, path, ['type', 'condition', 'expires']);
  const { condition, expires } = document;
  return {
    ...BARE,
    type: textOf(document['type'], `${path}.type`),
    isObject: condition === undefined && expires === undefined,
    condition: condition === undefined ? undefined : textOf(condition, `${path}.condition`),
    expires: expires === undefined ? undefined : booleanOf(expires, `${path}.expires`),
  };
}

function termOf(value: unknown, path: string, nesting: number): Term {
  if (nesting > MODEL_NESTING_MAX) {
    throw documentError(path, `is nested more than ${MODEL_NESTING_MAX} deep`);
  }
  const document = objectOf(value, path);
  const [member, ...others] = Object.keys(document);
  if (member === undefined) return { kind: 'empty', at: -1 };
  if (others.length > 0) throw documentError(path, 'must have exactly one member');
  const inner = document[member];
  const innerPath = `${path}.${member}`;
  switch (member) {
    case 'this':
      objectOf(inner, innerPath, []);
      return { kind: 'this', at: -1 };
    case 'computed':
      return { kind: 'computed', at: -1, name: textOf(inner, innerPath) };
    case 'tuple_to_userset': {
      const walk = objectOf(inner, innerPath, ['tupleset', 'computed']);
      const tupleset = textOf(walk['tupleset'], `${innerPath}.tupleset`);
      return { kind: 'walk', at: -1, tupleset, computed: textOf(walk['computed'], innerPath) };
    }
    case 'union':
    case 'intersection': {
      const terms = listOf(inner, innerPath).map((child, index) =>
        termOf(child, `${innerPath}[${index}]`, nesting + 1),
      );
      if (terms.length === 0) throw documentError(innerPath, 'must not be empty');
      return { kind: 'composite', at: -1, op: member, terms };
    }
    case 'exclusion': {
      const exclusion = objectOf(inner, innerPath, ['include', 'exclude']);
      const terms = ['include', 'exclude'].map((side) =>
        termOf(exclusion[side], `${innerPath}.${side}`, nesting + 1),
      );
      return { kind: 'composite', at: -1, op: 'exclusion', terms };
    }
    default:
      throw documentError(innerPath, 'is not a known member');
  }
}

function objectOf(value: unknown, path: string, known?: readonly string[]): DocumentObject {
  if (value === undefined) throw documentError(path, 'is required');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw documentError(path, 'must be an object');
  }
  const unknown = Object.keys(value).find((member) => known?.includes(member) === false);
  if (unknown !== undefined) throw documentError(`${path}.${unknown}`, 'is not a known member');
  return value as DocumentObject;
}

function entriesOf(value: unknown, path: string): readonly (readonly [string, unknown])[] {
  const entries = Object.entries(objectOf(value, path));
  for (const [name] of entries) textOf(name, `${path}.${name}`);
  return entries;
}

function listOf(value: unknown, path: string): readonly unknown[] {
  if (!Array.isArray(value)) throw documentError(path, 'must be a list');
  return value;
}

function textOf(value: unknown, path: string): string {
  if (typeof value !== 'string') throw documentError(path, 'must be a string');
  if (!value.isWellFormed()) throw documentError(path, 'is not well-formed Unicode');
  return value;
}

function booleanOf(value: unknown, path: string): boolean {
  if (typeof value !== 'boolean') throw documentError(path, 'must be true or false');
  return value;
}

function documentError(path: string, problem: string): AppError {
  return new AppError<AuthzReason>('MODEL_INVALID', `model_json: ${path}: ${problem}`, {
    field: 'model_json',
    path,
  });
}
