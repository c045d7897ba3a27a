import { expect, test } from 'vitest';
import { packChanges } from '../../model/packed-changes.ts';
import type { RelationTuple } from '../../model/relation-tuple.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import { PackingShardIndex } from './packing-index.ts';
import { SmallShards } from './small-shards.ts';

const tuple = (objectId: string, payload: Partial<RelationTuple> = {}): RelationTuple => ({
  namespace: 'doc',
  objectId,
  relation: 'viewer',
  subject: { kind: 'user', userId: 'u' },
  ...payload,
});

const indexOf = (bytesMax: number): PackingShardIndex =>
  new PackingShardIndex(new SmallShards({ bytesMax, cacheBytesOf: () => 0 }), { isInUse: false });

/** The edge of a document to the user, with what it carries. */
function edgeOf(reader: TupleReader, objectId: string): unknown {
  const doc = reader.entityId(reader.nameId('doc'), objectId);
  const node = reader.nodeId(doc, reader.nameId('viewer'));
  const user = reader.userNodeOf(reader.entityId(0, 'u'));
  if (node === 0 || user === 0) return 'absent';
  const edge = reader.edge(node, user);
  return edge === 2 ? reader.qualifier(node, user) : edge === 1 ? 'plain' : 'absent';
}

test('changes come whole: inserts with what they carry, deletions, in their order', () => {
  const index = indexOf(1e9);
  index.apply(
    packChanges([
      { op: 'insert', tuple: tuple('plain') },
      { op: 'insert', tuple: tuple('expiring', { expiresAtUs: 5_000n }) },
      {
        op: 'insert',
        tuple: tuple('conditional', { conditionName: 'c', conditionParams: '{"a":1}' }),
      },
      { op: 'insert', tuple: tuple('gone') },
      { op: 'delete', tuple: tuple('gone') },
    ]),
  );
  const { reader } = index;
  expect(['plain', 'expiring', 'conditional', 'gone'].map((id) => edgeOf(reader, id))).toEqual([
    'plain',
    { expiresAtMs: 5, conditionName: '', conditionParams: '' },
    { expiresAtMs: Infinity, conditionName: 'c', conditionParams: '{"a":1}' },
    'absent',
  ]);
  expect(index.tupleCount).toBe(3);
  expect(index.bytes).toBeGreaterThan(1000);
  index.apply(packChanges([{ op: 'delete', tuple: tuple('expiring') }]));
  expect([edgeOf(reader, 'expiring'), index.tupleCount]).toEqual(['absent', 2]);
});

test('rows of a snapshot have a binary expiry', () => {
  const index = indexOf(1e9);
  const expiry = Buffer.alloc(8);
  expiry.writeBigInt64BE(7_000n);
  const columns = ['doc', 'a', 'viewer', '', 'u', ''].map((text) => Buffer.from(text));
  const bounds = new Int32Array(18).fill(-1);
  let end = 0;
  [...columns, expiry].forEach((column, i) => {
    bounds[2 * i] = end;
    bounds[2 * i + 1] = end += column.length;
  });
  index.insertRow(Buffer.concat([...columns, expiry]), bounds);
  expect(edgeOf(index.reader, 'a')).toEqual({
    expiresAtMs: 7,
    conditionName: '',
    conditionParams: '',
  });
});

test('beyond its bytes it is too large', () => {
  const index = indexOf(300_000);
  const many = Array.from({ length: 20_000 }, (_, i) => ({
    op: 'insert' as const,
    tuple: tuple(`document-${i}`),
  }));
  expect(() => index.apply(packChanges(many))).toThrow(
    expect.objectContaining({ reason: 'SHARD_TOO_LARGE' }),
  );
});
