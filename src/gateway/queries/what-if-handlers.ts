import type { ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import type {
  Question as ProtoQuestion,
  QueryService,
} from '../../gen/gatehouse/v1/query_service_pb.ts';
import { checkUpdates } from '../../model/tuple-input.ts';
import type { ItemChange } from '../../protocol/queries.ts';
import { checkItems } from '../../requests/checked-items.ts';
import { queryFromProto } from '../../requests/query-methods.ts';
import { certainRefusal } from '../../services/writes/write-rules.ts';
import { DECODE_TURNS, runSoon } from '../../shared/slice-queue.ts';
import { askQuery, type QueryOptions, resolvedScope } from './query-scope.ts';

/** Updates of one query at most, however many a write may have: they are laid over the index in one step. */
export const WHAT_IF_UPDATES_MAX = 1_000;

/** Which queries would change their answer. */
export function whatIfHandlers(
  options: QueryOptions,
): Pick<ServiceImpl<typeof QueryService>, 'whatIf'> {
  const { meter, batchItemsMax, rules } = options;
  const updatesMax = Math.min(WHAT_IF_UPDATES_MAX, options.updatesMax);
  const check = (query: ProtoQuestion, field: string) => queryFromProto(field, query);
  return {
    whatIf: (request, call) =>
      meter.measure('WhatIf', async () => {
        assertNoUnknownFields(request);
        const asked = checkItems('questions', request.questions, batchItemsMax, check);
        const batch = await runSoon(asked, DECODE_TURNS);
        const query = await resolvedScope(options, request.scope);
        const updates = checkUpdates(request.updates, query.shard, updatesMax);
        const args = { ...query.head, updates, queries: batch.valid };
        const reply = await askQuery(options, call, query, 'whatIf', args);
        // Refused as the write would be, once the project is known to exist and to be readable.
        const refusal = await certainRefusal(rules, query.shard, updates, 'updates');
        if (refusal !== undefined) throw refusal;
        for (const problem of batch.problems) meter.itemFailed(problem, 'WhatIf');
        const none = { allowedBefore: false, allowedAfter: false, unknownRelation: false };
        const failed = ({ message }: Error) => ({ ...none, error: message });
        const placed = (change: ItemChange): ItemChange => change;
        const answers = batch.resultsOf(reply.result, placed, failed);
        const results = await runSoon(answers, DECODE_TURNS);
        const changedCount = results.filter((one) => one.allowedBefore !== one.allowedAfter).length;
        return { results, changedCount, consistencyToken: reply.consistencyToken };
      }),
  };
}
