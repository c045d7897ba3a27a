import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SandboxStrategy } from '../../model/run.ts';
import type { PreparedSandbox, SandboxFactory } from '../../model/storage.ts';
import { createGit } from '../git/run-git.ts';
import { createSandboxFactory } from './sandbox-factory.ts';
import type { SandboxRoot } from './sandbox-root.ts';

const NONE = { live: new Set<string>(), known: new Set<string>() };
const NO_SHA = '0'.repeat(40);
const JOB = { jobId: 'job', isEmpty: false, mayFill: false, isLast: false };
const AUTHOR = ['-c', 'user.name=n', '-c', 'user.email=n@example.com'];

let base = '';
let project = '';
let reported: string[] = [];

beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'sandbox-')));
  project = join(base, 'project');
  await mkdir(project);
  reported = [];
});
afterEach(async () => {
  await rm(base, { recursive: true, force: true });
});

/** What a user or a step would see of git, with its environment as it is. */
function git(dir: string, ...args: string[]): string {
  const text = execFileSync('git', [...AUTHOR, ...args], {
    cwd: dir,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return text.trim();
}

async function put(files: Readonly<Record<string, string>>, dir = project): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, name)), { recursive: true });
    await writeFile(join(dir, name), text);
  }
}

async function createRepository(dir = project): Promise<void> {
  await mkdir(dir, { recursive: true });
  git(dir, 'init', '-q', '-b', 'main');
  await put({ 'a.txt': 'one\n', 'src/b.txt': 'two\n', '.gitignore': 'node_modules\n*.log\n' }, dir);
  await put({ '.runner/.gitignore': '*\n!vault.json\n' }, dir);
  git(dir, 'add', 'a.txt', 'src', '.gitignore');
  git(dir, 'commit', '-q', '-m', 'first');
}

function factory(
  projectDir = project,
  root: SandboxRoot = { base: join(base, 'sandboxes'), dir: rootDir() },
): SandboxFactory {
  return createSandboxFactory({
    projectDir,
    stateDir: join(projectDir, '.runner'),
    root,
    git: createGit(projectDir),
    report: (event) => {
      reported.push(event);
    },
  });
}

function rootDir(): string {
  return join(base, 'sandboxes', 'hash');
}

/** Names of the folders of runs. */
async function runsLeft(): Promise<string[]> {
  return existsSync(rootDir()) ? (await readdir(rootDir())).toSorted() : [];
}

type Opened = Omit<PreparedSandbox, 'sandbox'> & {
  /** Of its only job. */
  readonly sandbox: { readonly path: string; readonly strategy: SandboxStrategy };
  readonly runDir: string;
};

/** A run with one job, and another one to come. */
async function prepare(
  options: { ref?: string; strategy?: SandboxStrategy; runId?: string; dir?: string } = {},
): Promise<Opened> {
  const { ref, strategy, runId = 'run-1', dir = project } = options;
  const sandboxes = factory(dir);
  const trigger = { event: 'push', ...(await sandboxes.resolve(ref, strategy)) };
  const request = { runId, trigger, strategy, hasExplicitRef: ref !== undefined };
  return open(await sandboxes.prepare(request));
}

async function open(prepared: PreparedSandbox): Promise<Opened> {
  const { path } = await prepared.openWorkspace(JOB);
  const { sandbox } = prepared;
  return { ...prepared, sandbox: { path, strategy: sandbox.strategy }, runDir: sandbox.path };
}

/** Of a git directory only its name. */
async function filesOf(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(dir.length + 1))
    .map((name) => (name.startsWith('.git/') ? '.git' : name));
  return [...new Set(names)].toSorted();
}

/** What git knows of the project, as it was before the first run. */
function expectNoTrace(): void {
  expect(git(project, 'worktree', 'list').split('\n')).toHaveLength(1);
  expect(git(project, 'for-each-ref', 'refs/runner')).toBe('');
  expect(existsSync(join(project, '.git', 'refs', 'runner'))).toBe(false);
}

