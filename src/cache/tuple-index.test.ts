import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkIndex, listOf } from '../../test/support/index-structure/check-index.ts';
import { byLength } from '../../test/support/test-length.ts';
import { subjectFromColumns } from '../model/relation-tuple.ts';
import { EDGE_NODE_MASK, EDGE_QUALIFIED, WILDCARD_NODE } from '../model/tuple-reader.ts';
import { TupleIndex } from './tuple-index.ts';
import { ROW_BOUNDS } from './tuple-row.ts';
import type { RowBytes, TupleRow } from './tuple-row.ts';

const numRuns = byLength(35, 100) * Number(process.env['FUZZ_RUNS'] ?? 1);

/** The slow, obvious model: rows by identity. */
type Model = Map<string, TupleRow>;
const identity = (r: TupleRow): string =>
  JSON.stringify([
    r.namespace,
    r.objectId,
    r.relation,
    r.subjectNamespace,
    r.subjectId,
    r.subjectRelation,
  ]);

const ids = [
  'a',
  'b',
  'abcd',
  'abcde',
  'ab',
  'é',
  'éa',
  '日本語',
  '𝄞',
  '𝄞𝄞',
  'x'.repeat(300),
  'y'.repeat(600),
  'u:1',
  '\u{ffff}',
  '\u{e000}',
];
const namespaceArb = fc.constantFrom('doc', 'group', 'folder', 'user');
const relationArb = fc.oneof(
  fc.constantFrom('viewer', 'member', 'parent'),
  fc.nat(25).map((n) => `r${n}`),
);
const idArb = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...ids) },
  {
    weight: 1,
    arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12, size: 'max' }),
  },
);
const subjectArb = fc.oneof(
  idArb.map((id) => ['', id, ''] as const),
  fc.constant(['*', '', ''] as const),
  fc.oneof(namespaceArb, fc.constant('ghost')).map((of) => ['*', of, ''] as const),
  fc.tuple(namespaceArb, idArb, fc.oneof(relationArb, fc.constant(''))),
);
const payloadArb = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.record({ expiresAtUs: fc.bigInt(-(2n ** 52n), 2n ** 52n) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      conditionName: fc.constantFrom('not_after', 'viewer', 'scope_in'),
      conditionParams: fc.oneof(
        fc.constant('{}'),
        fc
          .string({ unit: 'grapheme', maxLength: 40, size: 'max' })
          .map((s) => JSON.stringify({ s })),
      ),
    }),
  },
);
const rowArb: fc.Arbitrary<TupleRow> = fc
  .tuple(namespaceArb, idArb, relationArb, subjectArb, payloadArb)
  .map(
    ([namespace, objectId, relation, [subjectNamespace, subjectId, subjectRelation], payload]) => ({
      namespace,
      objectId,
      relation,
      subjectNamespace,
      subjectId,
      subjectRelation,
      ...payload,
    }),
  );
const changesArb = fc.array(
  fc.tuple(
    fc.integer({ min: 0, max: 9 }).map((n) => n < 6),
    rowArb,
  ),
  { maxLength: 300, size: 'max' },
);

function apply(index: TupleIndex, model: Model, insert: boolean, row: TupleRow): void {
  const key = identity(row);
  const known = model.has(key);
  const before = index.revision;
  const changed = insert ? index.insert(row) : index.remove(row);
  // "expect" takes longer than the change.
  if (changed !== (insert ? !known : known)) expect.fail(`${key} changed: ${changed}`);
  if (index.revision > before !== (insert || known)) expect.fail(`the revision after ${key}`);
  if (insert) model.set(key, row);
  else model.delete(key);
}

