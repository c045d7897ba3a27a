import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

/**
 * Runs `.ci/run` over an npm that prints what `npm` (a shell script that is given the name of a script) says, where a
 * browser seems to be.
 */
function run(npm: string): { readonly status: number | null; readonly lines: readonly string[] } {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-ci-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  mkdirSync(join(dir, 'bin'));
  cpSync('.ci', join(dir, '.ci'), { recursive: true });
  const programs = { npm: `for script; do :; done\n${npm}\necho after all`, chromium: '' };
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(dir, 'bin', name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(dir, 'bin', name), 0o755);
  }
  const env = { PATH: `${join(dir, 'bin')}${delimiter}${process.env['PATH']}` };
  const { status, stdout } = spawnSync(join(dir, '.ci/run'), { env, encoding: 'utf8' });
  return { status, lines: stdout.trimEnd().split('\n') };
}

const GOOD = 'if [ $script = test ]; then echo 5 passed, 0 failed, 2 skipped; fi';

test('the last line is that of the tests', () => {
  const { status, lines } = run(GOOD);
  expect(lines.at(-1)).toBe('5 passed, 0 failed, 2 skipped');
  expect(status).toBe(0);
});

test('it is found among bytes that are no text', () => {
  const { status, lines } = run(`${GOOD}\nprintf '\\000\\377\\n'`);
  expect(lines.at(-1)).toBe('5 passed, 0 failed, 2 skipped');
  expect(status).toBe(0);
});

test.each(['check', 'test'])('a script that fails fails the run: %s', (script) => {
  const { status, lines } = run(`${GOOD}\nif [ $script = ${script} ]; then exit 1; fi`);
  expect(lines.at(-1)).toBe('5 passed, 0 failed, 2 skipped');
  expect(status).not.toBe(0);
});

test.each(['echo nothing', 'echo 0 passed, 0 failed'])(
  'a run that tests nothing, or does not say what, has failed: %s',
  (npm) => {
    const { status, lines } = run(`if [ $script != check ]; then ${npm}; fi`);
    expect(lines.at(-1)).toBe('0 passed, 0 failed');
    expect(status).not.toBe(0);
  },
);
