import type { Family, HotCounter } from '../../observability/metric-store.ts';

export const OUTCOMES = ['allowed', 'denied', 'error'] as const;
export type DecisionOutcome = (typeof OUTCOMES)[number];

/** Distinct (namespace, relation) pairs with series of their own; further ones count as `other`. */
export const DECISION_PAIRS_MAX = 200;
/** Label of pairs outside the project's model or beyond the pairs above. */
export const OTHER = 'other';

type PairCounters = Readonly<Record<DecisionOutcome, HotCounter>>;

/**
 * Decisions by namespace, relation and outcome, with a bounded number of series.
 * Names outside the project's model must arrive as `other`: only the evaluating side knows the model.
 */
export class DecisionCounts {
  readonly #family: Family<HotCounter>;
  readonly #pairs = new Map<string, Map<string, PairCounters>>();
  readonly #other: PairCounters;
  #pairCount = 0;

  constructor(family: Family<HotCounter>) {
    this.#family = family;
    this.#other = this.#create(OTHER, OTHER);
    this.#pairs.set(OTHER, new Map([[OTHER, this.#other]]));
  }

  /** Adds `count` decisions. Cost: two map lookups. */
  add(namespace: string, relation: string, outcome: DecisionOutcome, count = 1): void {
    const counters = this.#pairs.get(namespace)?.get(relation) ?? this.#admit(namespace, relation);
    counters[outcome].add(count);
  }

  #admit(namespace: string, relation: string): PairCounters {
    if (this.#pairCount >= DECISION_PAIRS_MAX) return this.#other;
    this.#pairCount++;
    const counters = this.#create(namespace, relation);
    const relations = this.#pairs.get(namespace);
    if (relations === undefined) this.#pairs.set(namespace, new Map([[relation, counters]]));
    else relations.set(relation, counters);
    return counters;
  }

  #create(namespace: string, relation: string): PairCounters {
    const cell = (outcome: DecisionOutcome): HotCounter =>
      this.#family.cell({ namespace, relation, outcome });
    return { allowed: cell('allowed'), denied: cell('denied'), error: cell('error') };
  }
}
