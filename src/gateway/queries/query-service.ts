import type { ServiceImpl } from '@connectrpc/connect';
import type { QueryService } from '../../gen/gatehouse/v1/query_service_pb.ts';
import { checkHandlers } from './check-handlers.ts';
import { explainHandlers } from './explain-handlers.ts';
import { listObjectsHandlers } from './list-objects-handlers.ts';
import { listSubjectsHandlers } from './list-subjects-handlers.ts';
import type { QueryOptions } from './query-scope.ts';
import { relationHandlers } from './relation-handlers.ts';
import { whatIfHandlers } from './what-if-handlers.ts';

/** The handlers of QueryService: queries beyond those of workspace.v1. */
export function createQueryService(
  options: QueryOptions,
): Partial<ServiceImpl<typeof QueryService>> {
  return {
    ...checkHandlers(options),
    ...explainHandlers(options),
    ...listObjectsHandlers(options),
    ...listSubjectsHandlers(options),
    ...relationHandlers(options),
    ...whatIfHandlers(options),
    ...explainHandlers(options),
  };
}