/** All answers of an index in terms of strings, independent of ids and orders. */
function describeIndex(index: TupleIndex): string[] {
  const nodeText = (node: number): string =>
    node === WILDCARD_NODE
      ? '*'
      : JSON.stringify([
          index.nameText(index.namespaceOf(index.entityOf(node))),
          index.entityText(index.entityOf(node)),
          index.nameText(index.relationOf(node)),
        ]);
  const lines: string[] = [];
  for (const namespace of ['', 'doc', 'group', 'folder', 'user', '*']) {
    const out = new Uint32Array(7);
    for (let cursor = 0; cursor >= 0; cursor = index.nextCursor) {
      const count = index.readEntitiesOf(index.nameId(namespace), cursor, out, 0);
      const next = index.nextCursor;
      for (const entity of out.slice(0, count)) {
        for (let node = index.firstNodeOf(entity); node !== 0; node = index.nextNodeOf(node)) {
          if (node === WILDCARD_NODE) continue;
          for (const list of ['users', 'sets', 'reverse'] as const) {
            for (const entry of listOf(index, node, list)) {
              const other = entry & EDGE_NODE_MASK;
              const qualified = (entry & EDGE_QUALIFIED) !== 0;
              const qualifier = qualified
                ? list === 'reverse'
                  ? index.qualifier(other, node)
                  : index.qualifier(node, other)
                : '';
              lines.push(
                `${nodeText(node)} ${list} ${nodeText(other)} ${JSON.stringify(qualifier)} ${String(qualified)}`,
              );
            }
          }
        }
      }
      index.nextCursor = next;
    }
  }
  for (const entry of listOf(index, WILDCARD_NODE, 'reverse'))
    lines.push(`* held by ${nodeText(entry & EDGE_NODE_MASK)} ${entry >>> 31}`);
  lines.push(`typed wildcards: ${String(index.hasTypedWildcards)}`);
  return lines.toSorted();
}

function describeModel(model: Model): string[] {
  const lines: string[] = [];
  for (const r of model.values()) {
    const node = JSON.stringify([r.namespace, r.objectId, r.relation]);
    const wildcard = r.subjectNamespace === '*' && r.subjectId === '';
    const subject = wildcard
      ? '*'
      : JSON.stringify([r.subjectNamespace, r.subjectId, r.subjectRelation]);
    const qualified = r.expiresAtUs !== undefined || r.conditionName !== undefined;
    const qualifier = qualified
      ? {
          expiresAtMs: r.expiresAtUs === undefined ? Infinity : Number(r.expiresAtUs) / 1000,
          conditionName: r.conditionName ?? '',
          conditionParams: r.conditionParams ?? '',
        }
      : '';
    const list = wildcard || r.subjectNamespace === '' ? 'users' : 'sets';
    lines.push(`${node} ${list} ${subject} ${JSON.stringify(qualifier)} ${String(qualified)}`);
    if (wildcard) lines.push(`* held by ${node} ${qualified ? 1 : 0}`);
    else lines.push(`${subject} reverse ${node} ${JSON.stringify(qualifier)} ${String(qualified)}`);
  }
  const isTyped = (r: TupleRow): boolean => r.subjectNamespace === '*' && r.subjectId !== '';
  lines.push(`typed wildcards: ${String([...model.values()].some(isTyped))}`);
  return lines.toSorted();
}

function rowBytes(rows: readonly TupleRow[], expiryFormat: 'binary' | 'text'): RowBytes {
  const chunks: Buffer[] = [];
  const bounds = new Int32Array(rows.length * ROW_BOUNDS);
  let length = 0;
  rows.forEach((r, row) => {
    const expiry = Buffer.alloc(8);
    if (expiryFormat === 'binary' && r.expiresAtUs != null) expiry.writeBigInt64BE(r.expiresAtUs);
    const columns = [
      r.namespace,
      r.objectId,
      r.relation,
      r.subjectNamespace,
      r.subjectId,
      r.subjectRelation,
      r.expiresAtUs == null ? null : expiryFormat === 'binary' ? expiry : String(r.expiresAtUs),
      r.conditionName ?? null,
      r.conditionParams ?? null,
    ];
    columns.forEach((column, i) => {
      const chunk = column === null ? Buffer.alloc(0) : Buffer.from(column as string);
      bounds[row * ROW_BOUNDS + i * 2] = column === null ? -1 : length;
      bounds[row * ROW_BOUNDS + i * 2 + 1] = column === null ? -1 : length + chunk.length;
      length += chunk.length;
      chunks.push(chunk);
    });
  });
  return { bytes: Buffer.concat(chunks), bounds, rows: rows.length, expiryFormat };
}

