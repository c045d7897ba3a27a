import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { CaseFolder } from './support/vitest-run.ts';

const REPORTER = resolve('scripts/summary-reporter.ts');
const setupFiles = [resolve('test/support/cpu-meter.ts')];
const folder = new CaseFolder({ reporters: [REPORTER], setupFiles });
/** A folder whose files may take 0.25 s of CPU, or a share of the run. */
const boundedFolder = (shareMax: number): CaseFolder =>
  new CaseFolder({
    reporters: [[REPORTER, { cpuBound: { secondsMax: 0.25, shareMax } }]],
    setupFiles,
  });
const strict = boundedFolder(0);
const generous = boundedFolder(2);
afterAll(() => {
  folder.remove();
  strict.remove();
  generous.remove();
});

const lastLine = (output: string): string => output.trimEnd().split('\n').at(-1) ?? '';

test('a skip needs a reason on the list, but not in a file that cannot run; the slowest 20 of many files are told, slowest first', () => {
  for (let i = 0; i < 20; i++) folder.write(`skip-not-${i}.case.js`, "test('a', () => {});");
  const slow = "test('a', () => new Promise((done) => setTimeout(done, 1500)));";
  folder.write('skip-not-slow.case.js', slow);
  const name = 'promtool (Debian package prometheus)';
  folder.write('skip.case.js', "test('runs', () => {});\ntest.skip('lies idle', () => {});");
  folder.write('skip-listed.case.js', `test('runs', () => {});\ntest.skip('${name}', () => {});`);
  folder.write(
    'skip-broken.case.js',
    "beforeAll(() => { throw new Error('x'); });\ntest('a', () => {});",
  );
  const { status, output } = folder.run('skip');
  expect(output).toContain('skip.case.js > lies idle\n    NOT ALLOWED');
  const isHere = spawnSync('promtool', ['--version']).error === undefined;
  const told = isHere ? 'NOT ALLOWED' : 'promtool is not here';
  expect(output).toContain(`skip-listed.case.js > ${name}\n    ${told}`);
  expect(output).toContain(`${isHere ? 2 : 1} skipped tests are not on test/allowed-skips.json`);
  expect(output).not.toContain('skip-broken.case.js > a\n');
  // A file that cannot run is one failure.
  expect(lastLine(output)).toBe('23 passed, 1 failed, 3 skipped');
  expect(status).toBe(1);
  const lines = output.slice(output.indexOf('Slowest files')).trim().split('\n');
  expect(lines[1]).toMatch(/^ +[1-9]\d*\.\d s +\d+\.\d s of CPU {2}skip-not-slow\.case\.js$/);
  expect(lines.filter((line) => line.endsWith('.case.js'))).toHaveLength(20);
});

test('a skip that is not on the list is enough to fail the run', () => {
  folder.write('only.case.js', "test('runs', () => {});\ntest.skip('lies idle', () => {});");
  const { status, output } = folder.run('only');
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

/** Takes 0.35 s of CPU. */
const BUSY =
  'const { user } = process.cpuUsage(); while (process.cpuUsage().user - user < 3.5e5) for (let i = 0; i < 1e6; i++);';

test('a file that takes too much CPU, its children too, fails the run, with advice', () => {
  strict.write('busy.case.js', `test('a', () => { ${BUSY} });`);
  strict.write(
    'busy-child.case.js',
    `import { spawnSync } from 'node:child_process';
test('a', () => { spawnSync(process.execPath, ['-e', ${JSON.stringify(BUSY)}]); });`,
  );
  strict.write(
    'busy-not.case.js',
    "test('a', () => new Promise((done) => setTimeout(done, 1500)));",
  );
  const { status, output } = strict.run('busy');
  expect(output).toContain('More than 0.25 s of CPU twice: split these files');
  expect(output).toMatch(/^ +(?:0\.[3-9]|1\.\d) s {2}busy\.case\.js$/m);
  expect(output).toMatch(/^ +(?:0\.[3-9]|1\.\d) s {2}busy-child\.case\.js$/m);
  expect(output).not.toMatch(/ s {2}busy-not\.case\.js$/m);
  expect(lastLine(output)).toBe('3 passed, 0 failed');
  expect(status).toBe(1);
});

test('a file may take its share of a run that takes more CPU', () => {
  generous.write('busy.case.js', `test('a', () => { ${BUSY} });`);
  const { status, output } = generous.run('busy');
  expect(output).not.toContain('s of CPU twice');
  expect(lastLine(output)).toBe('1 passed, 0 failed');
  expect(status).toBe(0);
});

test('a file that takes too much CPU once, and not when it runs alone, fails no run', () => {
  strict.write(
    'once.case.js',
    `import { existsSync, writeFileSync } from 'node:fs';
const ran = import.meta.dirname + '/once.ran';
test('a', () => { if (!existsSync(ran)) { writeFileSync(ran, ''); ${BUSY} } });`,
  );
  const { status, output } = strict.run('once');
  expect(output).not.toContain('s of CPU twice');
  expect(lastLine(output)).toBe('1 passed, 0 failed');
  expect(status).toBe(0);
});
