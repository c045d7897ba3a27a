import type { ServiceImpl } from '@connectrpc/connect';
import type { ModelService } from '../../gen/gatehouse/v1/model_service_pb.ts';
import { activationMethods } from './activation-methods.ts';
import type { ModelOptions } from './model-options.ts';
import { previewMethods } from './preview-methods.ts';
import { testMethods } from './test-methods.ts';
import { validateMethods } from './validate-methods.ts';
import { versionMethods } from './version-methods.ts';
import { writeMethods } from './write-methods.ts';

/** The handlers of ModelService: models of projects: written, versioned, tested and previewed. */
export function createModelService(
  options: ModelOptions,
): Partial<ServiceImpl<typeof ModelService>> {
  return {
    ...validateMethods(),
    ...versionMethods(options),
    ...writeMethods(options),
    ...activationMethods(options),
    ...testMethods(options),
    ...previewMethods(options),
  };
}
