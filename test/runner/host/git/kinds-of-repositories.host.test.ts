/** Runs in repositories of every kind: what the git directory of a run takes over of them. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { StartRequest } from '../../../../src/runner/model/ports.ts';
import { commitAll, fingerprint, git, put, scriptWorkflow } from '../../support/git-project.ts';
import { createBench, textOf } from '../../support/scheduler-bench.ts';

let base = '';
let origin = '';
const W = '.github/workflows/w.yml';
const worktree = { strategy: 'worktree' } as const;

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'git-kinds-')));
  put(join(base, 'home'), { '.gitconfig': '[protocol "file"]\n\tallow = always\n' });
  vi.stubEnv('HOME', join(base, 'home'));
  vi.stubEnv('XDG_CONFIG_HOME', undefined);
  vi.stubEnv('GIT_CONFIG_NOSYSTEM', '1');
  origin = join(base, 'origin');
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(base, { recursive: true, force: true });
});

/** Three commits; the newest has the workflow. */
function makeOrigin(script: string, ...init: readonly string[]): void {
  git(base, 'init', '-q', '-b', 'main', ...init, origin);
  put(origin, { '.gitignore': '.runner\n', 'a.txt': 'one\n' });
  commitAll(origin, 'one');
  git(origin, 'tag', 'v1');
  put(origin, { 'a.txt': 'two\n', 'dir/b.txt': 'b\n' });
  commitAll(origin, 'two');
  put(origin, { [W]: scriptWorkflow(script) });
  commitAll(origin, 'three');
  git(origin, 'config', 'uploadpack.allowFilter', 'true');
  git(origin, 'config', 'uploadpack.allowAnySHA1InWant', 'true');
}

/** The lines of the only step, once the run has succeeded. */
async function linesOf(
  dir: string,
  sandbox: StartRequest['sandbox'] = worktree,
): Promise<readonly string[]> {
  const nothing = (): Promise<void> => Promise.resolve();
  await using bench = await createBench({
    project: { dir, write: nothing, workflow: nothing, [Symbol.asyncDispose]: nothing },
  });
  const { run } = await bench.service.start({ workflow: 'w', sandbox });
  const ended = await bench.events.completed(run.id);
  const log = await textOf(bench.service.logs(run.id, {}));
  expect(ended.conclusion, log + JSON.stringify(bench.errors(run.id))).toBe('success');
  expect(bench.problems).toEqual([]);
  await bench.stop();
  return bench.events.lines(run.id, 'job', 1);
}

const LOOK = [
  'git status --porcelain',
  'git log --format=%s',
  'git describe --tags',
  'git diff --stat HEAD~1 HEAD -- a.txt | cat',
  'git fsck --no-dangling',
  'git rev-parse --show-prefix --is-inside-work-tree',
].join('\n');
const LOOKED = ['three', 'two', 'one', expect.stringMatching(/^v1-2-g/), '', 'true'] as const;

test('a linked work tree', async () => {
  makeOrigin(LOOK);
  const linked = join(base, 'linked');
  git(origin, 'worktree', 'add', '-q', '-b', 'other', linked);
  const before = fingerprint(join(origin, '.git'));
  expect(await linesOf(linked)).toEqual(LOOKED);
  put(linked, { 'a.txt': 'changed\n' });
  expect(await linesOf(linked, {})).toEqual([' M a.txt', ...LOOKED]);
  expect(fingerprint(join(origin, '.git'))).toEqual(before);
});

test('a submodule', async () => {
  makeOrigin(`${LOOK}\ngit remote get-url origin`);
  const outer = join(base, 'outer');
  git(base, 'init', '-q', '-b', 'main', outer);
  git(outer, 'submodule', '-q', 'add', origin, 'lib');
  commitAll(outer, 'outer');
  const inner = join(outer, 'lib');
  const before = fingerprint(join(outer, '.git'));
  expect(await linesOf(inner)).toEqual([...LOOKED, origin]);
  put(inner, { 'a.txt': 'changed\n' });
  expect(await linesOf(inner, {})).toEqual([' M a.txt', ...LOOKED, origin]);
  expect(fingerprint(join(outer, '.git'))).toEqual(before);
  expect(git(outer, 'status', '--porcelain')).toBe('M lib');
});