describe('resolve', () => {
  test('names branches, tags and commits, and says what HEAD is', async () => {
    await createRepository();
    const first = git(project, 'rev-parse', 'HEAD');
    git(project, 'tag', '-a', 'v1', '-m', 'annotated');
    git(project, 'branch', 'feature/x');
    git(project, 'update-ref', 'refs/remotes/origin/far', 'HEAD');
    git(project, 'commit', '-q', '--allow-empty', '-m', 'second');
    const second = git(project, 'rev-parse', 'HEAD');
    const { resolve } = { resolve: (ref?: string) => factory().resolve(ref, undefined) };
    expect(await resolve()).toEqual({ ref: 'refs/heads/main', sha: second });
    expect(await resolve('main')).toEqual({ ref: 'refs/heads/main', sha: second });
    expect(await resolve('HEAD')).toEqual({ ref: 'refs/heads/main', sha: second });
    expect(await resolve('refs/heads/main')).toEqual({ ref: 'refs/heads/main', sha: second });
    expect(await resolve('feature/x')).toEqual({ ref: 'refs/heads/feature/x', sha: first });
    expect(await resolve('v1')).toEqual({ ref: 'refs/tags/v1', sha: first });
    expect(await resolve('origin/far')).toEqual({ ref: 'refs/heads/far', sha: first });
    expect(await resolve('HEAD~1')).toEqual({ ref: first, sha: first });
    expect(await resolve(first)).toEqual({ ref: first, sha: first });
    expect(await resolve(first.slice(0, 10))).toEqual({ ref: first.slice(0, 10), sha: first });
    git(project, 'pack-refs', '--all');
    expect(await resolve()).toEqual({ ref: 'refs/heads/main', sha: second });
    git(project, 'checkout', '-q', '--detach');
    expect(await resolve()).toEqual({ ref: second, sha: second });
  });

  test.each([
    'nope',
    '--all',
    '-h',
    'main..main',
    'a.txt',
    'main:a.txt',
    'HEAD^{tree}',
    '@{-9}',
    '',
  ])('refuses %j', async (ref) => {
    await createRepository();
    await expect(factory().resolve(ref, undefined)).rejects.toMatchObject({
      reason: 'INVALID_REF',
    });
  });

  test('a tag of something that is no commit is refused; a branch and a tag of one name are told apart', async () => {
    await createRepository();
    git(project, 'tag', 'blob', git(project, 'hash-object', '-w', 'a.txt'));
    await expect(factory().resolve('blob', undefined)).rejects.toMatchObject({
      reason: 'INVALID_REF',
    });
    git(project, 'tag', 'both');
    git(project, 'commit', '-q', '--allow-empty', '-m', 'second');
    git(project, 'branch', 'both');
    const tag = { ref: 'refs/tags/both', sha: git(project, 'rev-parse', 'refs/tags/both') };
    expect(await factory().resolve('both', undefined)).toEqual(tag);
  });

  test('before the first commit and outside git there is nothing to check out', async () => {
    expect(await factory().resolve(undefined, undefined)).toEqual({ ref: '', sha: NO_SHA });
    await expect(factory().resolve('main', undefined)).rejects.toMatchObject({
      reason: 'INVALID_REF',
    });
    await expect(factory().resolve(undefined, 'worktree')).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
    });
    git(project, 'init', '-q', '-b', 'trunk');
    expect(await factory().resolve(undefined, undefined)).toEqual({
      ref: 'refs/heads/trunk',
      sha: NO_SHA,
    });
    await expect(factory().resolve(undefined, 'worktree')).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
    });
  });

  test('a ref with the strategy none is refused', async () => {
    await createRepository();
    await expect(factory().resolve('main', 'none')).rejects.toMatchObject({
      reason: 'INVALID_REF',
    });
  });
});

