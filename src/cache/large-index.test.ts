import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { checkIndex, listOf } from '../../test/support/index-structure/check-index.ts';
import { byLength } from '../../test/support/test-length.ts';
import { AppError } from '../shared/app-error.ts';
import { PageAllocator } from './tables/page-allocator.ts';
import { SegmentedHash } from './tables/segmented-hash.ts';
import { TupleIndex } from './tuple-index.ts';
import type { TupleRow } from './tuple-row.ts';

const user = (objectId: string, subjectId: string, relation = 'member'): TupleRow => ({
  namespace: 'group',
  objectId,
  relation,
  subjectNamespace: '',
  subjectId,
  subjectRelation: '',
});

const COUNT = byLength(15_000, 100_000);

test(`a group of ${COUNT} users, and a user in ${COUNT} groups, come and go`, () => {
  const index = new TupleIndex();
  const base = index.bytes;
  const count = COUNT;
  for (let i = 0; i < count; i++) {
    index.insert(user('all', `u${i}`));
    index.insert(user(`g${i}`, 'root'));
  }
  const node = index.nodeId(index.entityId(index.nameId('group'), 'all'), index.nameId('member'));
  const root = index.nodeId(index.entityId(0, 'root'), 0);
  expect([index.userCount(node), index.reverseCount(root)]).toEqual([count, count]);
  expect(new Set(listOf(index, node, 'users')).size).toBe(count);
  for (let i = 0; i < count; i += 97) {
    if (index.edge(node, index.nodeId(index.entityId(0, `u${i}`), 0)) !== 1) expect.fail(`u${i}`);
  }
  expect(index.edge(node, root)).toBe(0);
  for (let i = 0; i < count; i++) {
    const at = (i * 7919) % count;
    if (!index.remove(user('all', `u${at}`)) || !index.remove(user(`g${at}`, 'root'))) {
      expect.fail(`lost ${at}`);
    }
    if (i === count - 300) checkIndex(index);
  }
  expect(index.tupleCount).toBe(0);
  expect(index.bytes).toBe(base);
}, 60_000);

test('an object with thousands of relations stays quick, and pinned names outlive the tuples', () => {
  const index = new TupleIndex();
  const pinned = index.pinName('pinned');
  for (let i = 0; i < 5000; i++) index.insert(user('o', 'a', `r${i}`));
  checkIndex(index);
  for (let i = 0; i < 5000; i++)
    if (!index.remove(user('o', 'a', `r${i}`))) expect.fail(`lost ${i}`);
  checkIndex(index);
  expect([index.nameId('pinned'), index.nameId('r7'), index.nameText(pinned)]).toEqual([
    pinned,
    -1,
    'pinned',
  ]);
  expect(index.insert(user('o', 'a', 'pinned'))).toBe(true);
  expect(index.relationOf(index.firstNodeOf(index.entityId(index.nameId('group'), 'o')))).toBe(
    pinned,
  );
});

test('the memory limit is a typed error', () => {
  const index = new TupleIndex({ bytesMax: 100_000 });
  const fill = (): void => {
    for (let i = 0; i < 100_000; i++) index.insert(user(`g${i}`, `u${i}`));
  };
  expect(fill).toThrow(AppError);
  expect(index.bytes).toBeLessThanOrEqual(100_000);
});

test('the JS heap does not grow with the tuples', () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const index = new TupleIndex();
  gc();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < byLength(80_000, 200_000); i++)
    index.insert(user(`g${i % 5000}`, `u${i % 40_009}`));
  gc();
  const perTuple = (process.memoryUsage().heapUsed - before) / index.tupleCount;
  expect(perTuple).toBeLessThan(8);
});

test('a segmented hash splits, stays dense and shrinks', () => {
  const allocator = new PageAllocator(Number.MAX_SAFE_INTEGER);
  const table = new SegmentedHash(allocator);
  const count = byLength(60_000, 200_000);
  const hashOf = (i: number): number => Math.imul(i, 0x9e3779b1) | 0;
  for (let i = 1; i <= count; i++) table.insert(hashOf(i), i);
  expect(table.depth).toBeGreaterThan(3);
  expect(table.bytes).toBe(allocator.bytes);
  expect(table.bytes / count).toBeLessThan(8 / 0.55);
  for (let i = 1; i <= count; i++) if (!table.has(hashOf(i), i)) throw new Error(`lost ${i}`);
  for (let i = 1; i <= count; i++) table.remove(hashOf(i), i);
  expect(table.entries).toBe(0);
  expect(table.bytes).toBeLessThan(64 * 2 ** table.depth * 3);
});

test('a segmented hash takes many entries of one hash, beyond what splitting can part', () => {
  const table = new SegmentedHash(new PageAllocator(Number.MAX_SAFE_INTEGER));
  const count = byLength(2500, 7000);
  for (let i = 1; i <= count; i++) table.insert(0x1234_5678, i);
  for (let i = 1; i <= count; i++) table.insert(0x1234_5679, i);
  expect(table.entries).toBe(2 * count);
  for (let i = 1; i <= count; i++) table.remove(0x1234_5678, i);
  for (let i = 1; i <= count; i += 7) expect(table.has(0x1234_5679, i)).toBe(true);
  expect([table.entries, table.first(0x1234_5678)]).toEqual([count, 0]);
}, 30_000);
