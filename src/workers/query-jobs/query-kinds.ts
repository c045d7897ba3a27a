import type { QueryKind } from '../../protocol/queries.ts';
import { batchCheckQuery } from '../queries/batch-check-query.ts';
import { checkQuery } from '../queries/check-query.ts';
import { drawQueries } from '../queries/draw-queries.ts';
import { explainQuery } from '../queries/explain-query.ts';
import {
  filterObjectsQuery,
  listObjectsQuery,
  listSubjectsQuery,
  streamObjectsQuery,
} from '../queries/list-queries.ts';
import { listRelationsQuery } from '../queries/list-relations-query.ts';
import { measureReadsQuery } from '../queries/measure-reads-query.ts';
import { previewModel } from '../queries/preview-model.ts';
import type { QuerySpec } from '../queries/query-spec.ts';
import { whatIfQuery } from '../queries/what-if-query.ts';

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

/** Every kind with its evaluation: one that is missing does not compile. */
export const QUERIES: { readonly [K in QueryKind]: QuerySpec<K> } = {
  check: checkQuery,
  expand: expandQuery,
  listSubjects: listSubjectsQuery,
  listRelations: listRelationsQuery,
  filterObjects: filterObjectsQuery,
  listObjects: listObjectsQuery,
  streamObjects: streamObjectsQuery,
  batchCheck: batchCheckQuery,
  whatIf: whatIfQuery,
  drawQueries,
  previewModel,
  explain: explainQuery,
  measureReads: measureReadsQuery,
};
