import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createLineSplitter } from './line-splitter.ts';
import { createMasker, type Masker } from './masker.ts';

const MARKER = ' [line split]';

function split(chunks: readonly Buffer[], lineBytesMax: number, masker?: Masker): string[] {
  const all: string[] = [];
  const splitter = createLineSplitter({
    lineBytesMax,
    masker,
    onLines(lines, block) {
      for (const line of lines) {
        expect(block).toContain(line);
      }
      all.push(...lines);
      return undefined;
    },
  });
  for (const chunk of chunks) {
    void splitter.push(chunk);
  }
  splitter.end();
  return all;
}

/** Cuts of bytes wherever `cuts` says. */
function chunksOf(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...places, bytes.length].map((end, index) => bytes.subarray(places[index - 1] ?? 0, end));
}

const cuts = fc.array(fc.nat(10_000), { maxLength: 12, size: 'max' });

describe('createLineSplitter', () => {
  test('gives the lines of the text, however its bytes arrive', () => {
    const line = fc
      .array(fc.constantFrom('a', 'b', 'é', '€', '😀', '\r', ' '), { maxLength: 12, size: 'max' })
      .map((characters) => characters.join(''));
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 12, size: 'max' }),
        fc.boolean(),
        cuts,
        (lines, isEnded, places) => {
          const text = lines.join('\n') + (isEnded ? '\n' : '');
          const expected = text.split('\n').map((item) => {
            const bare = item.replace(/\r+$/u, '');
            return bare.slice(bare.lastIndexOf('\r') + 1);
          });
          if (text === '' || text.endsWith('\n')) {
            expected.pop();
          }
          const given = split(chunksOf(Buffer.from(text), places), 65_536);
          // A rest of carriage returns alone may or may not count as a last line.
          const trimmed = (list: string[]): string[] =>
            list.at(-1) === '' && !isEnded ? list.slice(0, -1) : list;
          expect(trimmed(given)).toEqual(trimmed(expected));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('no secret survives, whatever is cut where', () => {
    const secret = fc
      .array(fc.constantFrom(...Array.from('abcdé€')), { minLength: 2, maxLength: 30, size: 'max' })
      .map((characters) => characters.join(''));
    const filler = fc
      .array(fc.constantFrom(...Array.from('abcdé€ xyz')), { maxLength: 60, size: 'max' })
      .map((c) => c.join(''));
    fc.assert(
      fc.property(
        fc.array(secret, { minLength: 1, maxLength: 4 }),
        fc.array(fc.tuple(filler, fc.nat()), { minLength: 1, maxLength: 12, size: 'max' }),
        cuts,
        fc.integer({ min: 12, max: 80 }),
        (secrets, parts, places, lineBytesMax) => {
          const masker = createMasker();
          for (const value of secrets) {
            masker.add(value);
          }
          const text = parts
            .map(([before, pick]) => before + (secrets[pick % secrets.length] ?? ''))
            .join('');
          const pieces = split(chunksOf(Buffer.from(`${text}\n`), places), lineBytesMax, masker);
          const seen = pieces
            .map((piece) =>
              masker.mask(piece.endsWith(MARKER) ? piece.slice(0, -MARKER.length) : piece),
            )
            .join('');
          const collapsed = (value: string): string => value.replaceAll(/(?:\*\*\*)+/gu, '***');
          expect(collapsed(seen)).toBe(collapsed(masker.mask(text)));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('splits long lines at characters, with a marker, and none is longer than allowed', () => {
    const text = '€😀'.repeat(100);
    const pieces = split([Buffer.from(`${text}\nshort\n`)], 64);
    expect(pieces.at(-1)).toBe('short');
    const long = pieces.slice(0, -1);
    expect(long.length).toBeGreaterThan(10);
    for (const piece of long.slice(0, -1)) {
      expect(piece.endsWith(MARKER)).toBe(true);
      expect(Buffer.byteLength(piece)).toBeLessThanOrEqual(64 + MARKER.length);
    }
    expect(long.map((piece) => piece.replace(MARKER, '')).join('')).toBe(text);
  });

  test('keeps little of a progress bar that never ends its line', () => {
    const chunks = Array.from({ length: 5_000 }, (_, index) =>
      Buffer.from(`\r${index} percent of it`),
    );
    expect(split(chunks, 1_024)).toEqual(['4999 percent of it']);
  });

  test('obeys commands that were written over', () => {
    const bytes = Buffer.from('10%\r::add-mask::abc\r50%\rabc\nx\r##[error]bad\ry\n\r::a::\r\n');
    const expected = ['::add-mask::abc', 'abc', '##[error]bad', 'y', '::a::'];
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      expect(split([bytes.subarray(0, cut), bytes.subarray(cut)], 65_536)).toEqual(expected);
    }
  });

  test('never cuts a command; one above 1 MiB is dropped whole', () => {
    const value = 'v'.repeat(5_000);
    const parts = [`::add-mask::${value}`, `##[set-output name=a]${value}`, 'end'];
    const chunks = chunksOf(Buffer.from(`${parts.join('\n')}\n`), [100, 3_000, 7_000]);
    expect(split(chunks, 64)).toEqual(parts);
    const huge = Array.from({ length: 40 }, () => Buffer.alloc(65_536, 'h'));
    const given = split([Buffer.from('::add-mask::'), ...huge, Buffer.from('\nend\n')], 65_536);
    expect(given).toEqual(['[a workflow command of more than 1 MiB was ignored]', 'end']);
  });

  test('hands on the promise that asks for a pause', () => {
    const pause = Promise.resolve();
    const splitter = createLineSplitter({ lineBytesMax: 100, onLines: () => pause });
    expect(splitter.push(Buffer.from('half'))).toBeUndefined();
    expect(splitter.push(Buffer.from(' line\n'))).toBe(pause);
  });
});
