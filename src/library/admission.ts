import { problemOfTuple, type TupleProblem } from '../model/namespace/model-admission.ts';
import type { NamespaceModel } from '../model/namespace/namespace-model.ts';
import { missingPart, unknownText } from '../model/namespace/unknown-relation.ts';
import { fieldError } from '../model/reasons.ts';
import { type RelationTuple, tupleIdentity } from '../model/relation-tuple.ts';
import { EngineError } from './engine-error.ts';

/** Names of the parts of a tuple, as callers know them. */
const FIELDS: Readonly<Record<TupleProblem['field'], string>> = {
  namespace: 'namespace',
  relation: 'relation',
  subject: 'subject',
  condition_name: 'condition',
  condition_params: 'conditionParams',
  expires_at: 'expiresAt',
};

/** Rejects tuples that the model does not admit. Errors: TUPLE_NOT_ADMITTED for the first one. O(tuples). */
export function checkAdmitted(
  model: NamespaceModel,
  field: string,
  tuples: readonly RelationTuple[],
): void {
  for (const [i, tuple] of tuples.entries()) {
    const problem = problemOfTuple(model, tuple);
    if (problem === undefined) continue;
    const at = `${field}[${i}].${FIELDS[problem.field]}`;
    throw new EngineError('TUPLE_NOT_ADMITTED', `${at}: ${problem.message}`, { field: at });
  }
}

/**
 * Rejects a list that has the same tuple twice: it would be unclear what the tuple carries. Errors: FIELD_INVALID.
 * O(tuples).
 */
export function refuseRepeated(field: string, tuples: readonly RelationTuple[]): void {
  const places = new Map<string, number>();
  for (const [i, tuple] of tuples.entries()) {
    const identity = tupleIdentity(tuple);
    const first = places.get(identity);
    if (first !== undefined) {
      throw fieldError(`${field}[${i}]`, `is the same tuple as ${field}[${first}]`);
    }
    places.set(identity, i);
  }
}

/**
 * Rejects names that a typed model does not have: such a query is usually a typo, and would be denied. Checks only the
 * namespace if `relation` is undefined. Errors: RELATION_UNKNOWN. O(1) unless it is rejected.
 */
export function checkNamed(
  model: NamespaceModel,
  namespace: string,
  relation: string | undefined,
): void {
  const missing = missingPart(model, namespace, relation ?? '');
  if (missing === undefined || (missing === 'relation' && relation === undefined)) return;
  const { problem } = unknownText(model, namespace, relation ?? '', missing);
  const field = `query.${missing}`;
  throw new EngineError('RELATION_UNKNOWN', `${field}: ${problem}`, { field });
}
