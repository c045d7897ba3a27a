import type { ServiceImpl } from '@connectrpc/connect';
import type { ModelService } from '../../gen/gatehouse/v1/model_service_pb.ts';
import type { ModelOptions } from './model-options.ts';
import { previewMethods } from './preview-methods.ts';
import { testMethods } from './test-methods.ts';
import { versionMethods } from './version-methods.ts';
import { writeMethods } from './write-methods.ts';

/** The handlers of ModelService: models of projects: written, versioned, tested and previewed. */
export function createModelService(
  options: ModelOptions,
): Partial<ServiceImpl<typeof ModelService>> {
  return {
    ...versionMethods(options),
    ...writeMethods(options),
    ...testMethods(options),
    ...previewMethods(options),
  };
}
