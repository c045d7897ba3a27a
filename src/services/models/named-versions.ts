import { LRUCache } from 'lru-cache';
import type { Pool } from 'pg';
import { documentVersion } from '../../model/namespace/model-shape.ts';
import type { NamespaceModel } from '../../model/namespace/model-shape.ts';
import { parseModel } from '../../model/namespace/namespace-model.ts';
import { storeError } from '../../store/postgres/pg-errors.ts';
import { selectModelVersion } from '../../store/sql/projects/model-versions.ts';
import type { ModelDistributor } from '../ports.ts';
import { versionUnknown } from './model-version.ts';

export type NamedVersionsOptions = {
  readonly pool: Pool;
  readonly distributor: ModelDistributor;
  /** Bytes of the texts that are remembered. */
  readonly bytesMax: number;
};

/** Versions that writes name and that are kept parsed. */
const PARSED_MAX = 64;
/** Counted for a version besides its text. */
const ENTRY_BYTES = 256;

/**
 * Versions of models that queries name. A version is loaded when it is first named, and given to every worker before
 * it is answered by. Bounded by bytes, those named longest ago first; one that went is loaded again.
 */
export class NamedVersions {
  readonly #options: NamedVersionsOptions;
  readonly #jsonByKey: LRUCache<string, string>;
  readonly #models = new LRUCache<string, NamespaceModel>({ max: PARSED_MAX });
  readonly #loading = new Map<string, Promise<void>>();
  #generation = 0;

  constructor(options: NamedVersionsOptions) {
    this.#options = options;
    this.#jsonByKey = new LRUCache({
      maxSize: options.bytesMax,
      sizeCalculation: (json) => ENTRY_BYTES + json.length * 2,
    });
  }

  /**
   * Resolves to the model version of a scope, once every worker has it. Any version that was written may be named, in force
   * or not. Errors: MODEL_VERSION_UNKNOWN, STORE_UNAVAILABLE, those of the distributor.
   */
  async distribute(projectId: string, version: number): Promise<number> {
    const key = keyOf(projectId, documentVersion(version));
    if (this.#jsonByKey.get(key) === undefined) {
      let loading = this.#loading.get(key);
      if (loading === undefined) {
        loading = this.#load(projectId, version).finally(() => this.#loading.delete(key));
        this.#loading.set(key, loading);
      }
      await loading;
    }
    return documentVersion(version);
  }

  /** The model version of a scope, if every worker has it; undefined: `distribute` gives it to them. Hot. */
  peek(projectId: string, version: number): number | undefined {
    const modelVersion = documentVersion(version);
    const isKnown = this.#jsonByKey.get(keyOf(projectId, modelVersion)) !== undefined;
    return isKnown ? modelVersion : undefined;
  }

  /** The text of a version that was distributed, while it is remembered: for a worker that lost it. */
  modelOf(projectId: string, modelVersion: number): string | undefined {
    return this.#jsonByKey.get(keyOf(projectId, modelVersion));
  }

  /**
   * The parsed model of a version, in force or not; `field` names the version in the error. Errors: MODEL_VERSION_UNKNOWN,
   * STORE_UNAVAILABLE.
   */
  async model(projectId: string, version: number, field: string): Promise<NamespaceModel> {
    const key = keyOf(projectId, documentVersion(version));
    const known = this.#models.get(key);
    if (known !== undefined) return known;
    const generation = this.#generation;
    const model = parseModel(await this.#text(projectId, version, field));
    if (generation !== this.#generation) return await this.model(projectId, version, field);
    this.#models.set(key, model);
    return model;
  }

  /** History may have been lost: numbers of versions may name others from now on. */
  forgetAll(): void {
    this.#generation += 1;
    this.#jsonByKey.clear();
    this.#models.clear();
    this.#loading.clear();
  }

  async #load(projectId: string, version: number): Promise<void> {
    const generation = this.#generation;
    const json = await this.#text(projectId, version, 'scope.model_version');
    const modelVersion = documentVersion(version);
    await this.#options.distributor.setModel(projectId, modelVersion, json);
    // History was lost meanwhile: the number may name another version.
    if (generation !== this.#generation) return await this.#load(projectId, version);
    this.#jsonByKey.set(keyOf(projectId, modelVersion), json);
  }

  async #text(projectId: string, version: number, field: string): Promise<string> {
    const { pool } = this.#options;
    const row = await selectModelVersion(pool, projectId, version).catch((error: unknown) => {
      throw storeError(error);
    });
    if (row !== undefined) return row.model_json;
    const problem = `${field}: project ${projectId} has no version ${version} of its model`;
    throw versionUnknown(projectId, version, problem, field);
  }
}

function keyOf(projectId: string, modelVersion: number): string {
  return `${modelVersion} ${projectId}`;
}