test('a shallow clone, which can be deepened and pushed from', async () => {
  makeOrigin(
    [
      'git log --format=%s',
      'git rev-parse --is-shallow-repository',
      'git fsck',
      'git commit -q --allow-empty -m four',
      'git push -q origin HEAD:refs/heads/x',
      'git fetch -q --unshallow origin',
      'git log --format=%s',
    ].join('\n'),
  );
  const clone = join(base, 'clone');
  git(base, 'clone', '-q', '--depth', '2', `file://${origin}`, clone);
  const lines = ['three', 'two', 'true', 'four', 'three', 'two', 'one'];
  const seen = await linesOf(clone);
  expect(seen).toEqual(lines);
  expect(git(clone, 'log', '--format=%s')).toBe('three\ntwo');
  const pushed = git(clone, 'for-each-ref', '--format=%(subject)', 'refs/runner');
  expect(pushed).toBe('four');
  expect(git(clone, 'fsck')).toBe('');
});

test('a repository of SHA-256', async () => {
  makeOrigin(
    `${LOOK}\ngit rev-parse --show-object-format\ngit commit -q --allow-empty -m x; git push -q origin HEAD:main`,
    '--object-format=sha256',
  );
  const clone = join(base, 'clone');
  git(base, 'clone', '-q', origin, clone);
  expect(await linesOf(clone)).toEqual([...LOOKED, 'sha256']);
  expect(git(clone, 'for-each-ref', '--format=%(subject)', 'refs/runner')).toBe('x');
  put(clone, { 'a.txt': 'changed\n' });
  expect((await linesOf(clone, {}))[0]).toBe(' M a.txt');
});

const hasRefTables = (): boolean =>
  spawnSync('git', [
    'init',
    '-q',
    '--ref-format=reftable',
    mkdtempSync(join(tmpdir(), 'reftable-')),
  ]).status === 0;

test.skipIf(!hasRefTables())('refs in tables (needs git 2.45)', async () => {
  makeOrigin(`${LOOK}\ngit push -q origin HEAD:refs/heads/x`, '--ref-format=reftable');
  git(origin, 'tag', '-a', 'v2', '-m', 'v2', 'HEAD~1');
  expect(await linesOf(origin)).toEqual(
    LOOKED.map((line, index) => (index === 3 ? expect.stringMatching(/^v2-1-g/) : line)),
  );
  expect(git(origin, 'for-each-ref', '--format=%(refname:lstrip=3)', 'refs/runner')).toBe(
    'heads/x',
  );
});

describe('a partial clone', () => {
  const script =
    'git status --porcelain\ncat a.txt dir/b.txt\ngit show HEAD~2:a.txt\ngit log --format=%s';
  const lines = ['two', 'b', 'one', 'three', 'two', 'one'];
  const missing = (dir: string): number =>
    git(dir, 'rev-list', '--objects', '--all', '--missing=print')
      .split('\n')
      .filter((line) => line.startsWith('?')).length;

  test('fetches what is missing, for the checkout into the project', async () => {
    makeOrigin(script);
    const clone = join(base, 'clone');
    git(base, 'clone', '-q', '--filter=blob:none', '--no-checkout', `file://${origin}`, clone);
    // What the run checks out is not there yet, the older a.txt of it neither.
    git(clone, 'checkout', '-q', 'HEAD', '--', '.gitignore', '.github');
    git(clone, 'read-tree', 'HEAD');
    expect(missing(clone)).toBe(3);
    expect(await linesOf(clone)).toEqual(lines);
    expect(missing(clone)).toBe(1);
    expect(await linesOf(clone)).toEqual(lines);
  });

  test('says so when it cannot', async () => {
    makeOrigin(script);
    const clone = join(base, 'clone');
    git(base, 'clone', '-q', '--filter=blob:none', `file://${origin}`, clone);
    renameSync(origin, join(base, 'moved'));
    const nothing = (): Promise<void> => Promise.resolve();
    await using bench = await createBench({
      project: { dir: clone, write: nothing, workflow: nothing, [Symbol.asyncDispose]: nothing },
    });
    const { run } = await bench.service.start({ workflow: 'w', sandbox: worktree });
    expect((await bench.events.completed(run.id)).conclusion).toBe('failure');
    const log = await textOf(bench.service.logs(run.id, {}));
    expect(log).toContain('from promisor remote');
  });
});

