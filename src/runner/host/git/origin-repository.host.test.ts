import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { originRepository } from './origin-repository.ts';
import { createGit } from './run-git.ts';

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-origin-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test.each([
  ['https://github.com/some-owner/a.name.git', 'some-owner/a.name'],
  ['https://user:token@host.example/owner/name', 'owner/name'],
  ['git@github.com:owner/name.git', 'owner/name'],
  ['ssh://git@host.example:2222/owner/name.git/', 'owner/name'],
  ['/srv/git/owner/name.git', undefined],
  ['file:///srv/git/owner/name.git', undefined],
  ['../owner/name', undefined],
  ['https://host.example/name', undefined],
])('%s: %s', async (url, expected) => {
  const folder = makeFolder();
  execFileSync('git', ['init', '-q'], { cwd: folder });
  execFileSync('git', ['remote', 'add', 'origin', url], { cwd: folder });
  expect(await originRepository(createGit(folder))).toBe(expected);
});

test('no remote, no repository, no folder', async () => {
  const folder = makeFolder();
  expect(await originRepository(createGit(folder))).toBeUndefined();
  execFileSync('git', ['init', '-q'], { cwd: folder });
  expect(await originRepository(createGit(folder))).toBeUndefined();
  expect(await originRepository(createGit(join(folder, 'nowhere')))).toBeUndefined();
});
