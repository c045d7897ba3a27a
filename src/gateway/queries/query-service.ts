import type { ServiceImpl } from '@connectrpc/connect';
import type { QueryService } from '../../gen/gatehouse/v1/query_service_pb.ts';

/** The handlers of QueryService: questions beyond those of workspace.v1. */
export function createQueryService(): Partial<ServiceImpl<typeof QueryService>> {
  return {};
}
