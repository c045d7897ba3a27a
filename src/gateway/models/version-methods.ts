import type { ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import type { ModelService } from '../../gen/gatehouse/v1/model_service_pb.ts';
import { printGate } from '../../language/gate/print-gate-tree.ts';
import { inspectModel } from '../../model/namespace/namespace-model.ts';
import type { StoredModel } from '../../services/models/model-history.ts';
import { AppError } from '../../shared/app-error.ts';
import { deadlineOf } from '../connect/call-context.ts';
import { authorOf, type ModelOptions } from './model-options.ts';
import { activationToProto, modelVersionToProto } from './model-to-proto.ts';

type VersionMethods = Pick<
  ServiceImpl<typeof ModelService>,
  'getModel' | 'listModelVersions' | 'rollBackModel'
>;

/** The handlers of the history of models. */
export function versionMethods(options: ModelOptions): VersionMethods {
  const { history } = options;
  return {
    async getModel(request) {
      assertNoUnknownFields(request);
      const model = await history.get(request.projectId, Number(request.version));
      const { version, modelJson } = model;
      return {
        ...(version === undefined ? {} : { version: modelVersionToProto(version) }),
        modelJson,
        modelGate: gateOf(model),
      };
    },

    async listModelVersions(request) {
      assertNoUnknownFields(request);
      const { projectId, pageSize, pageToken } = request;
      const { versions, nextPageToken } = await history.list(projectId, pageSize, pageToken);
      return { versions: versions.map(modelVersionToProto), nextPageToken };
    },

    async rollBackModel(request, context) {
      assertNoUnknownFields(request);
      const { projectId, comment, force } = request;
      const outcome = await history.rollBack({
        projectId,
        version: Number(request.version),
        expectedVersion: expectedVersionOf(request.expectedVersion),
        comment,
        force,
        author: authorOf(options, context),
        deadlineMs: deadlineOf(context, options),
      });
      const { errors, warnings } = inspectModel(outcome.modelJson);
      return {
        version: BigInt(outcome.version),
        activation: activationToProto(history.idOf(projectId), outcome.activation),
        warnings: [...errors, ...warnings].map((problem) => ({ ...problem })),
      };
    },
  };
}

/** The expected version of a request; 0 is not checked. */
export function expectedVersionOf(version: bigint): number | null {
  return version === 0n ? null : Number(version);
}

/** The readable form: as it was written, else printed. '' of the built-in model and of what has none. */
export function gateOf({ modelJson, modelGate }: StoredModel): string {
  if (modelGate !== '' || modelJson === '') return modelGate;
  try {
    return printGate(JSON.parse(modelJson));
  } catch (error) {
    // A model that an older release took may hold what the readable form cannot express.
    if (error instanceof AppError && error.reason === 'MODEL_INVALID') return '';
    throw error;
  }
}
