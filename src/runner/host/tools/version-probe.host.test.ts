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
  const ask = (): Promise<string | undefined> => probe.ask(program, [], (output) => output.trim());
  expect(await ask()).toBeUndefined();
  writeFileSync(join(dir, 'version'), '1.2.3\n');
  expect(await ask()).toBe('1.2.3');
  writeFileSync(join(dir, 'version'), '1.2.4\n');
  expect(await ask()).toBe('1.2.3');
});
