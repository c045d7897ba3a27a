import { problemOfTuple } from '../../model/namespace/model-admission.ts';
import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import type { RelationTuple, Subject, TupleKey } from '../../model/relation-tuple.ts';

const RESERVED_NAMESPACE = 'seat';
const US_PER_DAY = 86_400_000_000n;

/**
 * The tuple with this key in a form that the model admits: plain, or where its relation demands an
 * expiry one that ends a day after `nowUs`. 'barred': only with a condition, of which nobody but the
 * caller knows the parameters, or not by a write of tuples. undefined: in no form.
 */
export function admittedTuple(
  model: NamespaceModel,
  { namespace, objectId, relation, subject }: TupleKey,
  nowUs: bigint,
): RelationTuple | 'barred' | undefined {
  if (namespace === RESERVED_NAMESPACE) return 'barred';
  const plain: RelationTuple = { namespace, objectId, relation, subject };
  const expiring: RelationTuple = { ...plain, expiresAtUs: nowUs + US_PER_DAY };
  const problem = problemOfTuple(model, plain);
  if (problem === undefined) return plain;
  if (problem.field === 'condition_name') return 'barred';
  return problemOfTuple(model, expiring) === undefined ? expiring : undefined;
}

/**
 * Forms in which a tuple can name an object, or one of its usersets, as its subject. Where the model does not type them
 * usersets are among them only if `usersetsToo`: behind a tupleset all of them name the object alike.
 */
export function subjectsOfObject(
  model: NamespaceModel,
  userset: { readonly namespace: string; readonly relation: string },
  { namespace, objectId }: { readonly namespace: string; readonly objectId: string },
  usersetsToo = false,
): readonly Subject[] {
  const types = model.subjects.get(userset.namespace)?.get(userset.relation);
  const relations = (types ?? [])
    .filter((type) => type.kind === 'userset' && type.namespace === namespace)
    .map(({ relation }) => relation);
  if (usersetsToo && types === undefined) {
    relations.push(...(model.namespaces.get(namespace)?.keys() ?? []));
  }
  return ['', ...relations].map((relation) => ({ kind: 'set', namespace, objectId, relation }));
}
