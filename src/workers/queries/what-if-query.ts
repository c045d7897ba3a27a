import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { ItemChange, QueryArgs } from '../../protocol/queries.ts';
import { SHORT_ITEMS_MAX } from './batch-check-query.ts';
import { contextualChanges } from './contextual-changes.ts';
import { ManyDecisions } from './many-decisions.ts';
import type { QueryGround, QuerySpec } from './query-spec.ts';

/** Which of the queries would change their answer if the updates were written. */
export const whatIfQuery: QuerySpec<'whatIf'> = {
  rpc: 'WhatIf',
  countsItems: true,
  isLong: ({ updates, queries }) => updates.length + queries.length * 2 > SHORT_ITEMS_MAX,
  start: (ground, args) => new WhatIfTask(ground, args),
};

/** All queries as it is, then all as it would be, each with the budget of a batch. */
class WhatIfTask implements EvaluationTask<readonly ItemChange[]> {
  readonly #before: ManyDecisions;
  readonly #after: ManyDecisions;

  constructor(ground: QueryGround, args: QueryArgs['whatIf']) {
    const { updates, queries: items, contextual, context: contextJson, isExact } = args;
    const asked = { rpc: 'WhatIf', items, contextJson, isExact, isDecision: false } as const;
    this.#before = new ManyDecisions(ground.decider, ground, asked);
    // The decision of a later request with the same contextual tuples: they take precedence over what was written.
    const held = contextualChanges(ground.model, contextual);
    this.#after = new ManyDecisions(ground.over([...updates, ...held]), ground, asked);
  }

  /** Each query counts its own. */
  get backstops(): number {
    return 0;
  }

  get reads(): number {
    return this.#before.reads + this.#after.reads;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    if (this.#before.run(sliceEndMs) === 'more') return 'more';
    return this.#after.run(sliceEndMs);
  }

  result(): readonly ItemChange[] {
    const after = this.#after.result();
    return this.#before.result().map((one, i) => {
      const other = after[i];
      if (other === undefined) throw new Error('both sides answer every question');
      const error = one.error === '' ? other.error : one.error;
      const { unknownRelation } = one;
      if (error !== '')
        return { allowedBefore: false, allowedAfter: false, error, unknownRelation };
      const [allowedBefore, allowedAfter] = [one.allowed, other.allowed];
      return { allowedBefore, allowedAfter, error, unknownRelation };
    });
  }
}
