import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import {
  type DerivationNodeSchema,
  DerivationStep as ProtoStep,
  type DerivationSchema,
  ObstacleKind as ProtoKind,
  type ObstacleSchema,
  type QueryService,
} from '../../gen/gatehouse/v1/query_service_pb.ts';
import type {
  Derivation,
  DerivationStep,
  Obstacle,
  ObstacleKind,
} from '../../model/explanation.ts';
import { fieldError } from '../../model/field-error.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { timestampFromMicroseconds, tupleToProto } from '../rpc/tuple-to-proto.ts';
import { queryFromProto } from './query-from-proto.ts';
import { askQuery, type QueryOptions, scopedQuery } from './query-scope.ts';

const REMEDIES_DEFAULT = 10;
const REMEDIES_MAX = 100;

const STEPS: Readonly<Record<DerivationStep, ProtoStep>> = {
  direct: ProtoStep.DIRECT,
  userset: ProtoStep.USERSET,
  computed: ProtoStep.COMPUTED,
  tupleToUserset: ProtoStep.TUPLE_TO_USERSET,
  intersection: ProtoStep.INTERSECTION,
  exclusion: ProtoStep.EXCLUSION,
  identity: ProtoStep.IDENTITY,
};

const KINDS: Readonly<Record<ObstacleKind, ProtoKind>> = {
  noGrant: ProtoKind.NO_GRANT,
  excluded: ProtoKind.EXCLUDED,
  expired: ProtoKind.EXPIRED,
  conditionFalse: ProtoKind.CONDITION_FALSE,
  conditionUndecided: ProtoKind.CONDITION_UNDECIDED,
  intersection: ProtoKind.INTERSECTION,
  depth: ProtoKind.DEPTH,
  cycle: ProtoKind.CYCLE,
  budget: ProtoKind.BUDGET,
};

/** Why Check answers as it does. */
export function explainHandlers(
  options: QueryOptions,
): Pick<ServiceImpl<typeof QueryService>, 'explain'> {
  const { meter } = options;
  return {
    explain: (request, call) =>
      meter.measure('Explain', async () => {
        assertNoUnknownFields(request);
        const wanted = queryFromProto('question', request.question);
        const remediesMax = remediesOf(request.remediesMax);
        const query = scopedQuery(options, request.scope);
        const args = { ...query.head, query: wanted, remediesMax };
        const { result, consistencyToken } = await askQuery(options, call, query, 'explain', args);
        const { shard } = query;
        const { derivation, witness, holdsUntilUs } = result;
        const membership = witness?.membership;
        return {
          allowed: result.allowed,
          undecided: result.undecided,
          ...(derivation && { derivation: derivationToProto(shard, derivation) }),
          ...(holdsUntilUs === undefined
            ? {}
            : { holdsUntil: timestampFromMicroseconds(holdsUntilUs) }),
          obstacles: result.obstacles.map((one) => obstacleToProto(shard, one)),
          remedies: result.remedies.map((tuple) => tupleToProto(shard, tuple)),
          truncated: result.truncated,
          reads: BigInt(result.reads),
          consistencyToken,
          memberUserId: witness?.userId ?? '',
          unknownRelation: result.unknownRelation,
          ...(membership && { membership: derivationToProto(shard, membership) }),
        };
      }),
  };
}

function remediesOf(value: number): number {
  if (value < 0 || value > REMEDIES_MAX) {
    throw fieldError('remedies_max', `must be between 0 and ${REMEDIES_MAX}`);
  }
  return value === 0 ? REMEDIES_DEFAULT : value;
}

/** The nodes of a tree, each before its children. O(nodes). */
function derivationToProto(
  shard: ShardKey,
  root: Derivation,
): MessageInitShape<typeof DerivationSchema> {
  const trees = [root];
  const nodes: MessageInitShape<typeof DerivationNodeSchema>[] = [];
  // Grows while it is walked: children follow all that was there before them.
  for (const { namespace, objectId, relation, step, tuple, contextual, children } of trees) {
    nodes.push({
      namespace,
      objectId,
      relation,
      step: STEPS[step],
      ...(tuple && { tuple: tupleToProto(shard, tuple) }),
      contextual,
      children: children.map((child) => trees.push(child) - 1),
    });
  }
  return { nodes };
}

function obstacleToProto(
  shard: ShardKey,
  { kind, namespace, objectId, relation, tuple, derivation, missingInputs, message }: Obstacle,
): MessageInitShape<typeof ObstacleSchema> {
  return {
    kind: KINDS[kind],
    namespace,
    objectId,
    relation,
    ...(tuple && { tuple: tupleToProto(shard, tuple) }),
    ...(derivation && { derivation: derivationToProto(shard, derivation) }),
    missingInputs: [...missingInputs],
    message,
  };
}
