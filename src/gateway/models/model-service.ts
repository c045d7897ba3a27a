import type { ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import type { ModelService } from '../../gen/gatehouse/v1/model_service_pb.ts';
import { requiredError } from '../../model/names.ts';
import { deadlineOf } from '../connect/call-context.ts';
import { authorOf, type ModelOptions } from './model-options.ts';
import { sourcedModel } from './model-source.ts';
import { activationToProto } from './model-to-proto.ts';
import { previewMethods } from './preview-methods.ts';
import { validateMethods } from './validate-methods.ts';
import { versionMethods } from './version-methods.ts';
import { writeMethods } from './write-methods.ts';

type ActivationMethods = Pick<
  ServiceImpl<typeof ModelService>,
  'getModelActivation' | 'cancelModelActivation'
>;

/** The handlers of a model's way into force. */
function activationMethods(options: ModelOptions): ActivationMethods {
  const { activations, history } = options;
  return {
    async getModelActivation(request) {
      assertNoUnknownFields(request);
      const activation = await activations.activation(request.projectId);
      return { activation: activationToProto(history.idOf(request.projectId), activation) };
    },

    async cancelModelActivation(request, context) {
      assertNoUnknownFields(request);
      const { projectId } = request;
      const activation = await activations.cancel(projectId, authorOf(options, context));
      return { activation: activationToProto(history.idOf(projectId), activation) };
    },
  };
}

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