describe('a work tree', () => {
  test('is chosen for a clean project, holds the commit, and goes without a trace', async () => {
    await createRepository();
    await put({ 'node_modules/x': 'ignored', '.runner/vault.json': '{}' });
    const head = git(project, 'rev-parse', 'HEAD');
    const { sandbox, release } = await prepare();
    expect(sandbox).toEqual({
      path: join(rootDir(), 'run-1', 'job', 'project'),
      strategy: 'worktree',
    });
    expect(await filesOf(sandbox.path)).toEqual(['.git', '.gitignore', 'a.txt', 'src/b.txt']);
    expect(git(sandbox.path, 'rev-parse', 'HEAD')).toBe(head);
    expect(git(sandbox.path, 'status', '--porcelain')).toBe('');
    expect(git(sandbox.path, 'branch', '--show-current')).toBe('');
    expect((await stat(join(sandbox.path, '.git'))).isDirectory()).toBe(true);
    expect(git(project, 'fsck')).toBe('');
    await release();
    await release();
    expectNoTrace();
    expect(await runsLeft()).toEqual([]);
    expect(git(project, 'status', '--porcelain', '-uall')).toBe('?? .runner/vault.json');
  });

  test('is chosen for an explicit ref, whatever the state of the project', async () => {
    await createRepository();
    git(project, 'tag', 'v1');
    await put({ 'a.txt': 'two\n', 'new.txt': 'x' });
    git(project, 'commit', '-qam', 'second');
    await put({ 'a.txt': 'three\n' });
    const { sandbox } = await prepare({ ref: 'v1' });
    expect(sandbox.strategy).toBe('worktree');
    expect(await readFile(join(sandbox.path, 'a.txt'), 'utf8')).toBe('one\n');
    expect(git(sandbox.path, 'describe', '--tags')).toBe('v1');
  });

  test('commits and stashes made there leave the branch and the index of the project alone', async () => {
    await createRepository();
    const head = git(project, 'rev-parse', 'HEAD');
    const { sandbox, release } = await prepare();
    await put({ 'a.txt': 'changed\n' }, sandbox.path);
    git(sandbox.path, 'commit', '-qam', 'in the sandbox');
    expect(git(project, 'rev-parse', 'HEAD')).toBe(head);
    expect(git(project, 'status', '--porcelain')).toBe('');
    git(sandbox.path, 'branch', 'own');
    expect(git(project, 'branch', '--format=%(refname)')).toBe('refs/heads/main');
    await release();
  });

  test('read-only folders that a step left are removed', async () => {
    await createRepository();
    const { sandbox, release } = await prepare();
    await put({ 'cache/mod/file': 'x' }, sandbox.path);
    await chmod(join(sandbox.path, 'cache', 'mod'), 0o500);
    await release();
    await expect(stat(sandbox.path)).rejects.toThrow('ENOENT');
  });

  test('works when the project is a linked work tree itself', async () => {
    await createRepository();
    const linked = join(base, 'linked');
    git(project, 'worktree', 'add', '-q', '-b', 'other', linked);
    await put({ '.runner/.gitignore': '*\n' }, linked);
    const { sandbox, release } = await prepare({ dir: linked });
    expect(sandbox.strategy).toBe('worktree');
    expect(git(sandbox.path, 'status', '--porcelain')).toBe('');
    await release();
    await put({ 'a.txt': 'dirty\n' }, linked);
    const copy = await prepare({ dir: linked });
    expect(copy.sandbox.strategy).toBe('copy');
    expect(git(copy.sandbox.path, 'diff', '--name-only')).toBe('a.txt');
    await copy.release();
    expect(git(linked, 'worktree', 'list').split('\n')).toHaveLength(2);
    expect(git(linked, 'branch', '--show-current')).toBe('other');
  });

  test('a commit that is not there fails the run instead of running other files', async () => {
    await createRepository();
    const trigger = { event: 'push', ref: 'refs/heads/main', sha: '1'.repeat(40) };
    const request = { runId: 'run-1', trigger, strategy: undefined, hasExplicitRef: false };
    await expect(factory().prepare(request)).rejects.toMatchObject({ reason: 'GIT_FAILED' });
    expect(await runsLeft()).toEqual([]);
    expectNoTrace();
    expect(reported).toEqual([]);
  });

  test('gets the refs from git itself where they are not plain files', async () => {
    await createRepository();
    await mkdir(join(project, '.git', 'reftable'));
    const { sandbox, release } = await prepare();
    expect(await filesOf(sandbox.path)).toEqual(['.git', '.gitignore', 'a.txt', 'src/b.txt']);
    expect(git(sandbox.path, 'status', '--porcelain')).toBe('');
    await put({ 'a.txt': 'dirty\n' });
    const copy = await prepare({ runId: 'run-2' });
    expect(git(copy.sandbox.path, 'diff', '--name-only')).toBe('a.txt');
    await Promise.all([release(), copy.release()]);
    expectNoTrace();
  });

  test('many at once are apart', async () => {
    await createRepository();
    const made = await Promise.all(
      Array.from({ length: 8 }, (_, i) => prepare({ runId: `run-${i}` })),
    );
    for (const { sandbox } of made) expect(git(sandbox.path, 'status', '--porcelain')).toBe('');
    await Promise.all(made.map(({ release }) => release()));
    expectNoTrace();
  });
});

