import type { RelationTuple } from '../relation-tuple.ts';
import { BUILT_IN_NAMESPACES } from './built-in-model.ts';
import type { TupleProblem } from './model-admission.ts';
import type { NamespaceModel } from './model-shape.ts';

const UNRULED = 'its tuples would count without rules';

/**
 * Whether a model omits a namespace or relation that the one in force declares. Its tuples would then count as stored,
 * without the rules that hold today. O(relations).
 */
export function dropsRules(inForce: NamespaceModel, next: NamespaceModel): boolean {
  for (const [name, relations] of inForce.namespaces) {
    if (!declares(inForce, name)) continue;
    if (!declares(next, name)) return true;
    for (const relation of relations.keys()) {
      if (next.namespaces.get(name)?.has(relation) !== true) return true;
    }
  }
  return false;
}

/**
 * Reason for which a stored tuple, or one to be written, keeps `next` from replacing the model in force: its namespace
 * or relation is dropped. Undefined if neither is, or if a built-in namespace that has the relation takes the place of
 * its namespace. O(1).
 */
export function problemOfDropped(
  inForce: NamespaceModel,
  next: NamespaceModel,
  { namespace, relation }: RelationTuple,
): TupleProblem | undefined {
  if (!declares(inForce, namespace)) return undefined;
  if (next.namespaces.get(namespace)?.has(relation) === true) return undefined;
  if (!declares(next, namespace)) {
    const message = `"${namespace}" is declared by the model in force and left out by the next: ${UNRULED}`;
    return { field: 'namespace', message };
  }
  if (inForce.namespaces.get(namespace)?.has(relation) !== true) return undefined;
  const message = `"${relation}" of "${namespace}" is declared by the model in force and left out by the next: ${UNRULED}`;
  return { field: 'relation', message };
}

/**
 * Whether a document itself declares a namespace. Built-in namespaces do not count: they apply to documents that omit
 * them, too.
 */
function declares({ namespaces }: NamespaceModel, name: string): boolean {
  const relations = namespaces.get(name);
  return relations !== undefined && relations !== BUILT_IN_NAMESPACES.get(name);
}
