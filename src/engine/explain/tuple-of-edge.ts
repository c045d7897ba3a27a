import type { RelationTuple, Subject } from '../../model/relation-tuple.ts';
import {
  EDGE_WITH_QUALIFIER,
  EMPTY_NAME,
  type TupleReader,
  WILDCARD_NAME,
  WILDCARD_NODE,
} from '../../model/tuple-reader.ts';
import type { EdgeIds } from './leaf-walk.ts';

const US_PER_MS = 1000;

/** Microseconds since the epoch of what an index holds in milliseconds with fractions. */
export function toMicroseconds(ms: number): bigint {
  return BigInt(Math.round(ms * US_PER_MS));
}

/** A stored tuple in words, with its expiry and condition. */
export function tupleOfEdge(reader: TupleReader, { node, subject }: EdgeIds): RelationTuple {
  const entity = reader.entityOf(node);
  const key = {
    namespace: reader.nameText(reader.namespaceOf(entity)),
    objectId: reader.entityText(entity),
    relation: reader.nameText(reader.relationOf(node)),
    subject: subjectOfNode(reader, subject),
  };
  if (reader.edge(node, subject) !== EDGE_WITH_QUALIFIER) return key;
  const { expiresAtMs, conditionName, conditionParams } = reader.qualifier(node, subject);
  return {
    ...key,
    ...(Number.isFinite(expiresAtMs) ? { expiresAtUs: toMicroseconds(expiresAtMs) } : {}),
    ...(conditionName === '' ? {} : { conditionName }),
    ...(conditionParams === '' ? {} : { conditionParams }),
  };
}

/** The subject of a subject node. */
export function subjectOfNode(reader: TupleReader, node: number): Subject {
  if (node === WILDCARD_NODE) return { kind: 'wildcard' };
  const entity = reader.entityOf(node);
  const namespace = reader.namespaceOf(entity);
  const id = reader.entityText(entity);
  if (namespace === EMPTY_NAME) return { kind: 'user', userId: id };
  if (namespace === WILDCARD_NAME) return { kind: 'wildcardOf', namespace: id };
  const relation = reader.nameText(reader.relationOf(node));
  return { kind: 'set', namespace: reader.nameText(namespace), objectId: id, relation };
}