describe('a copy', () => {
  test('and a work tree take turns as the project is changed and restored', async () => {
    await createRepository();
    const sandboxes = factory();
    const trigger = { event: 'push', ...(await sandboxes.resolve(undefined, undefined)) };
    const states: [string, string, string[]][] = [];
    for (const [round, text] of ['one\n', 'changed\n', 'again\n', 'one\n', 'one\n'].entries()) {
      await put({ 'a.txt': text });
      if (text !== 'one\n') await put({ 'new.txt': '' });
      else await rm(join(project, 'new.txt'), { force: true });
      const request = {
        runId: `run-${round}`,
        trigger,
        strategy: undefined,
        hasExplicitRef: false,
      };
      const { sandbox } = await open(await sandboxes.prepare(request));
      const shown = git(sandbox.path, 'status', '--porcelain').split('\n');
      states.push([sandbox.strategy, await readFile(join(sandbox.path, 'a.txt'), 'utf8'), shown]);
    }
    const clean = ['worktree', 'one\n', ['']];
    const dirty = ['M a.txt', '?? new.txt'];
    expect(states).toEqual([
      clean,
      ['copy', 'changed\n', dirty],
      ['copy', 'again\n', dirty],
      clean,
      clean,
    ]);
  });

  test('is chosen for a dirty project and shows git what the project shows it', async () => {
    await createRepository();
    await put({ 'a.txt': 'changed\n', 'staged.txt': 's', 'new dir/ü"x.txt': 'u' });
    await put({
      'node_modules/m/index.js': 'ignored',
      'x.log': 'ignored',
      '.runner/vault.json': '{}',
    });
    git(project, 'add', 'staged.txt');
    await rm(join(project, 'src', 'b.txt'));
    const { sandbox, release } = await prepare();
    expect(sandbox.strategy).toBe('copy');
    const files = ['.git', '.gitignore', 'a.txt', 'new dir/ü"x.txt', 'staged.txt'];
    expect(await filesOf(sandbox.path)).toEqual(files);
    const status = git(project, 'status', '--porcelain').replace('?? .runner/\n', '');
    expect(git(sandbox.path, 'status', '--porcelain')).toBe(status);
    expect(git(sandbox.path, 'diff', 'HEAD')).toBe(git(project, 'diff', 'HEAD'));
    expect(git(sandbox.path, 'rev-parse', 'HEAD')).toBe(git(project, 'rev-parse', 'HEAD'));
    await put({ 'a.txt': 'by a step\n' }, sandbox.path);
    git(sandbox.path, 'add', '-A');
    expect(await readFile(join(project, 'a.txt'), 'utf8')).toBe('changed\n');
    expect(git(project, 'status', '--porcelain')).toContain('?? "new dir/');
    await release();
    expect(git(project, 'worktree', 'list').split('\n')).toHaveLength(1);
  });

  test('is chosen for a file that git was told not to show, too', async () => {
    await createRepository();
    git(project, 'config', 'status.showUntrackedFiles', 'no');
    await put({ 'new.txt': 'x' });
    const { sandbox } = await prepare();
    expect(sandbox.strategy).toBe('copy');
    expect(await filesOf(sandbox.path)).toContain('new.txt');
  });

  test('keeps modes and links, and follows none of them', async () => {
    await createRepository();
    await put({ 'run.sh': '#!/bin/sh\n' });
    await chmod(join(project, 'run.sh'), 0o755);
    await writeFile(join(base, 'outside.txt'), 'secret');
    await mkdir(join(base, 'outside-dir'));
    await writeFile(join(base, 'outside-dir', 'b.txt'), 'secret');
    await symlink('src/b.txt', join(project, 'inner'));
    await symlink(join(project, 'a.txt'), join(project, 'absolute'));
    await symlink('../outside.txt', join(project, 'out'));
    // A tracked folder that has become a link: git takes its files for deleted.
    await rm(join(project, 'src'), { recursive: true });
    await symlink(join(base, 'outside-dir'), join(project, 'src'));
    const { sandbox } = await prepare({ strategy: 'copy' });
    expect((await stat(join(sandbox.path, 'run.sh'))).mode & 0o777).toBe(0o755);
    expect(await readlink(join(sandbox.path, 'inner'))).toBe('src/b.txt');
    expect(await readlink(join(sandbox.path, 'out'))).toBe('../outside.txt');
    expect(await readlink(join(sandbox.path, 'absolute'))).toBe(join(sandbox.path, 'a.txt'));
    expect((await lstat(join(sandbox.path, 'src'))).isSymbolicLink()).toBe(true);
    for (const file of await filesOf(sandbox.path)) {
      const present = await lstat(join(sandbox.path, file));
      if (present.isFile())
        expect(await readFile(join(sandbox.path, file), 'utf8')).not.toContain('secret');
    }
  });

  test('before the first commit it can be used and its commits are its own', async () => {
    git(project, 'init', '-q', '-b', 'main');
    await put({ 'a.txt': 'x', '.gitignore': '*.log\n', 'b.log': 'no' });
    const { sandbox, release } = await prepare();
    expect(sandbox.strategy).toBe('copy');
    expect(await filesOf(sandbox.path)).toEqual(['.git', '.gitignore', 'a.txt']);
    git(sandbox.path, 'add', '.');
    git(sandbox.path, 'commit', '-qm', 'in the sandbox');
    expect(() => git(project, 'rev-parse', '--verify', 'HEAD')).toThrow('fatal');
    expect(git(project, 'branch', '-a')).toBe('');
    await release();
  });

  test('submodules and repositories within come along as files', async () => {
    const library = join(base, 'library');
    await createRepository(library);
    await createRepository();
    git(project, '-c', 'protocol.file.allow=always', 'submodule', '-q', 'add', library, 'lib');
    git(project, 'commit', '-qm', 'with a library');
    await createRepository(join(project, 'nested'));
    await put({ 'lib/uncommitted.txt': 'x', 'lib/y.log': 'ignored' });
    const { sandbox } = await prepare();
    const files = await filesOf(sandbox.path);
    expect(files).toContain('lib/a.txt');
    expect(files).toContain('lib/uncommitted.txt');
    expect(files).toContain('nested/src/b.txt');
    expect(files).not.toContain('lib/y.log');
    expect(git(sandbox.path, 'diff', '--name-only', 'HEAD')).toBe('');
  });

  test('names that are not UTF-8 are left out and reported', async () => {
    await createRepository();
    await writeFile(Buffer.concat([Buffer.from(`${project}/x`), Buffer.of(0xff)]), 'x');
    const { sandbox } = await prepare();
    expect(await filesOf(sandbox.path)).toEqual(['.git', '.gitignore', 'a.txt', 'src/b.txt']);
    expect(reported).toEqual(['sandbox.name_unreadable']);
  });

  test('of a ref holds that ref', async () => {
    await createRepository();
    git(project, 'tag', 'v1');
    await put({ 'a.txt': 'dirty\n' });
    const { sandbox } = await prepare({ ref: 'v1', strategy: 'copy' });
    expect(sandbox.strategy).toBe('copy');
    expect(await readFile(join(sandbox.path, 'a.txt'), 'utf8')).toBe('one\n');
  });
});

