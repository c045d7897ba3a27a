import type { NamespaceModel } from '../model/namespace/namespace-model.ts';
import { EngineError } from './engine-error.ts';

const read = new WeakMap<object, NamespaceModel>();

/** Remembers what a model that was read decides by, and returns it. */
export function knownModel<M extends object>(model: M, rules: NamespaceModel): M {
  read.set(model, rules);
  return model;
}

/** The parsed model behind one that `parseModel` returned. Errors: FIELD_INVALID for any other object. */
export function namespaceModelOf(model: object): NamespaceModel {
  const known = read.get(model);
  if (known !== undefined) return known;
  throw new EngineError('FIELD_INVALID', 'model: is none that parseModel returned', {
    field: 'model',
  });
}
