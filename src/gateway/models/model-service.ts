import type { ServiceImpl } from '@connectrpc/connect';
import type { ModelService } from '../../gen/gatehouse/v1/model_service_pb.ts';

/** The handlers of ModelService: models of projects: written, versioned, tested and previewed. */
export function createModelService(): Partial<ServiceImpl<typeof ModelService>> {
  return {};
}
