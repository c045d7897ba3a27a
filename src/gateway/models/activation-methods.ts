import type { ServiceImpl } from '@connectrpc/connect';
import type { ModelService } from '../../gen/gatehouse/v1/model_service_pb.ts';
import { assertNoUnknownFields } from '../rpc/unknown-fields.ts';
import { authorOf, type ModelOptions } from './model-options.ts';
import { activationToProto } from './model-to-proto.ts';

type ActivationMethods = Pick<
  ServiceImpl<typeof ModelService>,
  'getModelActivation' | 'cancelModelActivation'
>;

/** The handlers of a model's way into force. */
export function activationMethods(options: ModelOptions): ActivationMethods {
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
