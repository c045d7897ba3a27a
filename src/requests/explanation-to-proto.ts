import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type DerivationNodeSchema,
  DerivationStep as ProtoStep,
  type DerivationSchema,
  type ExplainResponse,
  ExplainResponseSchema,
  ObstacleKind as ProtoKind,
  type ObstacleSchema,
} from '../gen/gatehouse/v1/query_service_pb.ts';
import type { Derivation, DerivationStep, Obstacle, ObstacleKind } from '../model/explanation.ts';
import type { ShardKey } from '../model/relation-tuple.ts';
import type { QueryResults } from '../protocol/queries.ts';
import { timestampFromMicroseconds, tupleToProto } from './tuple-to-proto.ts';

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

/** Converts an explanation of `shard` to its response, without the consistency token. O(nodes and tuples). */
export function explanationToProto(
  shard: ShardKey,
  result: QueryResults['explain'],
): ExplainResponse {
  const { derivation, witness, holdsUntilUs } = result;
  const membership = witness?.membership;
  return create(ExplainResponseSchema, {
    allowed: result.allowed,
    undecided: result.undecided,
    ...(derivation && { derivation: derivationToProto(shard, derivation) }),
    ...(holdsUntilUs === undefined ? {} : { holdsUntil: timestampFromMicroseconds(holdsUntilUs) }),
    obstacles: result.obstacles.map((one) => obstacleToProto(shard, one)),
    remedies: result.remedies.map((tuple) => tupleToProto(shard, tuple)),
    truncated: result.truncated,
    reads: BigInt(result.reads),
    memberUserId: witness?.userId ?? '',
    unknownRelation: result.unknownRelation,
    ...(membership && { membership: derivationToProto(shard, membership) }),
  });
}

/** Flattens a derivation tree into a list with each node before its children. O(nodes). */
function derivationToProto(
  shard: ShardKey,
  root: Derivation,
): MessageInitShape<typeof DerivationSchema> {
  const trees = [root];
  const nodes: MessageInitShape<typeof DerivationNodeSchema>[] = [];
  // The list grows during the loop: children are appended behind all earlier nodes.
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
