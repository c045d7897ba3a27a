import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import { meantName, type MissingPart } from '../../model/namespace/unknown-relation.ts';
import type { UnknownFigures, UnknownRelation } from '../../protocol/messages.ts';

/** Names that one report has at most: one that comes again is in the next. */
const NAMES_MAX = 8;

/**
 * Decisions about namespaces and relations that typed models do not have, between two reports. The counters are valid for
 * ever, as those of known relations are, so that a decision costs the same.
 */
export class UnknownCounts {
  readonly #counters: Readonly<Record<MissingPart, PairCounter>>;
  readonly #names = new Map<string, UnknownRelation>();

  /** `create` makes a counter under the label of all that is outside of models. */
  constructor(create: () => PairCounter) {
    this.#counters = { namespace: create(), relation: create() };
  }

  /** All counters, which count decisions as well. */
  get counters(): readonly PairCounter[] {
    return Object.values(this.#counters);
  }

  /**
   * The counter of a relation that `model` lacks; its name is kept for the report while that has fewer than NAMES_MAX.
   */
  counter(
    model: NamespaceModel,
    projectId: string,
    namespace: string,
    relation: string,
    missing: MissingPart,
  ): PairCounter {
    const key = `${projectId} ${namespace}#${relation}`;
    if (this.#names.size < NAMES_MAX && !this.#names.has(key)) {
      const meant = meantName(model, namespace, relation, missing) ?? '';
      this.#names.set(key, { projectId, namespace, relation, missing, meant });
    }
    return this.#counters[missing];
  }

  /** Counts since the last call; called before the counters are reset. */
  drain(): UnknownFigures {
    const { namespace, relation } = this.#counters;
    const names = [...this.#names.values()];
    this.#names.clear();
    return { counts: { namespace: countOf(namespace), relation: countOf(relation) }, names };
  }
}

function countOf({ allowed, denied, error }: PairCounter): number {
  return allowed + denied + error;
}

/** Decisions on one (namespace, relation) since the last report. */
export type PairCounter = {
  readonly namespace: string;
  readonly relation: string;
  allowed: number;
  denied: number;
  error: number;
};