describe('without git', () => {
  test('the files are copied, without starting a process', async () => {
    await put({ 'a.txt': 'x', 'deep/er/b.txt': 'y', '.github/workflows/ci.yml': 'on: push' });
    await put({ '.runner/secrets.json': 'no' });
    const path = process.env['PATH'];
    process.env['PATH'] = '/nonexistent';
    try {
      const { sandbox, release } = await prepare();
      expect(sandbox.strategy).toBe('copy');
      const files = ['.github/workflows/ci.yml', 'a.txt', 'deep/er/b.txt'];
      expect(await filesOf(sandbox.path)).toEqual(files);
      await release();
      expect(await runsLeft()).toEqual([]);
    } finally {
      process.env['PATH'] = path;
    }
  });

  test('a project too large to copy is refused, and never run where it is unasked', async () => {
    await put({ 'deep/huge.bin': '' });
    await truncate(join(project, 'deep', 'huge.bin'), 600 * 1024 * 1024);
    await expect(prepare()).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
      metadata: { field: 'sandbox.strategy' },
    });
    expect((await prepare({ strategy: 'none' })).sandbox.path).toBe(project);
    const { sandbox } = await prepare({ strategy: 'copy' });
    expect((await stat(join(sandbox.path, 'deep', 'huge.bin'))).size).toBe(600 * 1024 * 1024);
  });

  test('a repository that git refuses is run as files and reported', async () => {
    await createRepository();
    await writeFile(join(project, '.git', 'config'), '[core]\n\trepositoryformatversion = 99\n');
    const { sandbox } = await prepare();
    expect(sandbox.strategy).toBe('copy');
    expect(await filesOf(sandbox.path)).toEqual(['.gitignore', 'a.txt', 'src/b.txt']);
    expect(reported).toEqual(['sandbox.git_refused']);
  });
});

