import { BUILT_IN_NAMESPACES } from './built-in-model.ts';
import type { TupleProblem } from './model-admission.ts';
import type { NamespaceModel } from './model-shape.ts';
import type { RelationTuple } from './relation-tuple.ts';

/**
 * Whether a model leaves out a namespace that the one in force declares: its tuples would count as they are stored, without
 * the rules that hold today. O(namespaces).
 */
export function dropsNamespaces(inForce: NamespaceModel, next: NamespaceModel): boolean {
  for (const name of inForce.namespaces.keys()) {
    if (declares(inForce, name) && !declares(next, name)) return true;
  }
  return false;
}

/**
 * Why a stored tuple, or one to be written, keeps `next` from following on the model in force: its namespace is dropped.
 * undefined: it is not, or a built-in namespace takes its place and has the relation. O(1).
 */
export function problemOfDropped(
  inForce: NamespaceModel,
  next: NamespaceModel,
  { namespace, relation }: RelationTuple,
): TupleProblem | undefined {
  if (!declares(inForce, namespace) || declares(next, namespace)) return undefined;
  if (next.namespaces.get(namespace)?.has(relation) === true) return undefined;
  const message = `the model in force declares the namespace "${namespace}" and this one does not: its tuples would count without rules`;
  return { field: 'namespace', message };
}

/** Whether a document says it: not what the built-in model has, and lends to documents that leave it out. */
function declares({ namespaces }: NamespaceModel, name: string): boolean {
  const relations = namespaces.get(name);
  return relations !== undefined && relations !== BUILT_IN_NAMESPACES.get(name);
}
