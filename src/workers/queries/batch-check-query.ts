import { ManyDecisions } from './many-decisions.ts';
import type { QuerySpec } from './query-spec.ts';

/** A batch of more items mostly takes more than a slice: an item of the general evaluation takes some ten microseconds. */
export const SHORT_ITEMS_MAX = 32;

/** BatchCheck with contextual tuples and a context for each item. */
export const batchCheckQuery: QuerySpec<'batchCheck'> = {
  rpc: 'QueryBatchCheck',
  countsItems: true,
  isLong: ({ items }) => items.length > SHORT_ITEMS_MAX,
  start: (ground, { items, context: contextJson, isExact }) =>
    new ManyDecisions(ground.decider, ground, {
      rpc: 'QueryBatchCheck',
      items,
      contextJson,
      isExact,
      isDecision: true,
    }),
};
