import type { NamespaceModel } from '../../model/namespace/model-shape.ts';
import type { ShardKey, TupleChange } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import type { WriteMeta } from '../ports.ts';
import type { ModelAuthor } from '../projects/model-writes.ts';
import { NO_RULES, refusalOfUpdates, type WriteRules } from '../writes/write-rules.ts';

/** Versions of models that a write may name, and how one that is in force lets tuples in that it does not admit. */
export type ModelsOfWrites = {
  /** The model of a version; `field` names the version in the error. Errors: MODEL_VERSION_UNKNOWN, STORE_UNAVAILABLE. */
  model(projectId: string, version: number, field: string): Promise<NamespaceModel>;
  /** Has the model in force ignore what it does not admit. Errors: MODEL_NOT_IN_FORCE while another is pending. */
  ignoreMisfits(projectId: string, author: ModelAuthor): Promise<void>;
};

/** Another model may come into force between the look at the rules and the write. */
const ATTEMPTS_MAX = 5;
const FIELD = 'model_version';

/**
 * Writes that a named version of the model admits, and no other. Where the model in force does not admit one of their tuples it
 * ignores such tuples from then on, before any is stored.
 */
export class VersionAdmission {
  readonly #rules: WriteRules;
  readonly #models: ModelsOfWrites;

  constructor(rules: WriteRules, models: ModelsOfWrites) {
    this.#rules = rules;
    this.#models = models;
  }

  /**
   * Runs `write` once it may store `updates`; again where another model came into force meanwhile. Errors: MODEL_VERSION_UNKNOWN,
   * TUPLE_NOT_ADMITTED by the version or by a pending one, MODEL_NOT_IN_FORCE, those of `write`.
   */
  async admitted<T>(
    { projectId }: ShardKey,
    version: number,
    updates: readonly TupleChange[],
    meta: WriteMeta,
    write: () => Promise<T>,
  ): Promise<T> {
    const models = [await this.#models.model(projectId, version, FIELD)];
    const refusal = refusalOfUpdates({ ...NO_RULES, version: 1, models }, updates, 'updates');
    if (refusal !== undefined) throw refusal;
    for (let attempt = 1; ; attempt++) {
      await this.#letIn(projectId, updates, meta);
      try {
        return await write();
      } catch (error) {
        const isOutdated = error instanceof AppError && error.reason === 'TUPLE_NOT_ADMITTED';
        if (!isOutdated || attempt === ATTEMPTS_MAX) throw error;
      }
    }
  }

  async #letIn(projectId: string, updates: readonly TupleChange[], meta: WriteMeta): Promise<void> {
    const known = await this.#rules.of(projectId);
    if (refusalOfUpdates(known, updates, 'updates', true) === undefined) return;
    const rules = await this.#rules.fresh(projectId);
    const refusal = refusalOfUpdates(rules, updates, 'updates', true);
    if (refusal === undefined) return;
    // It is ignored already: the pending model refuses them.
    if (rules.ignoresMisfits) throw refusal;
    const { rpc, requestId, caller } = meta;
    await this.#models.ignoreMisfits(projectId, { createdBy: '', caller, rpc, requestId });
  }
}
