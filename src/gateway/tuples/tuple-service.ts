import type { ServiceImpl } from '@connectrpc/connect';
import type { TupleService } from '../../gen/gatehouse/v1/tuple_service_pb.ts';

/** The handlers of TupleService: tuples in bulk, and what became of them. */
export function createTupleService(): Partial<ServiceImpl<typeof TupleService>> {
  return {};
}
