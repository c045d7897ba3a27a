import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LIST_COUNT_MASK, LIST_LONG, LIST_MARK, ListStore } from './list-store.ts';
import { PageAllocator } from './page-allocator.ts';

const numRuns = 100 * Number(process.env['FUZZ_RUNS'] ?? 1);
const allocatorOf = (): PageAllocator => new PageAllocator(2 ** 27);

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
            entry.list = store.append(entry.list, next);
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

const filled = (store: ListStore, count: number, first = 1): number => {
  let list = store.create();
  for (let i = 0; i < count; i++) list = store.append(list, first + i);
  return list;
};
const contents = (store: ListStore, list: number): number[] =>
  Array.from({ length: store.count(list) }, (_, i) => store.get(list, i));
const range = (count: number, first = 1): number[] =>
  Array.from({ length: count }, (_, i) => first + i);

test('every block size, entry by entry, up and down again', () => {
  const store = new ListStore(allocatorOf());
  const other = filled(store, 3, 900_001);
  let list = store.create();
  for (let count = 1; count <= 300; count++) {
    list = store.append(list, count);
    expect(contents(store, list)).toEqual(range(count));
    if (count % 10 === 0) store.set(list, count - 1, count);
    expect(() => store.get(list, count)).toThrow('within');
    expect(() => store.set(list, count, 1)).toThrow('within');
  }
  for (let count = 299; count >= 0; count--) {
    list = store.pop(list);
    expect(contents(store, list)).toEqual(range(count));
  }
  expect(contents(store, other)).toEqual(range(3, 900_001));
});

test.each([
  ['from a block to chunks', 4_094, 4_100],
  ['from one chunk to the next', 8_190, 8_195],
  ['to more chunk addresses than fit beside the header', 4 * 4_096 - 2, 4 * 4_096 + 2],
])('a list grows and shrinks %s', (_what, from, to) => {
  const store = new ListStore(allocatorOf());
  let list = filled(store, from);
  const verify = (count: number): void => {
    const out = new Uint32Array(count + 2);
    expect(store.copy(list, 0, out, 1, count + 1)).toBe(count);
    if (
      Buffer.compare(
        Buffer.from(out.buffer),
        Buffer.from(Uint32Array.from([0, ...range(count), 0]).buffer),
      )
    ) {
      throw new Error(`other contents at ${count}`);
    }
    expect([store.get(list, 0), store.get(list, count - 1)]).toEqual([1, count]);
    // Pieces that begin and end anywhere, over the border of chunks, too.
    for (const index of [0, 1, 4_094, 4_095, 4_096, 8_191, count - 1, count]) {
      if (index > count) continue;
      const piece = new Uint32Array(6);
      const copied = store.copy(list, index, piece, 1, 4);
      expect([...piece]).toEqual(
        [0, ...range(Math.min(4, count - index), index + 1), 0, 0, 0, 0, 0].slice(0, 6),
      );
      expect(copied).toBe(Math.min(4, count - index));
    }
    expect(store.copy(list, count + 1, new Uint32Array(1), 0, 1)).toBe(0);
  };
  store.setMark(list, true);
  for (let count = from; count <= to; count++) {
    verify(count);
    expect(store.header(list) & LIST_COUNT_MASK).toBe(count);
    expect(store.header(list) >>> 31).toBe(1);
    expect((store.header(list) & LIST_LONG) !== 0).toBe(count > 4_095);
    list = store.append(list, count + 1);
  }
  for (let count = to; count >= from; count--) {
    list = store.pop(list);
    verify(count);
  }
  store.setMark(list, false);
  expect((store.header(list) & LIST_MARK) >>> 31).toBe(0);
  verify(from);
  // A long list stays one until half a chunk is left.
  for (let count = from - 1; count >= 0; count--) {
    list = store.pop(list);
    if (count === 2_048) expect((store.header(list) & LIST_LONG) !== 0).toBe(true);
    if (count > 2_043 && count < 2_052) verify(count);
    if (count === 2_047) expect((store.header(list) & LIST_LONG) !== 0).toBe(false);
  }
  expect(contents(store, list)).toEqual([]);
});

test('what is freed comes together again: the first page holds large blocks after small ones', () => {
  const allocator = allocatorOf();
  const store = new ListStore(allocator);
  const fill = (count: number, each: number): number[] =>
    Array.from({ length: count }, (_, i) => filled(store, each, i * 10_000));
  const verify = (lists: readonly number[], each: number): void => {
    for (const [i, list] of lists.entries()) {
      expect(contents(store, list)).toEqual(range(each, i * 10_000));
    }
  };
  const first = fill(1_000, 3);
  verify(first, 3);
  const { bytes } = allocator;
  expect(bytes).toBe(store.bytes);
  for (const [i, list] of first.entries()) if (i % 2 === 0) store.destroy(list);
  for (const [i, list] of first.entries()) if (i % 2 === 1) store.destroy(list);
  const larger = fill(60, 60);
  verify(larger, 60);
  for (const list of larger.toReversed()) store.destroy(list);
  const largest = fill(3, 1_000);
  verify(largest, 1_000);
  expect(allocator.bytes).toBe(bytes);
  for (const list of largest) store.destroy(list);
  const again = fill(1_000, 3);
  verify(again, 3);
  expect(allocator.bytes).toBe(bytes);
});

test('pages that are wholly free go back, but for one', () => {
  const allocator = allocatorOf();
  const store = new ListStore(allocator);
  const empty = store.bytes;
  for (let round = 0; round < 3; round++) {
    const lists = Array.from({ length: 100 }, (_, i) => filled(store, 4_000, i));
    expect(store.pages.length).toBeGreaterThan(6);
    const { length } = store.pages;
    for (const [i, list] of lists.entries()) expect(store.get(list, 3_999)).toBe(i + 3_999);
    for (const list of round === 1 ? lists.toReversed() : lists) store.destroy(list);
    expect(store.bytes).toBe(allocator.bytes);
    expect(allocator.bytes).toBeGreaterThan(empty);
    expect(allocator.bytes).toBeLessThanOrEqual(2 * (2 ** 18 + 2 ** 14));
    // The numbers of pages that went are used again.
    if (round > 0) expect(store.pages.length).toBe(length);
  }
});

test('without room there is a typed error', () => {
  const store = new ListStore(new PageAllocator(300_000));
  expect(() => filled(store, 100_000)).toThrow(
    expect.objectContaining({ reason: 'SHARD_TOO_LARGE' }),
  );
});