test('objects that are borrowed from a repository that borrows itself', async () => {
  makeOrigin(LOOK);
  const chain = ['first "quoted"', 'second', 'third', 'fourth', 'fifth'];
  let from = origin;
  for (const name of chain) {
    git(base, 'clone', '-q', '--shared', from, join(base, name));
    from = join(base, name);
  }
  // Paths relative to the folder of objects, as git takes them too.
  const alternates = join(from, '.git', 'objects', 'info', 'alternates');
  writeFileSync(alternates, '# a comment\n../../../fourth/.git/objects\n');
  expect(await linesOf(from)).toEqual(LOOKED);
});

test('line endings, links and attributes', async () => {
  makeOrigin('od -An -c a.txt dir/b.txt | tr -d " \\n"; echo; git status --porcelain; cat link');
  execFileSync('ln', ['-s', 'a.txt', join(origin, 'link')]);
  commitAll(origin, 'a link');
  const clone = join(base, 'clone');
  git(base, 'clone', '-q', '-c', 'core.autocrlf=true', '-c', 'core.symlinks=false', origin, clone);
  put(clone, { '.git/info/attributes': 'b.txt -text\n' });
  git(clone, 'rm', '-q', '--cached', '-r', '.');
  git(clone, 'reset', '-q', '--hard');
  // The link is a file with the name of its target.
  expect(await linesOf(clone)).toEqual(['two\\r\\nb\\n', 'a.txt']);
});

test('sparse', async () => {
  makeOrigin('ls; git status --porcelain; git sparse-checkout list');
  put(origin, { 'big/c.txt': 'c\n' });
  commitAll(origin, 'big');
  const clone = join(base, 'clone');
  git(base, 'clone', '-q', '--sparse', origin, clone);
  git(clone, 'sparse-checkout', 'set', 'dir', '.github');
  expect(await linesOf(clone)).toEqual(['a.txt', 'dir', '.github', 'dir']);
  put(clone, { 'a.txt': 'changed\n' });
  expect(await linesOf(clone, {})).toEqual(['a.txt', 'dir', ' M a.txt', '.github', 'dir']);
});

test('the filter of LFS, which the project alone has set up', async () => {
  makeOrigin('cat big.bin; git status --porcelain; git config lfs.locksverify');
  git(origin, 'config', 'filter.lfs.clean', 'sed s/content/pointer/');
  git(origin, 'config', 'filter.lfs.smudge', 'sed s/pointer/content/');
  git(origin, 'config', 'filter.lfs.required', 'true');
  git(origin, 'config', 'lfs.locksverify', 'false');
  put(origin, { '.gitattributes': '*.bin filter=lfs\n', 'big.bin': 'content\n' });
  commitAll(origin, 'big');
  expect(git(origin, 'show', 'HEAD:big.bin')).toBe('pointer');
  expect(await linesOf(origin)).toEqual(['content', 'false']);
});

test('remote-tracking branches, notes and replacements are seen; what the user stashed is not', async () => {
  makeOrigin(
    [
      'git log -1 --format=%s origin/main',
      'git rev-parse --abbrev-ref origin/HEAD',
      'git rev-parse --abbrev-ref main@{upstream}',
      'git log -1 --format=%N HEAD',
      'git stash list; git for-each-ref refs/stash',
      'git diff --name-only origin/main...HEAD',
    ].join('\n'),
  );
  const clone = join(base, 'clone');
  git(base, 'clone', '-q', origin, clone);
  git(clone, 'notes', 'add', '-m', 'a note');
  put(clone, { 'a.txt': 'stashed\n' });
  git(clone, 'stash');
  git(clone, 'pack-refs', '--all');
  const lines = ['three', 'origin/main', 'origin/main', 'a note', ''];
  expect((await linesOf(clone)).filter((line) => line !== '')).toEqual(lines.filter(Boolean));
  expect(readdirSync(join(clone, '.git', 'refs'))).not.toContain('runner');
});
