import { LRUCache } from 'lru-cache';

const MODEL_BYTES_MAX = 64 * 1024 * 1024;
/** Counted for an entry besides its text, so that many empty models are bounded too. */
const ENTRY_BYTES = 256;

/**
 * The model documents that this process has set, for workers that lost or evicted theirs. Bounded
 * by bytes, least recently used first; a forgotten one is asked of who set it.
 */
export class ModelStore {
  readonly #jsonByKey = new LRUCache<string, string>({
    maxSize: MODEL_BYTES_MAX,
    sizeCalculation: (json) => ENTRY_BYTES + json.length * 2,
  });

  set(projectId: string, modelVersion: number, modelJson: string): void {
    this.#jsonByKey.set(modelKey(projectId, modelVersion), modelJson);
  }

  get(projectId: string, modelVersion: number): string | undefined {
    return this.#jsonByKey.get(modelKey(projectId, modelVersion));
  }
}

/** Key of one version of a project's model; a version is a number, so the key is unambiguous. */
export function modelKey(projectId: string, modelVersion: number): string {
  return `${modelVersion} ${projectId}`;
}
