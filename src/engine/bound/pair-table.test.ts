import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hashPair, PairTable } from './pair-table.ts';

const number = fc.oneof(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 0, max: 2 ** 32 - 1 }));

test('is a map from pairs to the order in which they came', () => {
  const steps = fc.array(fc.tuple(fc.boolean(), number, number), { maxLength: 400, size: 'max' });
  fc.assert(
    fc.property(steps, fc.integer({ min: 0, max: 40 }), (operations, capacity) => {
      const table = new PairTable(capacity);
      const known = new Map<string, number>();
      for (const [isInsert, first, second] of operations) {
        const key = `${first}:${second}`;
        expect(table.indexOf(first, second)).toBe(known.get(key) ?? -1);
        if (!isInsert) continue;
        const index = known.get(key) ?? known.size;
        known.set(key, index);
        expect(table.insert(first, second)).toBe(index);
        expect([table.firstOf(index), table.secondOf(index)]).toEqual([first, second]);
        expect(table.size).toBe(known.size);
      }
      for (const [key, index] of known) {
        const [first = 0, second = 0] = key.split(':').map(Number);
        expect(table.indexOf(first, second)).toBe(index);
      }
    }),
  );
});

test.each([0, 1, 15, 16, 17, 500])('grows from room for %i, and keeps what it has', (capacity) => {
  const table = new PairTable(capacity);
  for (let i = 0; i < 1000; i++) expect(table.insert(i & 7, i)).toBe(i);
  table.reserve(5000);
  for (let i = 0; i < 1000; i++) {
    expect(table.indexOf(i & 7, i)).toBe(i);
    expect(table.indexOf((i & 7) + 1, i)).toBe(-1);
    expect(table.insert(i & 7, i)).toBe(i);
  }
  expect(table.size).toBe(1000);
});

test('reserves room more than once', () => {
  const table = new PairTable();
  for (let round = 0; round < 6; round++) {
    table.reserve(40);
    for (let i = 0; i < 40; i++) expect(table.insert(round, i)).toBe(round * 40 + i);
  }
  for (let i = 0; i < 240; i++) expect(table.indexOf(Math.floor(i / 40), i % 40)).toBe(i);
});

test('forgets all pairs when it is cleared, and keeps its room', () => {
  const table = new PairTable();
  for (let i = 0; i < 100; i++) table.insert(i, 1);
  const { capacity: room } = table;
  table.clear();
  expect([table.size, table.capacity]).toEqual([0, room]);
  for (let i = 0; i < 100; i++) expect(table.indexOf(i, 1)).toBe(-1);
  for (let i = 99; i >= 0; i--) expect(table.insert(i, 1)).toBe(99 - i);
});

test('a hash has 32 bits, depends on both numbers and on their order, and spreads', () => {
  const slots = new Set<number>();
  for (let first = 0; first < 32; first++) {
    for (let second = 0; second < 32; second++) {
      const hash = hashPair(first, second);
      expect(Number.isInteger(hash) && hash >= 0 && hash < 2 ** 32).toBe(true);
      slots.add(hash & 4095);
    }
  }
  // As many as of random ones: 4096 * (1 - 1/e^(1/4)).
  expect(slots.size).toBeGreaterThan(800);
  expect(hashPair(1, 2)).not.toBe(hashPair(2, 1));
});
