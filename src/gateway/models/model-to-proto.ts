import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  ModelActivationState,
  type ModelActivationSchema,
  type ModelVersionSchema,
} from '../../gen/gatehouse/v1/model_service_pb.ts';
import { subjectFromColumns } from '../../model/relation-tuple.ts';
import { timestampFromMicroseconds, tupleToProto } from '../../requests/tuple-to-proto.ts';
import type { ModelVersion } from '../../services/models/model-version.ts';
import type { ModelActivation, RefusedTuple } from '../../services/projects/model-writes.ts';

const STATES = {
  none: ModelActivationState.UNSPECIFIED,
  pending: ModelActivationState.PENDING,
  active: ModelActivationState.ACTIVE,
  refused: ModelActivationState.REFUSED,
  cancelled: ModelActivationState.CANCELLED,
} as const satisfies Record<ModelActivation['state'], ModelActivationState>;

/** The response form of a version. */
export function modelVersionToProto(
  version: ModelVersion,
): MessageInitShape<typeof ModelVersionSchema> {
  const { createdAtUs, sha256, droppedNamespaces, ...fields } = version;
  return {
    ...fields,
    droppedNamespaces: [...droppedNamespaces],
    version: BigInt(version.version),
    rolledBackTo: BigInt(version.rolledBackTo),
    createdAt: timestampFromMicroseconds(createdAtUs),
    modelSha256: sha256,
  };
}

/** The response form of the progress of an activation. */
export function activationToProto(
  projectId: string,
  activation: ModelActivation,
): MessageInitShape<typeof ModelActivationSchema> {
  return {
    version: BigInt(activation.version),
    state: STATES[activation.state],
    tuplesScanned: BigInt(activation.tuplesScanned),
    tuplesRefused: BigInt(activation.tuplesRefused),
    examples: activation.examples.map(({ problem, ...example }) => ({
      tuple: refusedTuple(projectId, example),
      problem,
    })),
    droppedNamespaces: [...activation.droppedNamespaces],
  };
}

function refusedTuple(
  projectId: string,
  { tenantId, columns }: Omit<RefusedTuple, 'problem'>,
): ReturnType<typeof tupleToProto> {
  const text = (index: number): string => columns[index] ?? '';
  const expiry = columns[6];
  return tupleToProto(
    { projectId, tenantId },
    {
      namespace: text(0),
      objectId: text(1),
      relation: text(2),
      subject: subjectFromColumns(text(3), text(4), text(5)),
      expiresAtUs: expiry == null ? undefined : BigInt(expiry),
      conditionName: columns[7] ?? undefined,
      conditionParams: columns[8] ?? undefined,
    },
  );
}
