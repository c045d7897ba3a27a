import { ManyDecisions } from './many-decisions.ts';
import type { QuestionSpec } from './question-spec.ts';

/** A batch of more items mostly takes more than a slice: an item of the general evaluation takes some ten microseconds. */
export const SHORT_ITEMS_MAX = 32;

/** BatchCheck with contextual tuples and a context for each item. */
export const batchCheckQuestion: QuestionSpec<'batchCheck'> = {
  rpc: 'QueryBatchCheck',
  countsItems: true,
  isLong: ({ items }) => items.length > SHORT_ITEMS_MAX,
  start: (ground, { items, context: contextJson }) =>
    new ManyDecisions(ground.evaluator, ground, {
      rpc: 'QueryBatchCheck',
      items,
      contextJson,
      isDecision: true,
    }),
};
