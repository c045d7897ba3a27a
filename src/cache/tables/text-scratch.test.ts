import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyCharacter } from '../../../test/support/any-text.ts';
import {
  hashBytes,
  hashPair,
  hashScratch,
  loadBytes,
  loadText,
  mustFit,
  scratchWords,
  TEXT_BYTES_MAX,
} from './text-scratch.ts';

const numRuns = 100 * Number(process.env['FUZZ_RUNS'] ?? 1);

/** The words that represent a text, by the definition: its UTF-8 bytes, zeros behind the end. */
function wordsOf(text: string): number[] {
  const bytes = Buffer.from(text);
  const padded = Buffer.alloc((bytes.length + 3) & ~3);
  bytes.copy(padded);
  return Array.from({ length: padded.length / 4 }, (_, i) => padded.readUInt32LE(i * 4));
}

const loaded = (length: number): number[] =>
  Array.from(scratchWords.subarray(0, (length + 3) >>> 2));

test('a text and its bytes are packed alike, and hash alike, whatever was packed before', () => {
  const text = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 80, size: 'max' }),
    fc.string({ unit: 'binary-ascii', maxLength: 13, size: 'max' }),
    fc.stringMatching(/^[ab\u007f\u0080é]{0,9}$/),
  );
  fc.assert(
    fc.property(text, fc.nat(3), fc.nat(5), fc.nat(9), (one, before, behind, owner) => {
      const size = Buffer.byteLength(one);
      const bytes = Buffer.concat([
        Buffer.alloc(before, 0xfe),
        Buffer.from(one),
        Buffer.alloc(behind, 0xff),
      ]);
      for (const dirty of [0, 0xffff_ffff]) {
        scratchWords.fill(dirty, 0, 200);
        expect(loadText(one)).toBe(size);
        expect(loaded(size)).toEqual(wordsOf(one));
        const hash = hashScratch(size, owner);
        scratchWords.fill(dirty, 0, 200);
        expect(loadBytes(bytes, before, before + size)).toBe(size);
        expect(loaded(size)).toEqual(wordsOf(one));
        expect(hashScratch(size, owner)).toBe(hash);
        expect(hashBytes(bytes, before, before + size, owner)).toBe(hash);
      }
    }),
    { numRuns: numRuns * 2 },
  );
});

test('hashes tell pairs of ids apart', () => {
  const hashes = new Set<number>();
  for (let a = 0; a < 60; a++) for (let b = 0; b < 60; b++) hashes.add(hashPair(a, b));
  expect(hashes.size).toBeGreaterThan(3_600 - 5);
});

test('hashes tell texts, lengths and owners apart', () => {
  const hashes = new Set<number>();
  const texts = Array.from({ length: 2_000 }, (_, i) => `id${i}`);
  for (let i = 1; i <= 40; i++) texts.push('a'.repeat(i), 'é'.repeat(i));
  for (const text of texts) {
    for (const owner of [0, 1, 2]) hashes.add(hashScratch(loadText(text), owner));
  }
  // A few may meet by chance: of 6,240 among 2^32 hardly one pair does.
  expect(hashes.size).toBeGreaterThan(texts.length * 3 - 5);
});

describe('what is too long, or no text, is never equal to anything', () => {
  test.each([
    ['\u007f', 3, 3],
    ['\u0080', 1, 2],
    ['a', 65_535, 65_535],
    ['a', 65_536, -1],
    ['é', 32_767, 65_534],
    ['é', 32_768, -1],
    ['日', 21_845, 65_535],
    ['日', 21_846, -1],
    ['日', 21_847, -1],
    ['日', 40_000, -1],
    ['😀', 16_383, 65_532],
    ['😀', 16_384, -1],
  ])('%j, %d times', (unit, times, length) => {
    expect(loadText(unit.repeat(times))).toBe(length);
    const bytes = Buffer.from(unit.repeat(times));
    expect(loadBytes(bytes, 0, bytes.length)).toBe(length);
    if (length < 0) {
      expect(() => mustFit(length)).toThrow(
        expect.objectContaining({ reason: 'FIELD_INVALID', metadata: { field: 'tuple' } }),
      );
      expect(hashBytes(bytes, 0, bytes.length, 1)).toBe(0);
    } else {
      expect(mustFit(length)).toBe(length);
      expect(loaded(length)).toEqual(wordsOf(unit.repeat(times)));
      expect(hashBytes(bytes, 0, bytes.length, 1)).toBe(hashScratch(length, 1));
    }
  });

  test('one byte more', () => {
    expect(loadText(`${'é'.repeat(32_767)}a`)).toBe(TEXT_BYTES_MAX);
    expect(loadText(`${'é'.repeat(32_767)}ab`)).toBe(-1);
    expect(mustFit(loadText(''))).toBe(0);
  });

  test.each(['\ud800', 'a\udc00', 'abcd\ud800é'])('half a character: %j', (text) => {
    expect(loadText(text)).toBe(-1);
  });
});
