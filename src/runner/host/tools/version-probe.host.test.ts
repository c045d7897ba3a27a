import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { VersionProbe } from './version-probe.ts';

test('a program that did not answer is asked again, one that did is not', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'version-probe-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const program = join(dir, 'tool');
  const lines = ['#!/bin/sh', `echo asked >> ${dir}/asked`, `cat ${dir}/version`];
  writeFileSync(program, `${lines.join('\n')}\n`, { mode: 0o755 });
  const probe = new VersionProbe({ PATH: '/usr/bin:/bin' });
  const ask = async (): Promise<string | undefined> =>
    (await probe.ask(program, [], (output) => output.trim())).version;
  expect(await ask()).toBeUndefined();
  writeFileSync(join(dir, 'version'), '1.2.3\n');
  expect(await ask()).toBe('1.2.3');
  writeFileSync(join(dir, 'version'), '1.2.4\n');
  expect(await ask()).toBe('1.2.3');
});

test.each([
  ['echo "no such flag" >&2; echo usage >&2; exit 2', 'exit code 2: no such flag; usage'],
  ['exit 5', 'exit code 5, and it did not say why'],
  ['kill -ILL $$', 'it was ended by SIGILL'],
  ['echo Tool of the year', "it says 'Tool of the year', which is no such version"],
  ['', 'it says nothing'],
])('why a program does not work: %s', async (script, problem) => {
  const dir = mkdtempSync(join(tmpdir(), 'version-probe-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const program = join(dir, 'tool');
  writeFileSync(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const probe = new VersionProbe({ PATH: '/usr/bin:/bin' });
  const answer = await probe.ask(program, [], (output) => output);
  expect(answer).toEqual({ version: undefined, problem });
});
