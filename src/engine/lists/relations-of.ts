import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import type { Scope } from '../bound/scope.ts';
import type { Steps } from '../general/gate-system.ts';

const NODES_PER_STEP = 64;

/**
 * Every relation that an object may have holders of: those that its namespace declares, and in a namespace that is not
 * declared or by tuples from before, those of the object's own tuples. Each once, in no order.
 * Errors: BUDGET_EXHAUSTED. Cost: a read for 64 relations of the object.
 */
export function* relationsOf(
  scope: Scope,
  model: NamespaceModel,
  namespace: string,
  objectId: string,
): Steps<ReadonlySet<string>> {
  const { reader } = scope;
  const found = new Set(model.namespaces.get(namespace)?.keys());
  const name = reader.nameId(namespace);
  const entity = name > 0 ? reader.entityId(name, objectId) : 0;
  if (entity === 0) return found;
  let nodes = 0;
  for (let node = reader.firstNodeOf(entity); node !== 0; node = reader.nextNodeOf(node)) {
    if (nodes % NODES_PER_STEP === 0) {
      scope.charge(1);
      yield;
    }
    nodes++;
    const relation = reader.relationOf(node);
    if (relation > 0 && reader.userCount(node) + reader.setCount(node) > 0) {
      found.add(reader.nameText(relation));
    }
  }
  return found;
}
