import { expect, test } from 'vitest';
import { PageAllocator } from './page-allocator.ts';
import { PagedWords } from './paged-words.ts';

const tooLarge = (bytesMax: number): unknown =>
  expect.objectContaining({ reason: 'SHARD_TOO_LARGE', metadata: { bytesMax: String(bytesMax) } });

test('memory is handed out up to the limit, to the byte, and what is refused is not counted', () => {
  const allocator = new PageAllocator(100);
  const words = allocator.words(20);
  expect([...words]).toEqual(Array.from({ length: 20 }, () => 0));
  expect(allocator.bytes).toBe(80);
  expect(() => allocator.octets(21)).toThrow(tooLarge(100));
  expect(allocator.bytes).toBe(80);
  const octets = allocator.octets(20);
  expect(octets).toEqual(new Uint8Array(20));
  expect(allocator.bytes).toBe(100);
  expect(() => allocator.octets(1)).toThrow(tooLarge(100));
  allocator.release(words);
  expect(allocator.bytes).toBe(20);
  expect(() => allocator.words(21)).toThrow(tooLarge(100));
  expect(allocator.words(20)).toHaveLength(20);
});

test('the first page doubles with what it holds until it is full-sized; then there are more', () => {
  const allocator = new PageAllocator(1e6);
  const words = new PagedWords(allocator, 64, 16);
  const sizes: number[][] = [];
  for (let i = 0; i < 5; i++) {
    const first = words.pages[0] as Uint32Array;
    first[i] = i + 7;
    sizes.push(words.pages.map((page) => page.length));
    expect(words.capacity).toBe(words.pages.reduce((sum, page) => sum + page.length, 0));
    expect(words.bytes).toBe(words.capacity * 4);
    expect(allocator.bytes).toBe(words.bytes);
    words.grow();
  }
  expect(sizes).toEqual([[16], [32], [64], [64, 64], [64, 64, 64]]);
  expect(words.pages[0]?.subarray(0, 6)).toEqual(Uint32Array.of(7, 8, 9, 10, 11, 0));
});

test('a page that there is no room for leaves the others as they were', () => {
  const allocator = new PageAllocator(64 * 4);
  const words = new PagedWords(allocator, 64, 32);
  const [first] = words.pages;
  expect(() => words.grow()).toThrow(tooLarge(256));
  expect([words.pages.length, words.pages[0] === first]).toEqual([1, true]);
});
