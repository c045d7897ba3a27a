import type { ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import type { BatchCheckItem, QueryService } from '../../gen/gatehouse/v1/query_service_pb.ts';
import type { BatchedQuery } from '../../protocol/queries.ts';
import { structText } from '../../requests/check-request.ts';
import type { AppError } from '../../shared/app-error.ts';
import { checkItems } from './checked-items.ts';
import { queryFromProto } from './query-from-proto.ts';
import { askQuery, type QueryOptions, scopedQuery } from './query-scope.ts';

/** Check and BatchCheck with contextual tuples. */
export function checkHandlers(
  options: QueryOptions,
): Pick<ServiceImpl<typeof QueryService>, 'check' | 'batchCheck'> {
  const { meter, batchItemsMax } = options;
  return {
    check: (request, call) =>
      meter.measure('QueryCheck', async () => {
        assertNoUnknownFields(request);
        const wanted = queryFromProto('question', request.question);
        const query = scopedQuery(options, request.scope);
        const args = { ...query.head, query: wanted };
        const { result, consistencyToken } = await askQuery(options, call, query, 'check', args);
        return { ...result, consistencyToken };
      }),

    batchCheck: (request, call) =>
      meter.measure('QueryBatchCheck', async () => {
        assertNoUnknownFields(request);
        const batch = checkItems('items', request.items, batchItemsMax, itemFromProto);
        const query = scopedQuery(options, request.scope);
        const args = { ...query.head, items: batch.valid };
        const reply = await askQuery(options, call, query, 'batchCheck', args);
        // Not before: of a batch that fails as a whole the call is what failed.
        for (const problem of batch.problems) meter.itemFailed(problem, 'QueryBatchCheck');
        const none = { allowed: false, undecided: false, unknownRelation: false };
        const failed = ({ message, reason }: AppError) => ({
          ...none,
          error: message,
          errorReason: reason,
        });
        const results = batch.resultsOf(reply.result, failed);
        return { results, consistencyToken: reply.consistencyToken };
      }),
  };
}

function itemFromProto({ question: query, context }: BatchCheckItem, field: string): BatchedQuery {
  const checked = queryFromProto(`${field}.question`, query);
  if (context === undefined) return checked;
  return { ...checked, context: structText(`${field}.context`, context) };
}