test('none is the project itself and removes nothing', async () => {
  await createRepository();
  const { sandbox, release } = await prepare({ strategy: 'none' });
  expect(sandbox).toEqual({ path: project, strategy: 'none' });
  await release();
  expect(await readFile(join(project, 'a.txt'), 'utf8')).toBe('one\n');
});

describe('a project below the root of its repository', () => {
  test('runs in its folder of the sandbox', async () => {
    await createRepository();
    await put({ '.runner/.gitignore': '*\n' }, join(project, 'src'));
    const { sandbox, release } = await prepare({ dir: join(project, 'src') });
    expect(sandbox).toEqual({
      path: join(rootDir(), 'run-1', 'job', 'src', 'src'),
      strategy: 'worktree',
    });
    expect(await filesOf(sandbox.path)).toEqual(['b.txt']);
    expect(git(sandbox.path, 'status', '--porcelain')).toBe('');
    await release();
  });

  test('is a project of its own when the repository does not track it', async () => {
    await createRepository();
    const own = join(project, 'node_modules', 'own');
    await put({ 'x.txt': 'x' }, own);
    expect(await factory(own).resolve(undefined, undefined)).toEqual({ ref: '', sha: NO_SHA });
    const { sandbox } = await prepare({ dir: own });
    expect(sandbox.strategy).toBe('copy');
    expect(await filesOf(sandbox.path)).toEqual(['x.txt']);
  });
});

