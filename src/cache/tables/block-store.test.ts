import fc from 'fast-check';
import { expect, test } from 'vitest';
import { byLength } from '../../../test/support/test-length.ts';
import { BlockStore, CHUNK_BYTES, PAGE_BYTES } from './block-store.ts';

const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);

/** Bytes by which a block is recognized. */
const contentOf = (size: number, mark: number): Uint8Array =>
  Uint8Array.from({ length: size }, (_, i) => (i * 31 + mark * 7 + (i >>> 8)) & 0xff);

function contentsOf(store: BlockStore, handle: number): Uint8Array {
  const out = new Uint8Array(store.sizeOf(handle));
  expect(store.read(handle, out)).toBe(out.length);
  return out;
}

test(`blocks hold what was put into them, however others come and go (SEED=${seed})`, () => {
  const step = fc.record({
    isAdded: fc.boolean(),
    // Many at once, so that pages fill and are cleared.
    count: fc.integer({ min: 1, max: 120 }),
    size: fc.oneof(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 0, max: 9_000 })),
    which: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const store = new BlockStore();
      const held = new Map<number, Uint8Array>();
      let mark = 0;
      for (const { isAdded, count, size, which } of steps) {
        for (let i = 0; i < count; i++) {
          if (isAdded) {
            const content = contentOf((size + i * 13) % 9_000, mark++);
            const handle = store.add(content);
            expect(handle !== 0 && !held.has(handle)).toBe(true);
            held.set(handle, content);
          } else if (held.size > 0) {
            const handle = [...held.keys()][(which + i * 7) % held.size] as number;
            store.remove(handle);
            held.delete(handle);
          }
        }
        const used = [...held.values()].map(({ length }) => BlockStore.bytesFor(length));
        const usedBytes = used.reduce((sum, bytes) => sum + bytes, 0);
        expect(store.usedBytes).toBe(usedBytes);
        // At most a quarter is free, or two pages, and what the handles take.
        const handles = 8 * 2 ** 14;
        expect(store.bytes).toBeLessThanOrEqual(usedBytes * (4 / 3) + 4 * PAGE_BYTES + handles);
      }
      for (const [handle, content] of held) expect(contentsOf(store, handle)).toEqual(content);
    }),
    { seed, numRuns: byLength(12, 40) * FUZZ_RUNS },
  );
});

test('memory goes back once few blocks are left, wherever they lie', () => {
  const store = new BlockStore();
  const handles = Array.from({ length: 20_000 }, (_, i) => store.add(contentOf(300, i)));
  const full = store.bytes;
  expect(full).toBeGreaterThan(20_000 * 3 * CHUNK_BYTES);
  // Every hundredth stays: some on each page.
  handles.forEach((handle, i) => {
    if (i % 100 !== 0) store.remove(handle);
  });
  expect(store.bytes).toBeLessThan(full / 10);
  for (let i = 0; i < handles.length; i += 100) {
    expect(contentsOf(store, handles[i] as number)).toEqual(contentOf(300, i));
  }
});

test('an empty block is one all the same', () => {
  const store = new BlockStore();
  const handle = store.add(new Uint8Array(0));
  expect([store.sizeOf(handle), contentsOf(store, handle).length]).toEqual([0, 0]);
  expect(store.usedBytes).toBe(BlockStore.bytesFor(0));
  store.remove(handle);
  expect(store.usedBytes).toBe(0);
});
