import { problemOfCondition } from '../conditions/condition-admission.ts';
import { suggestion } from '../model-json.ts';
import type { RelationTuple } from '../relation-tuple.ts';
import { isTyped } from './model-references.ts';
import type { NamespaceModel, SubjectType } from './model-shape.ts';
import { subjectText } from './model-subjects.ts';

/** Problem of a tuple: the field that has it, and a message that names what is admitted. */
export type TupleProblem = {
  readonly field:
    | 'namespace'
    | 'relation'
    | 'subject'
    | 'condition_name'
    | 'condition_params'
    | 'expires_at';
  readonly message: string;
};

/** Whether a model restricts which tuples may be written. */
export function hasWriteRules(model: NamespaceModel): boolean {
  return isTyped(model) || model.conditions.size > 0;
}

/**
 * Reason for which a model does not admit a tuple that is to be written, or undefined. Untyped models, undeclared
 * namespaces and undeclared relations of open ones admit all subjects. They also admit any condition, if the model has
 * none of its own. Hot for writes: two lookups and the list of the relation's types.
 */
export function problemOfTuple(
  model: NamespaceModel,
  tuple: RelationTuple,
): TupleProblem | undefined {
  return problemOfSubject(model, tuple) ?? problemOfDeclared(model, tuple);
}

/**
 * Problem of a tuple's condition. If a model declares conditions, tuples must name these or the built-in ones, with
 * parameters that allow a decision.
 */
function problemOfDeclared(model: NamespaceModel, tuple: RelationTuple): TupleProblem | undefined {
  return model.conditions.size === 0 ? undefined : problemOfCondition(model.conditions, tuple);
}

function problemOfSubject(model: NamespaceModel, tuple: RelationTuple): TupleProblem | undefined {
  if (model.subjects.size === 0) return undefined;
  const relations = model.namespaces.get(tuple.namespace);
  if (relations === undefined) return undefined;
  const types = model.subjects.get(tuple.namespace)?.get(tuple.relation);
  if (types === undefined) {
    if (model.open.has(tuple.namespace)) return undefined;
    const message = relations.has(tuple.relation)
      ? `no tuples are stored on ${tuple.namespace}#${tuple.relation}: it follows from others`
      : `the model declares no relation "${tuple.relation}" on ${tuple.namespace}` +
        suggestion(tuple.relation, relations.keys());
    return { field: 'relation', message };
  }
  return problemWith(types, tuple);
}

function problemWith(
  types: readonly SubjectType[],
  tuple: RelationTuple,
): TupleProblem | undefined {
  const ofSubject = types.filter((type) => isOfType(type, tuple));
  const of = `${tuple.namespace}#${tuple.relation}`;
  if (ofSubject.length === 0) {
    const admitted = [...new Set(types.map(subjectText))].join(', ');
    return { field: 'subject', message: `${of} admits ${admitted}, not ${textOfSubject(tuple)}` };
  }
  const ofCondition = ofSubject.filter(
    ({ condition }) => condition === (tuple.conditionName ?? ''),
  );
  if (ofCondition.length === 0) {
    const message = `${of} admits ${textOfSubject(tuple)} ${conditionsText(ofSubject)}`;
    return { field: 'condition_name', message };
  }
  const doesExpire = tuple.expiresAtUs !== undefined;
  if (ofCondition.some(({ expires }) => expires === undefined || expires === doesExpire)) {
    return undefined;
  }
  const message = `${of} admits ${textOfSubject(tuple)} ${doesExpire ? 'without' : 'with'} an expiry only`;
  return { field: 'expires_at', message };
}

/** Text such as `without a condition, or with the condition "a" or "b"`. */
function conditionsText(types: readonly SubjectType[]): string {
  const names = new Set(types.map(({ condition }) => condition));
  const isBare = names.delete('');
  if (names.size === 0) return 'without a condition';
  const named = `with the condition ${[...names].map((name) => `"${name}"`).join(' or ')}`;
  return isBare ? `without a condition, or ${named}` : named;
}

function isOfType(type: SubjectType, { subject }: RelationTuple): boolean {
  switch (subject.kind) {
    case 'user':
      return type.kind === 'user';
    case 'wildcard':
      return type.kind === 'wildcard';
    case 'wildcardOf':
      return type.kind === 'wildcardOf' && type.namespace === subject.namespace;
    case 'set':
      return (
        type.namespace === subject.namespace &&
        type.relation === subject.relation &&
        (type.kind === 'object' || type.kind === 'userset')
      );
  }
}

function textOfSubject({ subject }: RelationTuple): string {
  switch (subject.kind) {
    case 'user':
      return 'user';
    case 'wildcard':
      return 'user:*';
    case 'wildcardOf':
      return `${subject.namespace}:*`;
    case 'set':
      return subject.relation === ''
        ? subject.namespace
        : `${subject.namespace}#${subject.relation}`;
  }
}
