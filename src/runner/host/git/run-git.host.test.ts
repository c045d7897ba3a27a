import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createGit, type Git, mustRef, originRepository } from './run-git.ts';

const AUTHOR = {
  GIT_AUTHOR_NAME: 'n',
  GIT_AUTHOR_EMAIL: 'n@example.com',
  GIT_COMMITTER_NAME: 'n',
  GIT_COMMITTER_EMAIL: 'n@example.com',
};

let dir = '';
let git: Git;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'git-'));
  git = createGit(dir);
  await git.run(['init', '-q', '-b', 'main']);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(dir, { recursive: true, force: true });
});

async function commit(message: string): Promise<void> {
  await git.run(['commit', '-q', '--allow-empty', '-m', message], { env: AUTHOR });
}

describe('running git', () => {
  test('answers with the output, or with the exit code', async () => {
    await commit('one');
    expect(await git.run(['log', '--format=%s'])).toBe('one\n');
    const missing = await git.tryRun(['rev-parse', '-q', '--verify', 'nope']);
    expect(missing).toEqual({ exitCode: 1, stdout: Buffer.alloc(0), stderr: '' });
  });

  test('a failure names the command and keeps what git said for the log', async () => {
    const failed = git.run(['log', '--end-of-options', 'nope']);
    await expect(failed).rejects.toMatchObject({
      reason: 'GIT_FAILED',
      message: 'git log ended with code 128',
      metadata: { command: 'log', exitCode: '128' },
      cause: { message: expect.stringContaining('nope') as string },
    });
  });

  test('a folder that is not there is told from a failure of git', async () => {
    await expect(git.in(join(dir, 'gone')).run(['status'])).rejects.toMatchObject({
      reason: 'GIT_FAILED',
      metadata: { command: 'status' },
    });
  });

  test('input arrives, also when git does not read it', async () => {
    const id = await git.run(['hash-object', '--stdin'], { input: 'hello\n' });
    expect(id.trim()).toBe('ce013625030ba8dba906f756967f9e9ca394464a');
    await git.run(['--version'], { input: Buffer.alloc(1 << 20) });
  });

  test('stops at its limits', async () => {
    await writeFile(join(dir, 'big'), 'x'.repeat(100_000));
    const big = git.run(['hash-object', '-w', 'big']);
    const id = (await big).trim();
    await expect(
      git.run(['cat-file', 'blob', id], { outputBytesMax: 1_000 }),
    ).rejects.toMatchObject({ reason: 'RESULT_TOO_LARGE' });
    // An alias that outlasts the patience below.
    const slow = { config: { 'alias.wait': '!sleep 10' } };
    await expect(git.run(['wait'], { ...slow, timeoutMs: 50 })).rejects.toMatchObject({
      reason: 'DEADLINE_EXCEEDED',
    });
    const signal = AbortSignal.timeout(50);
    await expect(git.run(['wait'], { ...slow, signal })).rejects.toMatchObject({
      reason: 'CANCELLED',
    });
  });

  test('settings of one call reach git without standing among its arguments', async () => {
    const config = { 'http.extraHeader': 'Authorization: Basic c2VjcmV0', 'a.b': 'x=y' };
    expect(await git.run(['config', 'http.extraHeader'], { config })).toBe(
      'Authorization: Basic c2VjcmV0\n',
    );
    expect(await git.run(['config', 'a.b'], { config })).toBe('x=y\n');
  });
});

describe('what may not lead git astray', () => {
  test('hooks of the project do not run', async () => {
    const hook = join(dir, '.git', 'hooks', 'pre-commit');
    await mkdir(join(dir, '.git', 'hooks'), { recursive: true });
    await writeFile(hook, '#!/bin/sh\ntouch hooked\nexit 1\n');
    await chmod(hook, 0o755);
    await git.run(['config', 'core.hooksPath', '.git/hooks']);
    await commit('one');
    await expect(readFile(join(dir, 'hooked'))).rejects.toThrow('ENOENT');
  });

  test('variables of this process that point elsewhere are not inherited', async () => {
    await commit('here');
    vi.stubEnv('GIT_DIR', '/nonexistent');
    vi.stubEnv('GIT_WORK_TREE', '/nonexistent');
    vi.stubEnv('GIT_INDEX_FILE', '/nonexistent');
    vi.stubEnv('GIT_CONFIG_PARAMETERS', "'core.hookspath'='x'");
    vi.stubEnv('RUNNER_HOST_TOKEN', 'secret-value');
    expect(await git.run(['log', '--format=%s'])).toBe('here\n');
    const config = { 'alias.environment': '!env' };
    const environment = await git.run(['environment'], { config });
    expect(environment).not.toContain('nonexistent');
    expect(environment).not.toContain('secret-value');
    expect(environment).toContain('GIT_TERMINAL_PROMPT=0');
  });

  test('no transport that runs commands', async () => {
    const args = ['ls-remote', 'ext::touch ran'];
    const config = { 'protocol.ext.allow': 'always' };
    expect((await git.tryRun(args, { config })).exitCode).toBe(128);
    await expect(readFile(join(dir, 'ran'))).rejects.toThrow('ENOENT');
  });
});

test.each(['-x', '--all', '', ' ', 'a b', 'a..b', '^a', 'a\n', 'a\0', '\t', 'x'.repeat(1_025)])(
  '%j is no ref',
  (ref) => {
    expect(() => mustRef(ref)).toThrow(expect.objectContaining({ reason: 'INVALID_REF' }) as Error);
  },
);

test.each(['main', 'a/b', 'v1.0', 'HEAD~3', 'HEAD@{1}', 'é', 'refs/tags/x'])(
  '%j is a ref',
  (ref) => {
    expect(mustRef(ref)).toBe(ref);
  },
);

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
