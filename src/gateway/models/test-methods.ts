import type { ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import type { ModelService } from '../../gen/gatehouse/v1/model_service_pb.ts';
import { requiredError } from '../../model/names.ts';
import { deadlineOf } from '../connect/call-context.ts';
import type { ModelOptions } from './model-options.ts';
import { sourcedModel } from './model-source.ts';

/** The handler that runs files of assertions. */
export function testMethods(
  options: ModelOptions,
): Pick<ServiceImpl<typeof ModelService>, 'testModel'> {
  const { history, tests } = options;
  return {
    async testModel(request, context) {
      assertNoUnknownFields(request);
      const { projectId, files, model } = request;
      if (files.length === 0) throw requiredError('files');
      const modelJson = model === undefined ? null : sourcedModel('model', model).modelJson;
      const fallbackJson = modelJson ?? (await history.get(projectId, 0)).modelJson;
      const deadlineMs = deadlineOf(context, options);
      const { signal } = context;
      const call = { field: 'files', files, modelJson, fallbackJson, deadlineMs, signal };
      const { assertions, failures } = await tests.run(call);
      return {
        passed: failures.length === 0,
        assertions,
        failures: failures.map((failure) => ({ ...failure })),
      };
    },
  };
}
