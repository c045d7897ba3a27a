import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryDir, writeFiles } from '../../../../test/support/job-harness.ts';
import { ProgramFinder } from '../state/program-finder.ts';
import { resolveShell, splitArguments } from './shells.ts';

/** A folder with programs of these names, and some that are none. */
function programs(...names: string[]): string {
  const dir = temporaryDir();
  for (const name of names) {
    writeFiles(dir, { [name]: '#!/bin/sh\n' });
    chmodSync(join(dir, name), 0o700);
  }
  writeFiles(dir, { 'not-executable': '', 'bash-folder/x': '' });
  return dir;
}

describe('the arguments of the documentation', () => {
  test.each([
    [undefined, 'bash', ['-e', '{0}'], '.sh'],
    ['', 'bash', ['-e', '{0}'], '.sh'],
    ['bash', 'bash', ['--noprofile', '--norc', '-e', '-o', 'pipefail', '{0}'], '.sh'],
    ['sh', 'sh', ['-e', '{0}'], '.sh'],
    ['pwsh', 'pwsh', ['-command', `. '{0}'`], '.ps1'],
    ['python', 'python', ['{0}'], '.py'],
    ['node', 'node', ['{0}'], '.js'],
    ['bash -x "{0}" "a b"', 'bash', ['-x', '{0}', 'a b'], '.sh'],
    ['perl -w {0}', 'perl', ['-w', '{0}'], ''],
  ])('%s', (shell, file, args, extension) => {
    const dir = programs('bash', 'sh', 'pwsh', 'python', 'node', 'perl');
    expect(resolveShell(shell, dir, new ProgramFinder())).toMatchObject({
      file: join(dir, file),
      args,
      extension,
    });
  });
});

test('without bash it is sh, without python python3, without node the own one', () => {
  const dir = programs('sh', 'python3');
  const finder = new ProgramFinder();
  expect(resolveShell(undefined, dir, finder)).toMatchObject({
    file: join(dir, 'sh'),
    args: ['-e', '{0}'],
  });
  expect(resolveShell('python', dir, finder).file).toBe(join(dir, 'python3'));
  expect(resolveShell('node', dir, finder).file).toBe(process.execPath);
});

test.each([
  ['perl', 'INVALID_VALUE'],
  ['cmd', 'INVALID_VALUE'],
  ['missing {0}', 'NOT_FOUND'],
  ['not-executable {0}', 'NOT_FOUND'],
  ['bash-folder {0}', 'NOT_FOUND'],
  ['./relative {0}', 'NOT_FOUND'],
])('%s is refused', (shell, reason) => {
  const dir = programs('bash', 'perl');
  expect(() => resolveShell(shell, dir, new ProgramFinder())).toThrow(
    expect.objectContaining({ reason }),
  );
});

test('a program that appears later is found', () => {
  const dir = programs('sh');
  const finder = new ProgramFinder();
  expect(finder.find('late', dir)).toBeUndefined();
  writeFiles(dir, { late: '' });
  chmodSync(join(dir, 'late'), 0o700);
  expect(finder.find('late', `/does/not/exist:${dir}`)).toBe(join(dir, 'late'));
  expect(finder.find('late', dir)).toBe(join(dir, 'late'));
});

test('PowerShell stops at errors and keeps exit codes', () => {
  const { contents } = resolveShell('pwsh', programs('pwsh'), new ProgramFinder());
  expect(contents('x').split('\n')[0]).toBe(`$ErrorActionPreference = 'stop'`);
  expect(contents('x')).toContain('exit $LASTEXITCODE');
});

test('words', () => {
  expect(splitArguments(' a  "b c"d "" e ')).toEqual(['a', 'b cd', '', 'e']);
});
