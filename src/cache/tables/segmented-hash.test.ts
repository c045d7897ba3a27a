import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PageAllocator } from './page-allocator.ts';
import { homeSlot, SEGMENT_HEADER, SEGMENT_SLOTS, SegmentedHash } from './segmented-hash.ts';

const numRuns = 100 * Number(process.env['FUZZ_RUNS'] ?? 1);
const allocatorOf = (): PageAllocator => new PageAllocator(2 ** 27);

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
          table.insert(hash, value);
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

/** Every pair of a table, with what its segments promise: each is where its hash leads, and is reached from its home. */
function pairsOf(table: SegmentedHash): string[] {
  const pairs: string[] = [];
  for (const segment of new Set(table.directory)) {
    const slots = segment[SEGMENT_SLOTS] as number;
    expect(segment).toHaveLength(SEGMENT_HEADER + slots * 2);
    let entries = 0;
    for (let slot = 0; slot < slots; slot++) {
      const value = segment[SEGMENT_HEADER + slot * 2 + 1] as number;
      const hash = (segment[SEGMENT_HEADER + slot * 2] as number) | 0;
      if (value === 0 && hash === 0) continue;
      if (value === 0) throw new Error('a hash without a value');
      entries += 1;
      if (table.segmentOf(hash) !== segment) throw new Error('an entry of another segment');
      for (let at = homeSlot(hash, slots); at !== slot; at = (at + 1) % slots) {
        if (segment[SEGMENT_HEADER + at * 2 + 1] === 0) throw new Error('a gap before an entry');
      }
      pairs.push(`${hash} ${value}`);
    }
    // A search ends at a free slot, and a segment that became sparse is smaller.
    expect(entries * 4).toBeLessThanOrEqual(slots * 3);
    if (slots > 8192) expect(entries * 8).toBeGreaterThan(slots);
  }
  expect(table.directory).toHaveLength(2 ** table.depth);
  return pairs.toSorted();
}

test('a segmented hash holds its pairs while it grows by steps, splits, and shrinks', () => {
  const allocator = allocatorOf();
  const table = new SegmentedHash(allocator);
  const hashOf = (i: number): number => Math.imul(i, 0x9e37_79b1) | 0;
  // Half of them have one high bit in common, a quarter two, so that segments differ in depth.
  const of = (i: number): number => (i % 4 === 0 ? hashOf(i) : hashOf(i) | 0x8000_0000);
  const sizes = new Set<number>();
  const stored = new Set<number>();
  const verify = (): void => {
    expect(pairsOf(table)).toEqual([...stored].map((i) => `${of(i)} ${i}`).toSorted());
    expect(table.entries).toBe(stored.size);
    expect(table.bytes).toBe(allocator.bytes);
  };
  for (let i = 1; i <= 16_000; i++) {
    table.insert(of(i), i);
    stored.add(i);
    for (const segment of table.directory) sizes.add(segment[SEGMENT_SLOTS] as number);
    if (i < 20 || i % 2_000 === 0) verify();
  }
  expect([...sizes].toSorted((a, b) => a - b)).toEqual([
    16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 5120, 6144, 7168, 8192,
  ]);
  expect(new Set(table.directory).size).toBeGreaterThan(2);
  for (const i of [1, 7, 8_000, 16_000]) {
    expect([table.has(of(i), i), table.has(of(i), i + 1), table.has(of(i) ^ 1, i)]).toEqual([
      true,
      false,
      false,
    ]);
    expect(table.first(of(i))).toBe(i);
    expect(table.first(of(i) ^ 1)).toBe(0);
    table.replace(of(i), i, 99_999);
    expect([table.has(of(i), i), table.first(of(i))]).toEqual([false, 99_999]);
    table.replace(of(i), 99_999, i);
  }
  for (let i = 1; i <= 16_000; i++) {
    const each = (i * 7919) % 16_001 || 16_000;
    if (!stored.delete(each)) continue;
    table.remove(of(each), each);
    if (i % 2_000 === 0) verify();
  }
  for (const each of stored) {
    stored.delete(each);
    table.remove(of(each), each);
  }
  verify();
  // Of each segment a first one is left.
  expect(table.bytes).toBe(new Set(table.directory).size * (SEGMENT_HEADER + 32) * 4);
});

test('a segmented hash takes what splitting cannot part into larger segments, up to a limit', () => {
  const allocator = allocatorOf();
  const table = new SegmentedHash(allocator);
  const hashOf = (i: number): number => 0x9234_0000 | (Math.imul(i, 40_503) & 0xffff);
  const most = (65_536 * 3) / 4;
  table.insert(286_331_153, 5);
  for (let i = 0; i < most; i++) table.insert(hashOf(i), i + 1);
  expect(() => table.insert(hashOf(most), 1)).toThrow(
    expect.objectContaining({ reason: 'SHARD_TOO_LARGE' }),
  );
  expect(table.depth).toBe(16);
  expect(table.entries).toBe(most + 1);
  expect(table.bytes).toBe(allocator.bytes);
  for (let i = 0; i < most; i++) if (table.first(hashOf(i)) !== i + 1) throw new Error(`lost ${i}`);
  expect(table.first(hashOf(most))).toBe(0);
  for (let i = 0; i < most; i++) table.remove(hashOf(i), i + 1);
  expect(pairsOf(table)).toEqual([`286331153 5`]);
});

test('a pair that is not stored is neither removed nor replaced', () => {
  const table = new SegmentedHash(allocatorOf());
  table.insert(7, 1);
  expect(() => table.remove(7, 2)).toThrow('stored');
  expect(() => table.remove(8, 1)).toThrow('stored');
  expect(() => table.replace(8, 1, 2)).toThrow('stored');
  expect([table.entries, table.first(7)]).toEqual([1, 1]);
});
