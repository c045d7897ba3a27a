import { create, fromBinary, toBinary, toJsonString } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { encodeList } from '../../src/gateway/rpc/list-encoder.ts';
import {
  ListObjectsResponseSchema,
  ReadRelationTuplesResponseSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { encodedJsonOf } from '../../src/http/connect/protocol/encoded-answer.ts';
import type { RelationTuple } from '../../src/model/relation-tuple.ts';
import { tupleToProto } from '../../src/requests/tuple-to-proto.ts';

const JSON_WRITE = { useProtoFieldName: true, alwaysEmitImplicit: true };
const shard = { projectId: 'p', tenantId: 't' };
const tuples = Array.from({ length: 1000 }, (_, i): RelationTuple => {
  const key = { namespace: 'doc', objectId: `é"\\${i}`, relation: 'viewer' };
  if (i % 3 === 0) return { ...key, subject: { kind: 'wildcard' }, expiresAtUs: BigInt(i) };
  if (i % 3 === 1) return { ...key, subject: { kind: 'wildcardOf', namespace: `team${i}` } };
  return {
    ...key,
    subject: { kind: 'user', userId: `u${i}` },
    conditionName: 'not_after',
    conditionParams: '{"a":[1,{"b":"]}"}]}',
  };
});
const ids = Array.from({ length: 777 }, (_, i) => `]}"${i}\u2028`);

test.each([true, false])(
  'a list of messages encodes as the message would (JSON: %s)',
  async (isJson) => {
    const desc = ReadRelationTuplesResponseSchema;
    const messageOf = (items: readonly RelationTuple[]) => ({
      tuples: items.map((tuple) => tupleToProto(shard, tuple)),
    });
    const whole = create(desc, messageOf(tuples));
    const sliced = await encodeList({ desc, items: tuples, messageOf, isJson });
    if (isJson) {
      expect(Buffer.from(encodedJsonOf(sliced) ?? []).toString()).toBe(
        toJsonString(desc, whole, JSON_WRITE),
      );
    } else {
      expect(fromBinary(desc, toBinary(desc, sliced))).toEqual(whole);
      expect(Buffer.from(toBinary(desc, sliced))).toEqual(Buffer.from(toBinary(desc, whole)));
    }
  },
);

test.each([true, false])(
  'a list of strings encodes as the message would (JSON: %s)',
  async (isJson) => {
    const desc = ListObjectsResponseSchema;
    const messageOf = (items: readonly string[]) => ({ objectIds: [...items] });
    const whole = create(desc, messageOf(ids));
    const sliced = await encodeList({ desc, items: ids, messageOf, isJson });
    if (isJson) {
      expect(Buffer.from(encodedJsonOf(sliced) ?? []).toString()).toBe(
        toJsonString(desc, whole, JSON_WRITE),
      );
    } else {
      expect(Buffer.from(toBinary(desc, sliced))).toEqual(Buffer.from(toBinary(desc, whole)));
    }
  },
);

test.each([0, 1, 64, 256, 320])('%d items are all of them, and no more', async (count) => {
  const desc = ListObjectsResponseSchema;
  const messageOf = (items: readonly string[]) => ({ objectIds: [...items] });
  const items = ids.slice(0, count);
  const whole = create(desc, messageOf(items));
  const json = await encodeList({ desc, items, messageOf, isJson: true });
  expect(Buffer.from(encodedJsonOf(json) ?? []).toString()).toBe(
    toJsonString(desc, whole, JSON_WRITE),
  );
  const proto = await encodeList({ desc, items, messageOf, isJson: false });
  expect(Buffer.from(toBinary(desc, proto))).toEqual(Buffer.from(toBinary(desc, whole)));
});

test('other work has its turn while a long list is encoded', async () => {
  const desc = ReadRelationTuplesResponseSchema;
  const messageOf = (items: readonly RelationTuple[]) => ({
    tuples: items.map((tuple) => tupleToProto(shard, tuple)),
  });
  let turns = 0;
  let isEncoded = false;
  const turn = (): void => {
    turns += 1;
    if (!isEncoded) setImmediate(turn);
  };
  setImmediate(turn);
  // Twenty thousand messages take many slices of two milliseconds on any machine.
  const items = Array.from({ length: 20 }, () => tuples).flat();
  await encodeList({ desc, items, messageOf, isJson: true });
  isEncoded = true;
  expect(turns).toBeGreaterThan(2);
});
