import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AppError } from '../shared/app-error.ts';
import { checkIndex, listOf } from './check-index.ts';
import { Dictionary } from './dictionary.ts';
import { ListStore } from './list-store.ts';
import { PageAllocator } from './page-allocator.ts';
import { SEGMENT_HEADER, SEGMENT_SLOTS, SegmentedHash, homeSlot } from './segmented-hash.ts';
import { hashScratch, loadBytes, loadText, scratchWords } from './text-scratch.ts';
import { TupleIndex } from './tuple-index.ts';
import type { TupleRow } from './tuple-row.ts';

const numRuns = 100 * Number(process.env['FUZZ_RUNS'] ?? 1);
const allocatorOf = (): PageAllocator => new PageAllocator(Number.MAX_SAFE_INTEGER);

function valuesOf(table: SegmentedHash, hash: number): number[] {
  const segment = table.segmentOf(hash);
  const slots = segment[SEGMENT_SLOTS] as number;
  const values: number[] = [];
  for (let slot = homeSlot(hash, slots); ; slot = (slot + 1) % slots) {
    const value = segment[SEGMENT_HEADER + slot * 2 + 1] as number;
    if (value === 0) return values.toSorted((a, b) => a - b);
    if (((segment[SEGMENT_HEADER + slot * 2] as number) | 0) === hash) values.push(value);
  }
}

test('a segmented hash holds what was added and not removed, also under one hash', () => {
  const hashArb = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.integer());
  const stepArb = fc.tuple(fc.boolean(), hashArb, fc.integer({ min: 1, max: 40 }));
  fc.assert(
    fc.property(fc.array(stepArb, { maxLength: 500, size: 'max' }), (steps) => {
      const table = new SegmentedHash(allocatorOf());
      const model = new Map<string, [number, number]>();
      for (const [add, hash, value] of steps) {
        const key = `${hash} ${value}`;
        if (add && !model.has(key)) {
          table.add(hash, value);
          model.set(key, [hash, value]);
        } else if (!add && model.delete(key)) table.remove(hash, value);
      }
      expect(table.entries).toBe(model.size);
      for (const [hash] of model.values()) {
        const expected = [...model.values()]
          .filter(([each]) => each === hash)
          .map(([, value]) => value);
        expect(valuesOf(table, hash)).toEqual(expected.toSorted((a, b) => a - b));
      }
    }),
    { numRuns },
  );
});

test('a segmented hash splits, stays dense and shrinks', () => {
  const allocator = allocatorOf();
  const table = new SegmentedHash(allocator);
  const count = 200_000;
  const hashOf = (i: number): number => Math.imul(i, 0x9e3779b1) | 0;
  for (let i = 1; i <= count; i++) table.add(hashOf(i), i);
  expect(table.depth).toBeGreaterThan(3);
  expect(table.bytes).toBe(allocator.bytes);
  expect(table.bytes / count).toBeLessThan(8 / 0.55);
  for (let i = 1; i <= count; i++) if (!table.has(hashOf(i), i)) throw new Error(`lost ${i}`);
  for (let i = 1; i <= count; i++) table.remove(hashOf(i), i);
  expect(table.entries).toBe(0);
  expect(table.bytes).toBeLessThan(64 * 2 ** table.depth * 3);
});

test('a segmented hash takes many entries of one hash, beyond what splitting can part', () => {
  const table = new SegmentedHash(allocatorOf());
  const count = 7000;
  for (let i = 1; i <= count; i++) table.add(0x1234_5678, i);
  for (let i = 1; i <= count; i++) table.add(0x1234_5679, i);
  expect(valuesOf(table, 0x1234_5678)).toHaveLength(count);
  for (let i = 1; i <= count; i++) table.remove(0x1234_5678, i);
  expect(valuesOf(table, 0x1234_5679)).toHaveLength(count);
}, 30_000);

test('lists behave as arrays across blocks, chunks and back, and their pages come back', () => {
  const stepArb = fc.tuple(fc.nat(5), fc.constantFrom('push', 'pop', 'destroy'), fc.nat(6000));
  fc.assert(
    fc.property(fc.array(stepArb, { maxLength: 60, size: 'max' }), (steps) => {
      const allocator = allocatorOf();
      const store = new ListStore(allocator);
      const lists = new Map<number, { list: number; model: number[] }>();
      let next = 1;
      for (const [which, op, times] of steps) {
        const entry = lists.get(which) ?? { list: store.create(), model: [] };
        lists.set(which, entry);
        if (op === 'destroy') {
          store.destroy(entry.list);
          lists.delete(which);
        }
        for (let i = 0; i < times && op !== 'destroy'; i++) {
          if (op === 'push') {
            entry.list = store.push(entry.list, next);
            entry.model.push(next++);
          } else if (entry.model.length > 0) {
            entry.list = store.pop(entry.list);
            entry.model.pop();
          }
        }
      }
      for (const { list, model } of lists.values()) {
        expect(store.count(list)).toBe(model.length);
        const out = new Uint32Array(model.length + 1);
        expect(store.copy(list, 0, out, 1, model.length)).toBe(model.length);
        expect(
          Buffer.compare(Buffer.from(out.buffer, 4), Buffer.from(Uint32Array.from(model).buffer)),
        ).toBe(0);
        store.destroy(list);
      }
      expect(allocator.bytes).toBeLessThanOrEqual(2 * (2 ** 18 + 2 ** 14));
      expect(allocator.bytes).toBe(store.bytes);
    }),
    { numRuns: Math.ceil(numRuns / 4) },
  );
}, 60_000);

