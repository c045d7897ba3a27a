import type { ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import type { QueryService } from '../../gen/gatehouse/v1/query_service_pb.ts';
import { checkNamespace, checkObjectId, checkRelation } from '../../model/names.ts';
import { AppError } from '../../shared/app-error.ts';
import type { RpcReason } from '../rpc/rpc-reason.ts';
import { askedSubject } from './query-from-proto.ts';
import { askQuery, type QueryOptions, scopedQuery } from './query-scope.ts';

/** As many as a namespace may declare. */
export const RELATIONS_MAX = 256;

/** The relations of a subject on one object, and the objects of many on which it holds one. */
export function relationHandlers(
  options: QueryOptions,
): Pick<ServiceImpl<typeof QueryService>, 'listRelations' | 'filterObjects'> {
  const { meter, batchItemsMax } = options;
  return {
    listRelations: (request, call) =>
      meter.measure('ListRelations', async () => {
        assertNoUnknownFields(request);
        const { namespace, objectId, relations } = request;
        checkNamespace('namespace', namespace);
        checkObjectId('object_id', objectId);
        const subject = askedSubject('subject', request.subject);
        checkEach('relations', relations, RELATIONS_MAX, checkRelation);
        const query = scopedQuery(options, request.scope);
        const args = { ...query.head, namespace, objectId, subject, relations };
        const reply = await askQuery(options, call, query, 'listRelations', args);
        return {
          relations: [...reply.result.relations],
          undecidedRelations: [...reply.result.undecidedRelations],
          consistencyToken: reply.consistencyToken,
        };
      }),

    filterObjects: (request, call) =>
      meter.measure('FilterObjects', async () => {
        assertNoUnknownFields(request);
        const { namespace, relation, objectIds } = request;
        checkNamespace('namespace', namespace);
        checkRelation('relation', relation);
        const subject = askedSubject('subject', request.subject);
        checkEach('object_ids', objectIds, batchItemsMax, checkObjectId);
        const query = scopedQuery(options, request.scope);
        const args = { ...query.head, namespace, relation, subject, objectIds };
        const reply = await askQuery(options, call, query, 'filterObjects', args);
        const { positions, undecidedPositions, unknownRelation } = reply.result;
        const idAt = (position: number): string => objectIds[position] as string;
        return {
          objectIds: positions.map(idAt),
          undecidedObjectIds: undecidedPositions.map(idAt),
          consistencyToken: reply.consistencyToken,
          unknownRelation,
        };
      }),
  };
}

/** Errors: BATCH_TOO_LARGE; those of `check`, which name the item. */
function checkEach(
  field: string,
  items: readonly string[],
  itemsMax: number,
  check: (field: string, item: string) => void,
): void {
  if (items.length > itemsMax) {
    throw new AppError<RpcReason>(
      'BATCH_TOO_LARGE',
      `${field}: ${items.length} items, at most ${itemsMax}`,
      { field, limit: String(itemsMax) },
    );
  }
  for (const [index, item] of items.entries()) check(`${field}[${index}]`, item);
}
