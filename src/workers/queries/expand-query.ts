import type { QuerySpec } from './query-spec.ts';

/** The effective userset tree of a relation. */
export const expandQuery: QuerySpec<'expand'> = {
  rpc: 'Expand',
  isLong: () => true,
  refusedQuery: ({ namespace, objectId, relation }) => ({
    kind: 'expand',
    namespace,
    objectId,
    relation,
  }),
  start: ({ stored, nowMs, readBudget }, { namespace, objectId, relation }) =>
    stored.startExpand({ namespace, objectId, relation }, nowMs, readBudget),
};
