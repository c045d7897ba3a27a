import type { ServiceImpl } from '@connectrpc/connect';
import type { QueryService } from '../../gen/gatehouse/v1/query_service_pb.ts';
import { listObjectsHandlers } from './list-objects-handlers.ts';
import { listSubjectsHandlers } from './list-subjects-handlers.ts';
import { queryHandlers } from './query-handlers.ts';
import type { QueryOptions } from './query-scope.ts';
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
