import type { QueryKind } from '../../protocol/queries.ts';
import { batchCheckQuery } from './batch-check-query.ts';
import { checkQuery } from './check-query.ts';
import { drawQueries } from './draw-queries.ts';
import { expandQuery } from './expand-query.ts';
import { explainQuery } from './explain-query.ts';
import { filterObjectsQuery } from './filter-objects-query.ts';
import { listObjectsQuery, streamObjectsQuery } from './list-objects-queries.ts';
import { listRelationsQuery } from './list-relations-query.ts';
import { listSubjectsQuery } from './list-subjects-query.ts';
import { measureReadsQuery } from './measure-reads-query.ts';
import { previewModel } from './preview-model.ts';
import type { QuerySpec } from './query-spec.ts';
import { whatIfQuery } from './what-if-query.ts';

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
