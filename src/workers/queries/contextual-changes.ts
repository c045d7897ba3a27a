import { problemOfTuple } from '../../model/namespace/model-admission.ts';
import type { NamespaceModel } from '../../model/namespace/model-shape.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { RelationTuple, TupleChange } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';

/** The field of contextual tuples in requests of every kind. */
const FIELD = 'scope.contextual_tuples';

/**
 * A request's tuples as changes to lay over an index. They must fit the model by which the query is decided, as
 * those that are written must: it is known here for certain. Errors: TUPLE_NOT_ADMITTED naming the field.
 */
export function contextualChanges(
  model: NamespaceModel,
  tuples: readonly RelationTuple[],
): readonly TupleChange[] {
  return tuples.map((tuple, index) => {
    const problem = problemOfTuple(model, tuple);
    if (problem === undefined) return { op: 'insert', tuple };
    const field = `${FIELD}[${index}].${problem.field}`;
    const message = `${field}: ${problem.message}`;
    throw new AppError<AuthzReason>('TUPLE_NOT_ADMITTED', message, { field });
  });
}