describe('TupleIndex against a map of rows', () => {
  test('random changes give the same answers, and a snapshot of them too', () => {
    fc.assert(
      fc.property(changesArb, fc.boolean(), (changes, binary) => {
        const index = new TupleIndex();
        const model: Model = new Map();
        for (const [insert, row] of changes) apply(index, model, insert, row);
        checkIndex(index);
        expect(index.tupleCount).toBe(model.size);
        const expected = describeModel(model);
        expect(describeIndex(index)).toEqual(expected);

        const rows = [...model.values()].toSorted((a, b) =>
          Buffer.compare(Buffer.from(identity(a)), Buffer.from(identity(b))),
        );
        const loaded = new TupleIndex();
        const half = rows.length >>> 1;
        loaded.insertRows(rowBytes(rows.slice(0, half), binary ? 'binary' : 'text'));
        loaded.insertRows(rowBytes(rows.slice(half), binary ? 'binary' : 'text'));
        checkIndex(loaded);
        expect(describeIndex(loaded)).toEqual(expected);

        expect(rows.filter((row) => !index.remove(row))).toEqual([]);
        checkIndex(index);
        const all = rowBytes(rows, 'text');
        expect(rows.filter((_, i) => !loaded.removeRow(all, i))).toEqual([]);
        checkIndex(loaded);
        expect([index.tupleCount, index.nodeCount, index.parts.dictionary.count]).toEqual([
          0, 1, 2,
        ]);
      }),
      { numRuns },
    );
  });

  test('edge answers for every pair of nodes', () => {
    fc.assert(
      fc.property(fc.array(rowArb, { maxLength: 40, size: 'max' }), (rows) => {
        const index = new TupleIndex();
        const model: Model = new Map();
        for (const row of rows) apply(index, model, true, row);
        for (const a of rows) {
          for (const b of rows) {
            const node = index.nodeId(
              index.entityId(index.nameId(a.namespace), a.objectId),
              index.nameId(a.relation),
            );
            const subject =
              b.subjectNamespace === '*' && b.subjectId === ''
                ? WILDCARD_NODE
                : index.nodeId(
                    index.entityId(index.nameId(b.subjectNamespace), b.subjectId),
                    index.nameId(b.subjectRelation),
                  );
            const stored = model.get(
              identity({
                ...a,
                subjectNamespace: b.subjectNamespace,
                subjectId: b.subjectId,
                subjectRelation: b.subjectRelation,
              }),
            );
            const expected =
              stored === undefined
                ? 0
                : stored.expiresAtUs === undefined && stored.conditionName === undefined
                  ? 1
                  : 2;
            const edge = index.edge(node, subject);
            if (edge !== expected) expect.fail(`the edge is ${edge}, not ${expected}`);
          }
        }
      }),
      { numRuns },
    );
  });
});

test('a change of a domain tuple does what its row does', () => {
  fc.assert(
    fc.property(changesArb, (changes) => {
      const [byRow, byTuple] = [new TupleIndex(), new TupleIndex()];
      for (const [isInsert, row] of changes) {
        const { namespace, objectId, relation, subjectNamespace, subjectId, subjectRelation } = row;
        const tuple = {
          namespace,
          objectId,
          relation,
          subject: subjectFromColumns(subjectNamespace, subjectId, subjectRelation),
          expiresAtUs: row.expiresAtUs ?? undefined,
          conditionName: row.conditionName ?? undefined,
          conditionParams: row.conditionParams ?? undefined,
        };
        const changed = isInsert ? byRow.insert(row) : byRow.remove(row);
        if (byTuple.applyChange(isInsert ? 'insert' : 'delete', tuple) !== changed) {
          expect.fail(`${identity(row)} should change: ${changed}`);
        }
      }
      expect(describeIndex(byTuple)).toEqual(describeIndex(byRow));
      expect(byTuple.tupleCount).toBe(byRow.tupleCount);
    }),
    { numRuns: Math.ceil(numRuns / 4) },
  );
});
