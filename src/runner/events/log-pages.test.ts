import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findLine, linesAt } from './log-pages.ts';

async function* chunksOf(lines: readonly string[], bytes: number): AsyncGenerator<Uint8Array> {
  const all = Buffer.from(lines.map((line) => `${line}\n`).join(''));
  for (let at = 0; at < all.length; at += bytes) {
    await Promise.resolve();
    yield all.subarray(at, at + bytes);
  }
}

const LINES = fc.array(fc.stringMatching(/^[abÄ ]{0,4}$/), { maxLength: 40 });
const SIZE = fc.integer({ min: 1, max: 30 });

test('a page is the lines with those numbers, wherever the pieces end', async () => {
  const at = fc.integer({ min: 1, max: 45 });
  await fc.assert(
    fc.asyncProperty(LINES, SIZE, at, at, async (lines, bytes, first, count) => {
      expect(await linesAt(chunksOf(lines, bytes), first, count)).toEqual({
        first,
        lines: lines.slice(first - 1, first - 1 + count),
        total: lines.length,
      });
    }),
  );
});

test('a page of long lines has fewer, and all are counted', async () => {
  const lines = Array.from({ length: 8 }, (_, index) => String(index).repeat(1024 * 1024));
  const page = await linesAt(chunksOf(lines, 100_000), 2, 8);
  expect([page.total, page.lines.map(([first]) => first)]).toEqual([8, ['1', '2', '3', '4']]);
});

test('the next line with a text is found around the ends, in both directions', async () => {
  await fc.assert(
    fc.asyncProperty(
      LINES,
      SIZE,
      fc.nat(41),
      fc.boolean(),
      async (lines, bytes, from, isBackward) => {
        const has = (number: number): boolean => /[äÄ]/.test(lines[number - 1] ?? '');
        const numbers = lines.map((_, index) => index + 1).filter(has);
        const expected = isBackward
          ? (numbers.findLast((number) => number < from) ?? numbers.at(-1))
          : (numbers.find((number) => number > from) ?? numbers[0]);
        expect(await findLine(chunksOf(lines, bytes), { text: 'ä', from, isBackward })).toBe(
          expected,
        );
      },
    ),
  );
});
