import type { ServiceImpl } from '@connectrpc/connect';
import type { QueryService } from '../../gen/gatehouse/v1/query_service_pb.ts';
import { assertNoUnknownFields } from '../rpc/unknown-fields.ts';
import { askQuestion, type QueryOptions, scopedQuery } from './query-scope.ts';
import { questionFromProto } from './question-from-proto.ts';

/** Check with contextual tuples. */
export function checkHandlers(
  options: QueryOptions,
): Pick<ServiceImpl<typeof QueryService>, 'check'> {
  const { meter } = options;
  return {
    check: (request, context) =>
      meter.measure('QueryCheck', async () => {
        assertNoUnknownFields(request);
        const question = questionFromProto('question', request.question);
        const query = scopedQuery(options, request.scope);
        const args = { ...query.head, question };
        const reply = await askQuestion(options, context, query, 'check', args);
        const { allowed, undecided } = reply.result;
        return { allowed, undecided, consistencyToken: reply.consistencyToken };
      }),
  };
}
