import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { mutateInProcess } from './in-process/mutate-in-process.ts';

const SOURCE = `const FIRST = 1 + 1;
export function count(to: number): number {
  let sum = 0;
  for (let i = FIRST; i < to; i++) sum += i;
  return sum;
}
export function unused(a: boolean): boolean {
  return !a;
}
export function untold(a: number): number {
  if (a > 5) return a;
  return a;
}
`;
const TESTS = `import { expect, test } from 'vitest';
import { count, untold } from './code.ts';
test('counts', () => expect(count(4)).toBe(5));
test.each([1, 9])('is told nothing by %i', (a) => void untold(a));
`;

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mutate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** A module and its tests, as files: how each fault ended, by line and replacement. */
async function tried(
  tests = TESTS,
  lines = '',
  folder = newFolder(),
  untilMs = Number.POSITIVE_INFINITY,
): Promise<Map<string, string>> {
  const file = join(folder, 'code.ts');
  writeFileSync(file, SOURCE);
  writeFileSync(join(folder, 'code.test.ts'), tests);
  const run = { file, lines, source: SOURCE, untilMs };
  const memory = join(folder, 'found.json');
  const mutants = await mutateInProcess(run, [join(folder, '*.test.ts')], 2, memory);
  return new Map(
    mutants.map(({ location, replacement, status }) => [
      `${location.start.line}: ${replacement}`,
      status,
    ]),
  );
}

test('faults are found by tests that reach them, also while loading and in endless loops', async () => {
  const statuses = await tried();
  expect(statuses.get('1: 1 - 1')).toBe('Killed');
  expect(statuses.get('4: i <= to')).toBe('Killed');
  expect(statuses.get('4: sum -= i')).toBe('Killed');
  expect(statuses.get('4: i--')).toMatch(/Killed|Timeout/);
  expect(statuses.get('8: a')).toBe('NoCoverage');
  expect(statuses.get('11: a >= 5')).toBe('Survived');
});

test('only some lines', async () => {
  const statuses = await tried(TESTS, '10-12');
  expect([...new Set([...statuses.keys()].map((key) => key.split(':')[0]))]).toEqual(['11']);
});

test('without time nothing is tried, and what an earlier run tried is known', async () => {
  const folder = newFolder();
  expect(new Set((await tried(TESTS, '', folder, 0)).values())).toEqual(new Set(['Pending']));
  await tried(TESTS, '4-4', folder);
  const statuses = await tried(TESTS, '', folder, 0);
  expect(statuses.get('4: sum -= i')).toBe('Killed');
  expect(statuses.get('11: a >= 5')).toBe('Pending');
  await tried(TESTS, '11-11', folder);
  expect((await tried(TESTS, '', folder, 0)).get('11: a >= 5')).toBe('Survived');
  const late = "import { test } from 'vitest'; test('comes later', () => {});";
  writeFileSync(join(folder, 'late.test.ts'), late);
  expect((await tried(TESTS, '', folder, 0)).get('11: a >= 5')).toBe('Pending');
  rmSync(join(folder, 'late.test.ts'));
  await tried(TESTS, '11-11', folder);
  expect((await tried(TESTS, '', folder, 0)).get('11: a >= 5')).toBe('Survived');
  const others = TESTS.replace('each([1, 9])', 'each([1])');
  expect((await tried(others, '', folder, 0)).get('11: a >= 5')).toBe('Pending');
});

test('hooks of one file are not run for the tests of another', async () => {
  const folder = newFolder();
  const hook = `import { beforeEach, expect, test } from 'vitest';
test('is told something', () => {});
beforeEach(() => expect(globalThis.isOfThisFile).toBe(undefined));
`;
  writeFileSync(join(folder, 'a.test.ts'), hook);
  const second = `globalThis.isOfThisFile = true;\n${TESTS}`;
  expect((await tried(second, '4-4', folder)).get('4: sum -= i')).toBe('Killed');
});

test('tests that fail as it is tell nothing', async () => {
  await expect(tried(TESTS.replace('toBe(5)', 'toBe(6)'))).rejects.toThrow(/tests fail as it is/);
});