test('strings hash alike from text and from bytes, and ill-formed ones never match', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 80, size: 'max' }),
      fc.nat(3),
      (text, offset) => {
        const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(text)]);
        const length = loadText(text);
        const words = scratchWords.slice(0, (length + 3) >>> 2);
        const hash = hashScratch(length, 7);
        expect(loadBytes(bytes, offset, bytes.length)).toBe(length);
        expect(scratchWords.slice(0, words.length)).toEqual(words);
        expect(hashScratch(length, 7)).toBe(hash);
      },
    ),
    { numRuns },
  );
  expect(loadText('\ud800')).toBe(-1);
  expect(loadText('a'.repeat(65_535))).toBe(65_535);
  expect(loadText('a'.repeat(65_536))).toBe(-1);
  expect(loadText('é'.repeat(32_768))).toBe(-1);
  expect(loadText(`${'é'.repeat(32_767)}a`)).toBe(65_535);
});

test('the dictionary reuses what was freed, also for strings of other lengths', () => {
  const lengthArb = fc.oneof(
    fc.integer({ min: 0, max: 40 }),
    fc.integer({ min: 400, max: 3000 }),
    fc.constantFrom(65_535, 40_000),
  );
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.boolean(), fc.nat(30), lengthArb), { maxLength: 120, size: 'max' }),
      (steps) => {
        const dictionary = new Dictionary(allocatorOf());
        const model = new Map<string, number>();
        for (const [add, seed, length] of steps) {
          const text =
            String.fromCharCode(97 + (seed % 26)).repeat(length) + (length < 65_535 ? 'z' : '');
          const bytes = loadText(text);
          const hash = hashScratch(bytes, 5);
          const known = model.get(text);
          expect(dictionary.find(5, bytes, hash)).toBe(known ?? 0);
          if (add && known === undefined) model.set(text, dictionary.add(5, bytes, hash));
          else if (!add && known !== undefined) {
            dictionary.remove(known);
            model.delete(text);
          }
        }
        const walked: number[] = [];
        for (let at = dictionary.next(0); at !== 0; at = dictionary.next(dictionary.after(at)))
          walked.push(at);
        expect(walked).toEqual([...model.values()].toSorted((a, b) => a - b));
        for (const [text, address] of model) expect(dictionary.text(address) === text).toBe(true);
      },
    ),
    { numRuns },
  );
});

test('ids are ordered by their UTF-8 bytes', () => {
  const texts = [
    '',
    'a',
    'a\u0000',
    'aa',
    'aab',
    'aaba',
    'b',
    'é',
    '日本',
    '\u{ffff}',
    '\u{1f600}',
    '\u{e000}',
    'abcd',
    'abcde',
    'abce',
  ];
  const dictionary = new Dictionary(allocatorOf());
  const addressOf = new Map<string, number>();
  for (const text of texts) {
    const length = loadText(text);
    addressOf.set(text, dictionary.add(1, length, hashScratch(length, 1)));
  }
  for (const a of texts) {
    for (const b of texts) {
      const sign = Math.sign(
        dictionary.compare(addressOf.get(a) as number, addressOf.get(b) as number),
      );
      expect(sign).toBe(Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b))));
    }
  }
});

const user = (objectId: string, subjectId: string, relation = 'member'): TupleRow => ({
  namespace: 'group',
  objectId,
  relation,
  subjectNamespace: '',
  subjectId,
  subjectRelation: '',
});

test('a group of 100,000 users, and a user in 100,000 groups, come and go', () => {
  const index = new TupleIndex();
  const base = index.bytes;
  const count = 100_000;
  for (let i = 0; i < count; i++) {
    index.insert(user('all', `u${i}`));
    index.insert(user(`g${i}`, 'root'));
  }
  const node = index.nodeId(index.entityId(index.nameId('group'), 'all'), index.nameId('member'));
  const root = index.nodeId(index.entityId(0, 'root'), 0);
  expect([index.userCount(node), index.reverseCount(root)]).toEqual([count, count]);
  expect(new Set(listOf(index, node, 'users')).size).toBe(count);
  for (let i = 0; i < count; i += 97) {
    expect(index.edge(node, index.nodeId(index.entityId(0, `u${i}`), 0))).toBe(1);
  }
  expect(index.edge(node, root)).toBe(0);
  for (let i = 0; i < count; i++) {
    const at = (i * 7919) % count;
    expect(index.remove(user('all', `u${at}`)) && index.remove(user(`g${at}`, 'root'))).toBe(true);
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
  for (let i = 0; i < 5000; i++) expect(index.remove(user('o', 'a', `r${i}`))).toBe(true);
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
  for (let i = 0; i < 200_000; i++) index.insert(user(`g${i % 5000}`, `u${i % 40_009}`));
  gc();
  const perTuple = (process.memoryUsage().heapUsed - before) / index.tupleCount;
  expect(perTuple).toBeLessThan(8);
});