describe('cleaning up', () => {
  test('removes what dead runs left and nothing of the user', async () => {
    await createRepository();
    await prepare({ runId: 'live' });
    await prepare({ runId: 'dead' });
    await put({ 'a.txt': 'dirty\n' });
    await prepare({ runId: 'dead-copy' });
    await prepare({ runId: 'half' });
    await rm(join(rootDir(), 'half', '.snapshot'), { recursive: true });
    // A work tree of the user on a disk that is away.
    git(project, 'worktree', 'add', '-q', join(base, 'usb'));
    await rm(join(base, 'usb'), { recursive: true });
    await factory().cleanUp({ live: new Set(['live']), known: new Set(['live']) });
    expect(await runsLeft()).toEqual(['live']);
    expect(git(project, 'worktree', 'list')).toContain('usb');
    const live = join(rootDir(), 'live', 'job', 'project');
    expect(git(live, 'status', '--porcelain')).toBe('');
  });

  test('looks where older versions and other settings had folders, until nothing is left there', async () => {
    await createRepository();
    const rootIn = (name: string, more: Partial<SandboxRoot> = {}): SandboxRoot => {
      const own = join(base, name, 'gatehouse-runner');
      return { base: own, dir: join(own, 'hash'), ...more };
    };
    const made: string[] = [];
    const makeIn = async (root: SandboxRoot, runId: string): Promise<void> => {
      const sandboxes = factory(project, root);
      const trigger = { event: 'push', ...(await sandboxes.resolve(undefined, undefined)) };
      const request = { runId, trigger, strategy: undefined, hasExplicitRef: false };
      const { openWorkspace, release } = await sandboxes.prepare(request);
      const { end } = await openWorkspace({ ...JOB, jobId: 'kept' });
      await end(true);
      await openWorkspace(JOB);
      made.push(join(root.dir, runId));
      if (runId.startsWith('ended')) await release();
    };
    const [old, given] = [rootIn('.cache'), rootIn('given')];
    await makeIn(old, 'killed-1');
    // The version that made it knew of one place alone, if of any.
    await rm(join(project, '.runner/sandbox-root'), { force: true });
    await makeIn(given, 'ended-2');
    await makeIn(given, 'killed-3');
    const now = rootIn('home', { former: [old.dir], isOwnBase: true, isBaseRemoved: true });
    await makeIn(now, 'killed-4');
    const known = new Set(['ended-2', 'killed-3']);
    await factory(project, now).cleanUp({ live: new Set(), known });
    expect(made.map((dir) => existsSync(dir))).toEqual([false, true, true, false]);
    for (const dir of made.slice(1, 3)) {
      expect((await readdir(dir)).toSorted()).toEqual(['.kept-kept', 'kept']);
    }
    expect([old.base, now.base].map((dir) => existsSync(dir))).toEqual([false, false]);
    // They go with their runs, though another start came between.
    await makeIn(now, 'ended-5');
    for (const runId of known) await factory(project, now).forget(runId);
    expect([given.base, now.base].map((dir) => existsSync(dir))).toEqual([false, true]);
    await factory(project, now).forget('ended-5');
    expect(existsSync(now.base)).toBe(false);
    expect(reported).toEqual([]);
  });

  test('removes the linked work trees that sandboxes once were, and follows none elsewhere', async () => {
    await createRepository();
    const sandboxes = join(project, '.runner', 'sandboxes');
    const link = (name: string): string =>
      git(project, 'worktree', 'add', '-q', '--detach', join(sandboxes, name));
    for (const name of ['whole', 'gone', 'killed', 'liar']) link(name);
    await rm(join(sandboxes, 'gone'), { recursive: true });
    // Killed after git's folder was made, and before anything in it was written.
    const half = join(project, '.git', 'worktrees', 'killed-123456');
    await rename(join(project, '.git', 'worktrees', 'killed'), half);
    await writeFile(join(sandboxes, 'killed', '.git'), `gitdir: ${half}\n`);
    for (const name of await readdir(half)) await rm(join(half, name), { recursive: true });
    // A step wrote where cleaning up looks.
    await rm(join(project, '.git', 'worktrees', 'liar'), { recursive: true });
    await writeFile(join(sandboxes, 'liar', '.git'), `gitdir: ${join(project, '.git')}\n`);
    await factory().cleanUp(NONE);
    expect(await readdir(sandboxes)).toEqual([]);
    expectNoTrace();
    expect(git(project, 'status', '--porcelain')).toBe('');
    expect(reported).toEqual([]);
  });

  test('a run that was killed while it was prepared is prepared again without a trace', async () => {
    await createRepository();
    await prepare({ runId: 'queued' });
    await factory().cleanUp({ live: new Set(['queued']), known: new Set(['queued']) });
    const again = await prepare({ runId: 'queued' });
    expect(git(again.sandbox.path, 'status', '--porcelain')).toBe('');
    await again.release();
    expectNoTrace();
  });

  test('takes what a killed run had pushed, lets go of its commits, and forgets runs that are gone', async () => {
    await createRepository();
    for (const runId of ['killed', 'removed', 'waiting']) {
      const sandboxes = factory();
      const trigger = { event: 'push', ...(await sandboxes.resolve(undefined, undefined)) };
      await sandboxes.hold(runId, trigger, undefined);
      const { sandbox } = await prepare({ runId });
      git(sandbox.path, 'push', '-q', 'origin', 'HEAD:refs/heads/pushed');
      git(sandbox.path, 'push', '-q', 'origin', 'HEAD:refs/tags/t');
    }
    // As git does from time to time.
    git(project, 'pack-refs', '--all');
    // Of another runner on the same repository, or of the user.
    git(project, 'update-ref', 'refs/runner/foreign/keep/head/0', 'HEAD');
    await factory().cleanUp({
      live: new Set(['waiting']),
      known: new Set(['waiting', 'killed']),
    });
    const refs = (): string[] =>
      git(project, 'for-each-ref', '--format=%(refname:lstrip=2)', 'refs/runner').split('\n');
    expect(refs()).toEqual([
      'foreign/keep/head/0',
      'killed/heads/pushed',
      'killed/tags/t',
      'waiting/keep/head',
    ]);
    expect(await runsLeft()).toEqual(['waiting']);
    await factory().forget('killed');
    await factory().release('waiting');
    expect(refs()).toEqual(['foreign/keep/head/0']);
    expect(await readdir(join(project, '.runner', 'run-refs'))).toEqual([]);
    expect(reported).toEqual([]);
  });

  test('a repository that cannot be written to is reported, and run all the same', async () => {
    await createRepository();
    await writeFile(join(project, '.git', 'refs', 'runner'), 'in the way');
    const sandboxes = factory();
    const trigger = { event: 'push', ...(await sandboxes.resolve(undefined, undefined)) };
    await sandboxes.hold('run-1', trigger, undefined);
    expect(reported).toEqual(['sandbox.not_held']);
    const { sandbox, release } = await prepare();
    expect(git(sandbox.path, 'status', '--porcelain')).toBe('');
    await release();
    await sandboxes.release('run-1');
  });

  test('does nothing where nothing was made', async () => {
    await factory().cleanUp(NONE);
    await createRepository();
    await factory().cleanUp(NONE);
    expect(git(project, 'status', '--porcelain')).toBe('');
  });
});
