import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type AcceptedList, judge, lineOf, type Mutant } from './judge.ts';
import { testsOf } from './tests-of.ts';

const FILE = 'src/x.ts';
const SOURCE = ['function f(a: number) {', '  if (a > 1) {', '    return 1;', '  }', '}'].join(
  '\n',
);

const mutant = (status: string, replacement = 'true', fileName = FILE): Mutant => ({
  fileName,
  status,
  replacement,
  location: { start: { line: 2, column: 7 }, end: { line: 2, column: 12 } },
});
const text = 'a > 1 → true ⟨if (a > 1) {⟩';

test('counts what was found, and names what was not', () => {
  const result = judge(FILE, SOURCE, [
    mutant('Killed'),
    mutant('Timeout'),
    mutant('Survived'),
    mutant('NoCoverage', 'false'),
    mutant('Ignored'),
    mutant('Survived', 'true', 'src/other.ts'),
  ]);
  expect(result).toEqual({
    total: 4,
    killed: 2,
    accepted: 0,
    survived: [
      { line: 2, text },
      { line: 2, text: text.replace('true', 'false') },
    ],
    untried: 0,
    stale: [],
  });
});

test('takes off what the list accepts, and tells what it accepts in vain', () => {
  const groups = [{ reason: 'because', mutants: [text, 'a → b ⟨c⟩'] }];
  expect(judge(FILE, SOURCE, [mutant('Survived'), mutant('Killed')], groups)).toEqual({
    total: 2,
    killed: 1,
    accepted: 1,
    survived: [],
    untried: 0,
    stale: ['a → b ⟨c⟩'],
  });
});

test('a mutant of several lines reads as one', () => {
  const block: Mutant = {
    ...mutant('Survived', '{}'),
    location: { start: { line: 2, column: 14 }, end: { line: 4, column: 4 } },
  };
  expect(judge(FILE, SOURCE, [block]).survived).toEqual([
    { line: 2, text: '{ return 1; } → {} ⟨if (a > 1) {⟩' },
  ]);
});

test('the list of accepted mutants gives reasons, and speaks of lines that there are', () => {
  const list = JSON.parse(readFileSync('test/mutation/accepted.json', 'utf8')) as AcceptedList;
  const unknown: string[] = [];
  for (const [file, groups] of Object.entries(list)) {
    expect([file, existsSync(file)]).toEqual([file, true]);
    expect(testsOf(file).length).toBeGreaterThan(0);
    const lines = new Set(readFileSync(file, 'utf8').split('\n').map(lineOf));
    for (const { reason, mutants } of groups) {
      expect(reason).toMatch(/^.{12,}\.$/);
      for (const one of mutants) {
        const line = /⟨(.*)⟩$/.exec(one)?.[1];
        if (line === undefined || !lines.has(line)) unknown.push(`${file}: ${one}`);
      }
    }
  }
  expect(unknown).toEqual([]);
});
