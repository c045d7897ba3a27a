import { nearestName } from '../../shared/text/nearest-name.ts';
import { SEAT_NAMESPACE } from '../names.ts';
import { isTyped, SEAT_RELATION } from './model-references.ts';
import type { NamespaceModel } from './model-shape.ts';

/** What of a relation a typed model does not have. */
export const MISSING_PARTS = ['namespace', 'relation'] as const;
export type MissingPart = (typeof MISSING_PARTS)[number];

/**
 * What a typed model lacks of a relation that is asked about, or undefined: it has it, or is not typed, or the namespace is
 * open and may hold more than it declares. Such a query is mostly a slip: where only the relation is missing no tuple of
 * it can be written, and in an undeclared namespace nothing follows from any. O(1).
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
