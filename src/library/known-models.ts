import type { NamespaceModel } from '../model/namespace/namespace-model.ts';
import { EngineError } from './engine-error.ts';

const read = new WeakMap<object, NamespaceModel>();

/** Remembers the rules of a parsed model, and returns the model. */
export function knownModel<M extends object>(model: M, rules: NamespaceModel): M {
  read.set(model, rules);
  return model;
}

/**
 * Rules of a model, as the evaluator uses them. Errors: FIELD_INVALID for a model that `parseModel` has not returned.
 */
export function namespaceModelOf(model: object): NamespaceModel {
  const known = read.get(model);
  if (known !== undefined) return known;
  throw new EngineError('FIELD_INVALID', 'model: is none that parseModel returned', {
    field: 'model',
  });
}
