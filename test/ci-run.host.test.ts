import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

/** Runs `.ci/run` over an npm that prints what `npm` (a shell script that is given the name of a script) says. */
function run(npm: string): { readonly status: number | null; readonly lines: readonly string[] } {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-ci-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  mkdirSync(join(dir, 'bin'));
  cpSync('.ci', join(dir, '.ci'), { recursive: true });
  const program = join(dir, 'bin/npm');
  writeFileSync(program, `#!/bin/sh\nfor script; do :; done\n${npm}\necho after all\n`);
  chmodSync(program, 0o755);
  const env = { PATH: `${join(dir, 'bin')}${delimiter}${process.env['PATH']}` };
  const { status, stdout } = spawnSync(join(dir, '.ci/run'), { env, encoding: 'utf8' });
  return { status, lines: stdout.trimEnd().split('\n') };
}

const GOOD =
  'case $script in test) echo 5 passed, 0 failed, 2 skipped;; test:long) echo 40 passed, 0 failed, 1 skipped;; esac';

test('the last line sums the short tests and the long ones', () => {
  const { status, lines } = run(GOOD);
  expect(lines.at(-1)).toBe('45 passed, 0 failed, 3 skipped');
  expect(status).toBe(0);
});

test('without skips it names none', () => {
  const { status, lines } = run('echo 3 passed, 0 failed');
  expect(lines.at(-1)).toBe('6 passed, 0 failed');
  expect(status).toBe(0);
});

test.each([
  ['check', '45 passed, 0 failed, 3 skipped'],
  ['test', '45 passed, 0 failed, 3 skipped'],
  ['test:long', '45 passed, 0 failed, 3 skipped'],
])('a script that fails fails the run, and the rest is run all the same: %s', (script, last) => {
  const { status, lines } = run(`${GOOD}\nif [ $script = ${script} ]; then exit 1; fi`);
  expect(lines.at(-1)).toBe(last);
  expect(status).not.toBe(0);
});

test.each([
  ['echo nothing', '0 passed, 0 failed'],
  ['[ $script = test ] && echo 5 passed, 0 failed', '5 passed, 0 failed'],
  [
    '[ $script = test ] && echo 5 passed, 0 failed || echo 0 passed, 0 failed',
    '5 passed, 0 failed',
  ],
])('a run that tests nothing, or does not say what, has failed: %s', (npm, last) => {
  const { status, lines } = run(`if [ $script != check ]; then ${npm}; fi`);
  expect(lines.at(-1)).toBe(last);
  expect(status).not.toBe(0);
});
