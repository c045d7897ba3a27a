import { nearestName } from '../../shared/text/nearest-name.ts';
import { SEAT_NAMESPACE } from '../names.ts';
import { isTyped, SEAT_RELATION } from './model-references.ts';
import type { NamespaceModel } from './model-shape.ts';

/** Part of a relation that a typed model may lack. */
export const MISSING_PARTS = ['namespace', 'relation'] as const;
export type MissingPart = (typeof MISSING_PARTS)[number];

/**
 * The part of a queried relation that a typed model lacks. Undefined if it has the relation, if it is not
 * typed, or if the namespace is open and may hold more than it declares. Such a query is mostly a mistake:
 * no tuple of an undeclared relation can be written, and nothing follows from an undeclared namespace.
 * O(1).
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
 * The name that was likely meant instead of the missing one, or undefined where none is near. For messages only: cost as of
 * nearestName over the names of the model.
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

/** The words about a missing part, and the name that was likely meant; the caller names the field. Cost: as of `meantName`. */
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
