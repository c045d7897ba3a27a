import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-reporter-'));
  const settings = {
    globals: true,
    include: ['*.case.js'],
    reporters: [reporter],
    pool: 'threads',
    isolate: false,
  };
  write('vitest.config.mjs', `export default { test: ${JSON.stringify(settings)} };`);
});
afterAll(() => rmSync(directory, { recursive: true }));

const reporter = resolve('scripts/summary-reporter.ts');

function write(name: string, text: string): void {
  writeFileSync(join(directory, name), text);
}

/** Exit code and output of a run of the files whose names begin with `name`. */
function run(name: string, ...args: readonly string[]): { status: number | null; output: string } {
  const program = resolve('node_modules/vitest/vitest.mjs');
  const all = [program, 'run', '--root', directory, name, ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, all, {
    encoding: 'utf8',
    // Not those of the run that this is a part of.
    env: { PATH: process.env['PATH'], NO_COLOR: '1' },
  });
  return { status, output: stdout + stderr };
}

const lastLine = (output: string): string => output.trimEnd().split('\n').at(-1) ?? '';

test('a skip that is not on the list fails the run, and is named', () => {
  write('skip.case.js', "test('runs', () => {});\ntest.skip('lies idle', () => {});");
  const { status, output } = run('skip');
  expect(output).toContain('skip.case.js > lies idle\n    NOT ALLOWED');
  expect(lastLine(output)).toBe('1 passed, 0 failed, 1 skipped');
  expect(status).toBe(1);
});

test('tests that were not asked for by name are no skips', () => {
  write('named.case.js', "test('runs', () => {});\ntest('lies idle', () => {});");
  const { status, output } = run('named', '-t', 'runs');
  expect(output).not.toContain('NOT ALLOWED');
  expect(lastLine(output)).toBe('1 passed, 0 failed, 1 skipped');
  expect(status).toBe(0);
});

test('a skip that is on the list is told with its reason', () => {
  const name = 'promtool (Debian package prometheus)';
  write('listed.case.js', `test('runs', () => {});\ntest.skip('${name}', () => {});`);
  const { status, output } = run('listed');
  const isHere = spawnSync('promtool', ['--version']).error === undefined;
  expect(output).toContain(isHere ? 'NOT ALLOWED' : 'promtool is not here');
  expect(status).toBe(isHere ? 1 : 0);
});

test('a file that cannot run is one failure, and what it skips needs no reason', () => {
  write('broken.case.js', "beforeAll(() => { throw new Error('x'); });\ntest('a', () => {});");
  const { status, output } = run('broken');
  expect(lastLine(output)).toBe('0 passed, 1 failed, 1 skipped');
  expect(output).not.toContain('NOT ALLOWED');
  expect(status).toBe(1);
});

test('the slowest 20 files of many, slowest first', () => {
  for (let i = 0; i < 22; i++) write(`many-${i}.case.js`, "test('a', () => {});");
  const slow = "test('a', () => new Promise((done) => setTimeout(done, 1500)));";
  write('many-slow.case.js', slow);
  const { output } = run('many');
  const lines = output.slice(output.indexOf('Slowest files')).trim().split('\n');
  expect(lines[1]).toMatch(/^ +[1-9]\d*\.\d s {2}many-slow\.case\.js$/);
  expect(lines.filter((line) => line.endsWith('.case.js'))).toHaveLength(20);
});
