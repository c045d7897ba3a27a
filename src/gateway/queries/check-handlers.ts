import type { ServiceImpl } from '@connectrpc/connect';
import type { BatchCheckItem, QueryService } from '../../gen/gatehouse/v1/query_service_pb.ts';
import type { BatchQuestion } from '../../protocol/questions.ts';
import { structText } from '../rpc/query-from-proto.ts';
import { assertNoUnknownFields } from '../rpc/unknown-fields.ts';
import { checkItems } from './checked-items.ts';
import { askQuestion, type QueryOptions, scopedQuery } from './query-scope.ts';
import { questionFromProto } from './question-from-proto.ts';

/** Check and BatchCheck with contextual tuples. */
export function checkHandlers(
  options: QueryOptions,
): Pick<ServiceImpl<typeof QueryService>, 'check' | 'batchCheck'> {
  const { meter, batchItemsMax } = options;
  return {
    check: (request, call) =>
      meter.measure('QueryCheck', async () => {
        assertNoUnknownFields(request);
        const question = questionFromProto('question', request.question);
        const query = scopedQuery(options, request.scope);
        const args = { ...query.head, question };
        const { result, consistencyToken } = await askQuestion(options, call, query, 'check', args);
        return { ...result, consistencyToken };
      }),

    batchCheck: (request, call) =>
      meter.measure('QueryBatchCheck', async () => {
        assertNoUnknownFields(request);
        const batch = checkItems('items', request.items, batchItemsMax, itemFromProto);
        const query = scopedQuery(options, request.scope);
        const args = { ...query.head, items: batch.valid };
        const reply = await askQuestion(options, call, query, 'batchCheck', args);
        // Not before: of a batch that fails as a whole the call is what failed.
        for (const problem of batch.problems) meter.itemFailed(problem, 'QueryBatchCheck');
        const none = { allowed: false, undecided: false, unknownRelation: false };
        const failed = (error: string) => ({ ...none, error });
        const results = batch.resultsOf(reply.result, failed);
        return { results, consistencyToken: reply.consistencyToken };
      }),
  };
}

function itemFromProto({ question, context }: BatchCheckItem, field: string): BatchQuestion {
  const checked = questionFromProto(`${field}.question`, question);
  if (context === undefined) return checked;
  return { ...checked, context: structText(`${field}.context`, context) };
}
