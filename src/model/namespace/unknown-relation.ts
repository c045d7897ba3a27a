import { nearestName } from '../../shared/text/nearest-name.ts';
import { SEAT_NAMESPACE } from '../names.ts';
import { isTyped, SEAT_RELATION } from './model-references.ts';
import type { NamespaceModel } from './model-shape.ts';

/** Parts of a relation's name that a typed model may not have. */
export const MISSING_PARTS = ['namespace', 'relation'] as const;
export type MissingPart = (typeof MISSING_PARTS)[number];

/**
 * Part of a queried relation that a typed model does not have. Undefined if it has both, is not typed, or the namespace
 * is open and may have more than it declares. Such a query is usually a typo. If only the relation is missing, no tuple
 * of it can be written. In an undeclared namespace, nothing follows from any tuple. O(1).
 */
export function missingPart(
  model: NamespaceModel,
  namespace: string,
  relation: string,
): MissingPart | undefined {
  if (!isTyped(model) || model.open.has(namespace)) return undefined;
  if (namespace === SEAT_NAMESPACE) return relation === SEAT_RELATION ? undefined : 'relation';
  const relations = model.namespaces.get(namespace);
  if (relations === undefined) return 'namespace';
  return relations.has(relation) ? undefined : 'relation';
}

/**
 * Name that was probably meant instead of the missing one; undefined if none is near. For messages only: costs as much
 * as nearestName over the names of the model.
 */
export function meantName(
  model: NamespaceModel,
  namespace: string,
  relation: string,
  missing: MissingPart,
): string | undefined {
  if (missing === 'namespace') {
    return nearestName(namespace, [...model.namespaces.keys(), SEAT_NAMESPACE]);
  }
  if (namespace === SEAT_NAMESPACE) return nearestName(relation, [SEAT_RELATION]);
  return nearestName(relation, model.namespaces.get(namespace)?.keys() ?? []);
}

/**
 * Message about a missing part, and the name that was probably meant; the caller adds the field. Cost: that of
 * `meantName`.
 */
export function unknownText(
  model: NamespaceModel,
  namespace: string,
  relation: string,
  missing: MissingPart,
): { readonly problem: string; readonly meant: string | undefined } {
  const meant = meantName(model, namespace, relation, missing);
  const what =
    missing === 'namespace'
      ? `the model has no namespace "${namespace}"`
      : `the model has no relation "${relation}" in the namespace "${namespace}"`;
  const hint = meant === undefined ? '' : `; did you mean "${meant}"?`;
  return { problem: what + hint, meant };
}
