import { LRUCache } from 'lru-cache';
import { admittedOnly } from '../../model/model-references.ts';
import type { NamespaceModel } from '../../model/namespace-model.ts';
import { parseModel } from '../../model/namespace-model.ts';
import { modelKey } from '../../protocol/model-store.ts';

const MODELS_MAX = 1_024;

/**
 * The models that one worker holds, by project and version. Bounded by number, least recently used
 * first; a missing one is asked for. A number below 0 is that of a document (`documentVersion`): it counts admitted tuples only. All projects without a document of their own share one object.
 */
export class ModelRegistry {
  readonly #models = new LRUCache<string, NamespaceModel>({ max: MODELS_MAX });
  readonly #builtIn = parseModel('');

  /** Errors: MODEL_INVALID. Cost: O(document). */
  set(projectId: string, modelVersion: number, modelJson: string): void {
    const parsed = modelJson === '' ? this.#builtIn : parseModel(modelJson);
    const model = modelVersion < 0 ? admittedOnly(parsed) : parsed;
    this.#models.set(modelKey(projectId, modelVersion), model);
  }

  get(projectId: string, modelVersion: number): NamespaceModel | undefined {
    return this.#models.get(modelKey(projectId, modelVersion));
  }
}
