import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseDotenv } from './dotenv-parser.ts';

/** Text to `name=value` pairs; what npm's dotenv 18 makes of the same text. */
const VALUES: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['KEY=value', { KEY: 'value' }],
  ['key=value', { KEY: 'value' }],
  ['export KEY=value', { KEY: 'value' }],
  ['  KEY  =  value  ', { KEY: 'value' }],
  ['# a comment\n\nKEY=value', { KEY: 'value' }],
  ['KEY=value # a comment', { KEY: 'value' }],
  ['KEY=a#b', { KEY: 'a' }],
  ['KEY=', { KEY: '' }],
  ['KEY=""', { KEY: '' }],
  ['KEY=a=b==', { KEY: 'a=b==' }],
  ["KEY='single # quoted'", { KEY: 'single # quoted' }],
  ["KEY='not\\nexpanded'", { KEY: String.raw`not\nexpanded` }],
  ['KEY="double # quoted" # a comment', { KEY: 'double # quoted' }],
  [String.raw`KEY="a\nb\rc\td"`, { KEY: 'a\nb\rc\\td' }],
  ['KEY=`back "and" \'forth\'`', { KEY: 'back "and" \'forth\'' }],
  ['KEY="two\nlines"\nB=1', { KEY: 'two\nlines', B: '1' }],
  ["KEY='three\n\nlines'\nB=1", { KEY: 'three\n\nlines', B: '1' }],
  [String.raw`KEY="say \"hi\""`, { KEY: String.raw`say \"hi\"` }],
  [`${String.raw`KEY='C:\dir\'`}\nB='x'`, { KEY: 'C:\\dir\\', B: 'x' }],
  ['\uFEFFKEY=value', { KEY: 'value' }],
  ['KEY=value\r\nB=2\r\n', { KEY: 'value', B: '2' }],
  ['KEY="a\r\nb"', { KEY: 'a\nb' }],
  ['KEY=it\'s "so"', { KEY: 'it\'s "so"' }],
  ['KEY=first\nKEY=last', { KEY: 'last' }],
];

const SKIPPED: readonly (readonly [string, number, RegExp])[] = [
  ['A=1\njust text', 2, /no =/],
  ['KEY: value', 1, /no =/],
  ['A=1\n\n1BAD=x', 3, /begins with a letter/],
  ['O-P=x', 1, /begins with a letter/],
  ['Q.R=x', 1, /begins with a letter/],
  ['=x', 1, /begins with a letter/],
  ['A=1\nKEY="open\nB=2', 2, /not closed/],
  ["KEY='a'b", 1, /follows the closing quote/],
  ['GITHUB_TOKEN=x', 1, /GITHUB_ are reserved/],
  ['runner_x=x', 1, /RUNNER_ are reserved/],
  ['KEY=1\nA=2\nkey=3', 1, /given again on line 3/],
];

function valuesOf(text: string): Record<string, string> {
  return Object.fromEntries(parseDotenv(text).entries.map(({ name, value }) => [name, value]));
}

describe('the .env parser', () => {
  test.each(VALUES)('reads %j', (text, expected) => {
    expect(valuesOf(text)).toEqual(expected);
  });

  test.each(SKIPPED)('says what it leaves out of %j', (text, line, reason) => {
    const { skipped } = parseDotenv(text);
    expect(skipped).toHaveLength(1);
    expect(skipped[0]?.line).toBe(line);
    expect(skipped[0]?.reason).toMatch(reason);
  });

  test('goes on after a value that it leaves out', () => {
    const text = 'O-P="two\nlines"\nA=1\nB="open\nC=3';
    expect(valuesOf(text)).toEqual({ A: '1', C: '3' });
    expect(parseDotenv(text).skipped.map(({ line }) => line)).toEqual([1, 4]);
  });

  test('says on which line each entry begins', () => {
    const { entries } = parseDotenv('\n# x\nA="1\n2"\r\nB=3');
    expect(entries.map(({ name, line }) => [name, line])).toEqual([
      ['A', 3],
      ['B', 5],
    ]);
  });

  test('tells of each line: an entry, nothing to say, or why not', () => {
    const name = fc.stringMatching(/^[A-Z]{1,3}[0-9]?$/);
    const line = fc.oneof(
      fc.record({
        kind: fc.constant('entry' as const),
        name,
        value: fc.stringMatching(/^[a-z =]*$/),
      }),
      fc.record({ kind: fc.constant('silent' as const), text: fc.constantFrom('', '  ', '# A=1') }),
      fc.record({
        kind: fc.constant('wrong' as const),
        text: fc.constantFrom('1A=x', 'words', 'A-B=x', '=x', 'GITHUB_A=1', 'A="x', "B='x'y"),
      }),
    );
    fc.assert(
      fc.property(fc.array(line), fc.constantFrom('\n', '\r\n', '\r'), (lines, lineBreak) => {
        const texts = lines.map((part) =>
          part.kind === 'entry' ? `${part.name}=${part.value}` : part.text,
        );
        // An open quote would reach for one in a later line.
        fc.pre(lines.filter((part) => part.kind === 'wrong' && part.text.includes('x')).length < 2);
        const last = new Map<string, number>();
        const wrong: number[] = [];
        for (const [index, part] of lines.entries()) {
          if (part.kind === 'wrong') wrong.push(index + 1);
          if (part.kind !== 'entry') continue;
          const before = last.get(part.name);
          if (before !== undefined) wrong.push(before);
          last.set(part.name, index + 1);
        }
        const { entries, skipped } = parseDotenv(texts.join(lineBreak));
        expect(new Map(entries.map((entry) => [entry.name, entry.line]))).toEqual(last);
        expect(skipped.map((skip) => skip.line)).toEqual(wrong.sort((left, right) => left - right));
      }),
      { numRuns: 500 },
    );
  });

  test('takes any text, and never the same line twice', () => {
    const pieces = fc.constantFrom(
      'A',
      'b_1',
      '=',
      '"',
      "'",
      '`',
      '\\',
      '#',
      ' ',
      '\n',
      '\r\n',
      'ü',
    );
    const text = fc
      .array(fc.oneof(pieces, fc.string({ maxLength: 3 })))
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, (source) => {
        const { entries, skipped } = parseDotenv(source);
        const lines = [...entries, ...skipped].map(({ line }) => line);
        expect(new Set(lines).size).toBe(lines.length);
        const count = source.split(/\r\n?|\n/).length;
        for (const line of lines) expect(line).toBeLessThanOrEqual(count);
      }),
      { numRuns: 500 },
    );
  });

  test('reads back what is written with quotes', () => {
    const name = fc
      .stringMatching(/^[A-Z_][A-Z0-9_]{0,8}$/)
      .filter((text) => !/^(?:GITHUB|RUNNER|ACTIONS)_/.test(text));
    const value = fc.string({ unit: 'grapheme' }).filter((text) => !/['\r\uFEFF]/.test(text));
    fc.assert(
      fc.property(fc.dictionary(name, value, { maxKeys: 6 }), (values) => {
        const text = Object.entries(values).map(([key, plain]) => `${key}='${plain}'`);
        expect(valuesOf(text.join('\n'))).toEqual({ ...values });
        expect(parseDotenv(text.join('\n')).skipped).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  test('never quotes what stands in the text', () => {
    const secret = 'hunter2hunter2';
    for (const text of [
      secret,
      `${secret}-x=1`,
      `A='${secret}`,
      `A='b'${secret}`,
      `GITHUB_A=${secret}`,
    ]) {
      expect(JSON.stringify(parseDotenv(text).skipped)).not.toContain(secret);
    }
  });
});
