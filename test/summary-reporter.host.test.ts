import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { CaseFolder } from './support/vitest-run.ts';

const REPORTER = resolve('scripts/summary-reporter.ts');
const setupFiles = [resolve('test/support/cpu-meter.ts')];
const folder = new CaseFolder({ reporters: [REPORTER], setupFiles });
const strict = new CaseFolder({ reporters: [[REPORTER, { cpuSecondsMax: 0.5 }]], setupFiles });
afterAll(() => {
  folder.remove();
  strict.remove();
});

const lastLine = (output: string): string => output.trimEnd().split('\n').at(-1) ?? '';

test('a skip that is not on the list fails the run, and is named', () => {
  folder.write('skip.case.js', "test('runs', () => {});\ntest.skip('lies idle', () => {});");
  const { status, output } = folder.run('skip');
  expect(output).toContain('skip.case.js > lies idle\n    NOT ALLOWED');
  expect(lastLine(output)).toBe('1 passed, 0 failed, 1 skipped');
  expect(status).toBe(1);
});

test('tests that were not asked for by name are no skips', () => {
  folder.write('named.case.js', "test('runs', () => {});\ntest('lies idle', () => {});");
  const { status, output } = folder.run('named', '-t', 'runs');
  expect(output).not.toContain('NOT ALLOWED');
  expect(lastLine(output)).toBe('1 passed, 0 failed, 1 skipped');
  expect(status).toBe(0);
});

test('a skip that is on the list is told with its reason', () => {
  const name = 'promtool (Debian package prometheus)';
  folder.write('listed.case.js', `test('runs', () => {});\ntest.skip('${name}', () => {});`);
  const { status, output } = folder.run('listed');
  const isHere = spawnSync('promtool', ['--version']).error === undefined;
  expect(output).toContain(isHere ? 'NOT ALLOWED' : 'promtool is not here');
  expect(status).toBe(isHere ? 1 : 0);
});

test('a file that cannot run is one failure, and what it skips needs no reason', () => {
  folder.write(
    'broken.case.js',
    "beforeAll(() => { throw new Error('x'); });\ntest('a', () => {});",
  );
  const { status, output } = folder.run('broken');
  expect(lastLine(output)).toBe('0 passed, 1 failed, 1 skipped');
  expect(output).not.toContain('NOT ALLOWED');
  expect(status).toBe(1);
});

test('the slowest 20 files of many, slowest first', () => {
  for (let i = 0; i < 22; i++) folder.write(`many-${i}.case.js`, "test('a', () => {});");
  const slow = "test('a', () => new Promise((done) => setTimeout(done, 1500)));";
  folder.write('many-slow.case.js', slow);
  const { output } = folder.run('many');
  const lines = output.slice(output.indexOf('Slowest files')).trim().split('\n');
  expect(lines[1]).toMatch(/^ +[1-9]\d*\.\d s +\d+\.\d s of CPU {2}many-slow\.case\.js$/);
  expect(lines.filter((line) => line.endsWith('.case.js'))).toHaveLength(20);
});

/** Takes a second of CPU. */
const BUSY =
  'const { user } = process.cpuUsage(); while (process.cpuUsage().user - user < 1e6) for (let i = 0; i < 1e7; i++);';

test('a file that takes too much CPU fails the run, with advice', () => {
  strict.write('busy.case.js', `test('a', () => { ${BUSY} });`);
  strict.write(
    'busy-not.case.js',
    "test('a', () => new Promise((done) => setTimeout(done, 1500)));",
  );
  const { status, output } = strict.run('busy');
  expect(output).toContain('More than 0.5 s of CPU on the average of two runs: split these files');
  expect(output).toMatch(/^ +1\.\d s {2}busy\.case\.js$/m);
  expect(output).not.toMatch(/ s {2}busy-not\.case\.js$/m);
  expect(lastLine(output)).toBe('2 passed, 0 failed');
  expect(status).toBe(1);
});

test('CPU of a child counts as its file’s', () => {
  strict.write(
    'child.case.js',
    `import { spawnSync } from 'node:child_process';
test('a', () => { spawnSync(process.execPath, ['-e', ${JSON.stringify(BUSY)}]); });`,
  );
  const { status, output } = strict.run('child');
  expect(output).toMatch(/^ +1\.\d s {2}child\.case\.js$/m);
  expect(status).toBe(1);
});
