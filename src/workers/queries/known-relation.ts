import {
  type MissingPart,
  missingPart,
  unknownText,
} from '../../model/namespace/unknown-relation.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import type { PairCounter } from '../counts/unknown-counts.ts';
import type { QueryGround } from './query-spec.ts';

/**
 * Whether the typed model that decides lacks the namespace or the relation of a query; `field` is the message that names
 * them, with a dot behind it, or ''. Errors: RELATION_UNKNOWN, where the project refuses such queries. O(1) without one.
 */
export function isUnknown(
  { model, refusesUnknown }: Pick<QueryGround, 'model' | 'refusesUnknown'>,
  field: string,
  namespace: string,
  relation: string,
): boolean {
  const missing = missingPart(model, namespace, relation);
  if (missing === undefined) return false;
  if (!refusesUnknown) return true;
  throw unknownError(model, missing, `${field}${missing}`, namespace, relation);
}

/** Checks the names of a list of relations. Errors: RELATION_UNKNOWN, by `isUnknown`. O(relations). */
export function checkNamed(
  ground: QueryGround,
  namespace: string,
  relations: readonly string[],
): void {
  const { model, refusesUnknown } = ground;
  if (!refusesUnknown) return;
  if (relations.length === 0 && missingPart(model, namespace, '') === 'namespace') {
    throw unknownError(model, 'namespace', 'namespace', namespace, '');
  }
  for (const [index, relation] of relations.entries()) {
    const missing = missingPart(model, namespace, relation);
    if (missing === undefined) continue;
    const field = missing === 'namespace' ? missing : `relations[${index}]`;
    throw unknownError(model, missing, field, namespace, relation);
  }
}

function unknownError(
  model: QueryGround['model'],
  missing: MissingPart,
  field: string,
  namespace: string,
  relation: string,
): AppError<AuthzReason> {
  const { problem, meant } = unknownText(model, namespace, relation, missing);
  return new AppError<AuthzReason>('RELATION_UNKNOWN', `${field}: ${problem}`, {
    field,
    ...(meant === undefined ? {} : { meant }),
  });
}

/** `isUnknown` of a decision: one that is refused counts as failed. Errors: as there. */
export function countedUnknown(
  ground: QueryGround,
  counter: PairCounter,
  field: string,
  namespace: string,
  relation: string,
): boolean {
  try {
    return isUnknown(ground, field, namespace, relation);
  } catch (error) {
    counter.error += 1;
    throw error;
  }
}
