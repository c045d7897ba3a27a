import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkIndex } from '../../test/support/index-structure/check-index.ts';
import { GROUP_ROWS } from './row-read-ahead.ts';
import { TupleIndex } from './tuple-index.ts';
import { ROW_BOUNDS, type RowBytes, type TupleRow } from './tuple-row.ts';

const numRuns = 100 * Number(process.env['FUZZ_RUNS'] ?? 1);

function rowBytes(rows: readonly TupleRow[]): RowBytes {
  const bounds = new Int32Array(rows.length * ROW_BOUNDS).fill(-1);
  let text = '';
  rows.forEach((row, i) => {
    const { namespace, objectId, relation, subjectNamespace, subjectId, subjectRelation } = row;
    const plain = [namespace, objectId, relation, subjectNamespace, subjectId, subjectRelation];
    const columns = [...plain, null, row.conditionName ?? null, row.conditionParams ?? null];
    columns.forEach((column, c) => {
      if (column === null) return;
      bounds[i * ROW_BOUNDS + 2 * c] = text.length;
      text += column;
      bounds[i * ROW_BOUNDS + 2 * c + 1] = text.length;
    });
  });
  return { bytes: Buffer.from(text, 'latin1'), bounds, rows: rows.length, expiryFormat: 'binary' };
}

/** The state of a row in the index: whether it is stored, and what it carries. */
function answer(index: TupleIndex, row: TupleRow): unknown {
  const entity = index.entityId(index.nameId(row.namespace), row.objectId);
  const node = index.nodeId(entity, index.nameId(row.relation));
  const subject = index.subjectNodeOf(row);
  if (node === 0 || subject === 0) return 'absent';
  const edge = index.edge(node, subject);
  return edge === 2 ? index.qualifier(node, subject) : edge;
}

/** Both ways give the same index: by rows one after the other, and by groups of them. */
function expectSame(rows: readonly TupleRow[], perCall: number): void {
  const [single, grouped] = [new TupleIndex(), new TupleIndex()];
  for (const row of rows) single.insert(row);
  for (let at = 0; at < rows.length; at += perCall) {
    grouped.insertRows(rowBytes(rows.slice(at, at + perCall)));
  }
  checkIndex(grouped);
  expect(grouped.tupleCount).toBe(single.tupleCount);
  expect(grouped.nodeCount).toBe(single.nodeCount);
  expect(grouped.parts.dictionary.count).toBe(single.parts.dictionary.count);
  for (const row of rows) expect(answer(grouped, row)).toEqual(answer(single, row));
}

const nameArb = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const rowArb: fc.Arbitrary<TupleRow> = fc
  .tuple(nameArb, nameArb, nameArb, fc.constantFrom('', '*', '*typed', 'a', 'f'), nameArb, nameArb)
  .chain(([namespace, objectId, relation, kind, subjectId, subjectRelation]) =>
    fc.option(nameArb, { freq: 2 }).map((conditionName) => ({
      namespace,
      objectId,
      relation,
      subjectNamespace: kind === '*typed' ? '*' : kind,
      subjectId: kind === '*' ? '' : subjectId,
      subjectRelation: kind === '' || kind.startsWith('*') ? '' : subjectRelation,
      ...(conditionName === null ? {} : { conditionName, conditionParams: '{}' }),
    })),
  );

test('rows that replace each other within a call do what they do one by one', () => {
  fc.assert(
    fc.property(
      fc.array(rowArb, { maxLength: 3 * GROUP_ROWS, size: 'max' }),
      fc.integer({ min: 1, max: 2 * GROUP_ROWS + 1 }),
      expectSame,
    ),
    { numRuns },
  );
});

test('a name that a row lets go is found anew by the rows behind it', () => {
  const plain = (objectId: string, relation: string): TupleRow => ({
    namespace: 'doc',
    objectId,
    relation,
    subjectNamespace: '',
    subjectId: 'u',
    subjectRelation: '',
  });
  // The condition goes with the second row, while its name is the relation of the last.
  const rows = [
    { ...plain('x', 'viewer'), conditionName: 'both', conditionParams: '{}' },
    plain('x', 'viewer'),
    plain('y', 'both'),
    plain('z', 'other'),
  ];
  expectSame(rows, rows.length);
});

test('a large index is the same read ahead: long lists, many relations of one object, the wildcard', () => {
  const rows: TupleRow[] = [];
  const add = (objectId: string, relation: string, subject: readonly [string, string, string]) => {
    const [subjectNamespace, subjectId, subjectRelation] = subject;
    rows.push({
      namespace: 'doc',
      objectId,
      relation,
      subjectNamespace,
      subjectId,
      subjectRelation,
    });
  };
  for (let i = 0; i < 9_000; i++) {
    add(`d${i}`, 'viewer', ['', `u${(i * 7) % 501}`, '']);
    add(`d${i}`, 'parent', ['folder', `f${i % 3}`, '']);
    if (i % 50 === 0) add(`d${i}`, 'viewer', ['*', '', '']);
    if (i % 40 === 0) add(`d${i}`, 'viewer', ['*', `t${i % 3}`, '']);
    if (i % 9 === 0) add('hub', `r${i % 999}`, ['doc', `d${(i * 31) % 9_000}`, 'viewer']);
  }
  expectSame(rows, 64);
});
