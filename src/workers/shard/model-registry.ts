import { LRUCache } from 'lru-cache';
import type { NamespaceModel } from '../../model/namespace-model.ts';
import { parseModel } from '../../model/namespace-model.ts';
import { modelKey } from '../../protocol/model-store.ts';

const MODELS_MAX = 1_024;

/**
 * The models that one worker holds, by project and version. Bounded by number, least recently used
 * first; a missing one is asked for. All projects without a document of their own share one object.
 */
export class ModelRegistry {
  readonly #models = new LRUCache<string, NamespaceModel>({ max: MODELS_MAX });
  readonly #builtIn = parseModel('');

  /** Errors: MODEL_INVALID. Cost: O(document). */
  set(projectId: string, modelVersion: number, modelJson: string): void {
    const model = modelJson === '' ? this.#builtIn : parseModel(modelJson);
    this.#models.set(modelKey(projectId, modelVersion), model);
  }

  get(projectId: string, modelVersion: number): NamespaceModel | undefined {
    return this.#models.get(modelKey(projectId, modelVersion));
  }
}
