import { create, type JsonObject, type MessageInitShape } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import {
  RelationTupleSchema,
  type RelationTuple as ProtoTuple,
  SubjectSchema,
  UsersetTree_NodeType,
  type UsersetTreeSchema,
} from '../gen/workspace/v1/authz_service_pb.ts';
import type { ExpandTree } from '../model/expand-tree.ts';
import type { RelationTuple, ShardKey, Subject } from '../model/relation-tuple.ts';

/** Converts a stored tuple of `shard` to its response form. Cost: a few objects; condition params are parsed. */
export function tupleToProto(shard: ShardKey, tuple: RelationTuple): ProtoTuple {
  const message = create(RelationTupleSchema);
  message.projectId = shard.projectId;
  message.tenantId = shard.tenantId;
  message.namespace = tuple.namespace;
  message.objectId = tuple.objectId;
  message.relation = tuple.relation;
  message.subject = create(SubjectSchema, { kind: kindToProto(tuple.subject) });
  message.conditionName = tuple.conditionName ?? '';
  if (tuple.expiresAtUs !== undefined) {
    message.expiresAt = timestampFromMicroseconds(tuple.expiresAtUs);
  }
  if (tuple.conditionParams !== undefined) {
    // The write path made this text from a Struct.
    message.conditionParams = JSON.parse(tuple.conditionParams) as JsonObject;
  }
  return message;
}

type SubjectKind = NonNullable<MessageInitShape<typeof SubjectSchema>['kind']>;

function kindToProto(subject: Subject): SubjectKind {
  switch (subject.kind) {
    case 'user':
      return { case: 'userId', value: subject.userId };
    case 'wildcard':
      return { case: 'wildcard', value: true };
    case 'wildcardOf':
      return { case: 'wildcardOf', value: subject.namespace };
    case 'set':
      return {
        case: 'set',
        value: {
          namespace: subject.namespace,
          objectId: subject.objectId,
          relation: subject.relation,
        },
      };
  }
}

/** Converts microseconds since the epoch, also negative ones, to a Timestamp. */
export function timestampFromMicroseconds(microseconds: bigint): Timestamp {
  let seconds = microseconds / 1_000_000n;
  let rest = microseconds % 1_000_000n;
  if (rest < 0n) {
    seconds -= 1n;
    rest += 1_000_000n;
  }
  return create(TimestampSchema, { seconds, nanos: Number(rest) * 1000 });
}

/** Converts an expansion to its response form. O(nodes). */
export function treeToProto(tree: ExpandTree): MessageInitShape<typeof UsersetTreeSchema> {
  const expanded = tree.expanded === undefined ? {} : { expanded: tree.expanded };
  switch (tree.type) {
    case 'leaf':
      return {
        ...expanded,
        type: UsersetTree_NodeType.LEAF,
        userIds: [...tree.userIds],
        sets: [...tree.sets],
        wildcard: tree.wildcard,
        ...(tree.wildcardsOf === undefined
          ? {}
          : { wildcardsOf: { namespaces: [...tree.wildcardsOf] } }),
      };
    case 'union':
      return {
        ...expanded,
        type: UsersetTree_NodeType.UNION,
        children: tree.children.map(treeToProto),
      };
    case 'intersection':
      return {
        ...expanded,
        type: UsersetTree_NodeType.INTERSECTION,
        children: tree.children.map(treeToProto),
      };
    case 'exclusion':
      return {
        ...expanded,
        type: UsersetTree_NodeType.EXCLUSION,
        include: treeToProto(tree.include),
        exclude: treeToProto(tree.exclude),
      };
  }
}
