import type { MessageShape } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import type { QueryService } from '../../gen/gatehouse/v1/query_service_pb.ts';
import type { QueryMethod, QueryMethodKinds, QueryRpc } from '../../protocol/queries.ts';
import { QUERY_METHODS, readQuery } from '../../requests/query-methods.ts';
import { DECODE_TURNS, runSoon } from '../../shared/slice-queue.ts';
import { listObjectsHandlers } from './list-objects-handlers.ts';
import { listSubjectsHandlers } from './list-subjects-handlers.ts';
import { askQuery, type QueryOptions } from './query-scope.ts';
import { whatIfHandlers } from './what-if-handlers.ts';

/** The handlers of QueryService: queries beyond those of workspace.v1. */
export function createQueryService(
  options: QueryOptions,
): Partial<ServiceImpl<typeof QueryService>> {
  return {
    ...queryHandlers(options),
    ...listObjectsHandlers(options),
    ...listSubjectsHandlers(options),
    ...whatIfHandlers(options),
  };
}

/** A handler of a method of QueryService. */
type QueryHandler<M extends QueryMethod> = (
  request: MessageShape<(typeof QUERY_METHODS)[M]['request']>,
  call: HandlerContext,
) => Promise<MessageShape<(typeof QUERY_METHODS)[M]['answer']>>;

/** The general path of the questions that a worker decodes itself where nothing is unusual about them. */
export function queryHandlers(
  options: QueryOptions,
): Pick<
  ServiceImpl<typeof QueryService>,
  'check' | 'batchCheck' | 'listRelations' | 'filterObjects' | 'explain'
> {
  return {
    check: handlerOf(options, 'queryCheck', 'QueryCheck'),
    batchCheck: handlerOf(options, 'queryBatchCheck', 'QueryBatchCheck'),
    listRelations: handlerOf(options, 'listRelations', 'ListRelations'),
    filterObjects: handlerOf(options, 'filterObjects', 'FilterObjects'),
    explain: handlerOf(options, 'explain', 'Explain'),
  };
}

function handlerOf<M extends QueryMethod>(
  options: QueryOptions,
  method: M,
  rpc: QueryRpc,
): QueryHandler<M> {
  const { meter, scopes, batchItemsMax: itemsMax } = options;
  const reading = { projectIdOf: (id: string) => scopes.projectIdOf(id), itemsMax };
  const kind: QueryMethodKinds[M] = QUERY_METHODS[method].kind as QueryMethodKinds[M];
  return (request, call) =>
    meter.measure(rpc, async () => {
      assertNoUnknownFields(request);
      const asked = await runSoon(readQuery(method, request, reading), DECODE_TURNS);
      const reply = await askQuery(options, call, asked.query, kind, asked.args);
      // Not before: of a batch that fails as a whole the call is what failed.
      for (const problem of asked.problems) meter.itemFailed(problem, rpc);
      const answer = await runSoon(asked.answerOf(reply.result), DECODE_TURNS);
      const { consistencyToken } = reply;
      return Object.assign(answer as MessageShape<(typeof QUERY_METHODS)[M]['answer']>, {
        consistencyToken,
      });
    });
}
