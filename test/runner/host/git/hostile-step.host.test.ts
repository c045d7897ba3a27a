/**
 * What a step does to git, and what of it the user's repository sees. Real runs: scheduler, sandboxes and
 * processes are the runner's own.
 */
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { StartRequest } from '../../../../src/runner/model/ports.ts';
import type { WorkflowRun } from '../../../../src/runner/model/run.ts';
import { commitAll, fingerprint, git, put, scriptWorkflow } from '../../support/git-project.ts';
import { createBench, textOf, type Bench } from '../../support/scheduler-bench.ts';

let base = '';
let home = '';
let project = '';
let far = '';
const benches: Bench[] = [];

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'hostile-step-')));
  [home, project, far] = [join(base, 'home'), join(base, 'project'), join(base, 'far.git')];
  put(home, { '.gitconfig': '[user]\n\tname = the user\n[init]\n\tdefaultBranch = main\n' });
  vi.stubEnv('HOME', home);
  vi.stubEnv('XDG_CONFIG_HOME', undefined);
  vi.stubEnv('GIT_CONFIG_NOSYSTEM', '1');
  git(base, 'init', '-q', '--bare', '-b', 'main', far);
  git(base, 'init', '-q', '-b', 'main', project);
  put(project, { '.gitignore': '.runner\n', 'a.txt': 'one\n' });
  git(project, 'remote', 'add', 'origin', far);
});
afterEach(async () => {
  await Promise.all(benches.splice(0).map((bench) => bench.stop()));
  vi.unstubAllEnvs();
  rmSync(base, { recursive: true, force: true });
});

async function benchOf(
  script: string,
  overrides: NonNullable<Parameters<typeof createBench>[0]>['overrides'] = {},
): Promise<Bench> {
  put(project, { '.github/workflows/w.yml': scriptWorkflow(script) });
  commitAll(project, 'a workflow');
  git(project, 'push', '-q', '-u', 'origin', 'main');
  git(project, 'branch', 'other');
  git(project, 'tag', '-a', 'v1', '-m', 'v1');
  put(project, { 'a.txt': 'stashed\n' });
  git(project, 'stash');
  const bench = await createBench({
    project: {
      dir: project,
      write: () => Promise.resolve(),
      workflow: () => Promise.resolve(),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    },
    overrides,
  });
  benches.push(bench);
  return bench;
}

async function runIt(
  bench: Bench,
  sandbox: StartRequest['sandbox'] = {},
): Promise<{ readonly run: WorkflowRun; readonly log: string }> {
  const started = await bench.service.start({ workflow: 'w', sandbox });
  const run = await bench.events.completed(started.run.id);
  await bench.stop();
  return { run, log: await textOf(bench.service.logs(run.id, {})) };
}

/** Each is tried; that one fails keeps no other from being tried. */
const HOSTILE: readonly string[] = [
  'git config core.hooksPath /tmp/evil',
  'git config alias.st "!touch evil"',
  'git config user.name evil',
  'git config core.sshCommand "touch evil"',
  'git config core.fsmonitor "touch evil"',
  'git config --worktree core.pager evil',
  'git config --global user.name evil',
  'git config --global credential.helper "!touch evil"',
  'for hook in post-checkout pre-commit reference-transaction; do printf "#!/bin/sh\\ntouch evil\\n" > "$(git rev-parse --git-path hooks)/$hook"; chmod +x "$(git rev-parse --git-path hooks)/$hook"; done',
  'git remote set-url origin https://evil.example/x.git',
  'git remote add evil https://evil.example/y.git',
  'git update-ref -d refs/heads/main',
  'git update-ref refs/heads/other HEAD~0',
  'git branch -D other',
  'git branch -f main HEAD',
  'git branch evil',
  'git tag -d v1',
  'git tag evil',
  'git stash drop',
  'echo changed >> a.txt; git stash',
  'git reflog expire --expire=now --all',
  'git gc -q --prune=now',
  'git repack -adq',
  'git pack-refs --all',
  'git worktree prune --expire=now',
  'git worktree add -q --detach ../evil-tree',
  'echo evil >> "$(git rev-parse --git-path info/exclude)"',
  'echo "* text eol=crlf" >> "$(git rev-parse --git-path info/attributes)"',
  'git sparse-checkout set nowhere',
  'git submodule add -q ./ evil-submodule',
  'git maintenance register',
  'git notes add -m evil',
  'git replace -f HEAD "$(git commit-tree -m evil HEAD^{tree})"',
  'git rm -q --cached a.txt',
  'git commit -q --allow-empty -m evil',
  'git fetch -q --prune origin',
];

describe.each(['worktree', 'copy'] as const)('in a %s', (strategy) => {
  test('nothing of the project changes, nor of the user', async () => {
    const bench = await benchOf(HOSTILE.map((line) => `( ${line} ) || true`).join('\n'));
    const before = fingerprint(join(project, '.git'));
    const stash = git(project, 'stash', 'list');
    const user = readFileSync(join(home, '.gitconfig'), 'utf8');
    const { run, log } = await runIt(bench, { strategy });
    expect(run.conclusion, log).toBe('success');
    expect(fingerprint(join(project, '.git'))).toEqual(before);
    expect(readFileSync(join(home, '.gitconfig'), 'utf8')).toBe(user);
    expect(git(project, 'stash', 'list')).toBe(stash);
    expect(git(project, 'fsck', '--strict')).toBe('');
    expect(existsSync(join(project, 'evil'))).toBe(false);
    expect(bench.problems).toEqual([]);
  });
});

test('the project itself is what a run without sandbox changes', async () => {
  const bench = await benchOf('git config user.name changed');
  const { run } = await runIt(bench, { strategy: 'none' });
  expect(run.conclusion).toBe('success');
  expect(git(project, 'config', 'user.name')).toBe('changed');
});

test('what git settings of one step do, later steps of the job see, and no other job', async () => {
  const bench = await benchOf('true');
  put(project, {
    '.github/workflows/w.yml': `
on: workflow_dispatch
jobs:
  one:
    runs-on: ubuntu-latest
    steps:
      - run: git config --global alias.hi '!echo hello from the job'
      - run: git hi; echo "user $(git config user.name)"
  two:
    needs: one
    runs-on: ubuntu-latest
    steps: [{ run: 'git hi || echo "no alias"; echo "user $(git config user.name)"' }]
`,
  });
  const { run, log } = await runIt(bench);
  expect(run.conclusion, log).toBe('success');
  expect(bench.events.lines(run.id, 'one', 2)).toEqual(['hello from the job', 'user the user']);
  expect(bench.events.lines(run.id, 'two', 1).slice(-2)).toEqual(['no alias', 'user the user']);
});

test('credentials, hooks, aliases and people of the repository do not reach a step', async () => {
  const bench = await benchOf(
    [
      'git config --list --show-origin | grep "file:.git/config" || true',
      'ls .git/hooks',
      'git remote get-url origin',
    ].join('\n'),
  );
  const secrets: Readonly<Record<string, string>> = {
    'remote.origin.url': 'https://someone:s3cret-1@host.example/o/r.git',
    'remote.up.url': 'ssh://git:s3cret-2@host.example/o/r.git',
    'http.extraheader': 'Authorization: s3cret-3',
    'credential.helper': '!echo s3cret-4',
    'url.https://x:s3cret-5@host.example/.insteadOf': 'gh:',
    'alias.x': '!echo s3cret-6',
    'user.email': 's3cret-7@example.com',
    'core.sshCommand': 'ssh -i s3cret-8',
    'include.path': 's3cret-9',
    'core.hooksPath': 's3cret-10',
    'lfs.url': 'https://u:s3cret-11@host.example/lfs',
    'core.pager': 's3cret-12',
    'http.https://host.example/.proxy': 'http://u:s3cret-13@proxy.example',
    'filter.other.smudge': 's3cret-14',
    'remote.up.pushurl': 'https://u:s3cret-15@host.example/z.git',
    'lfs.https://u:s3cret-16@host.example/.access': 'basic',
    'branch.main.remote': 'https://u:s3cret-17@host.example/z.git',
  };
  for (const [name, value] of Object.entries(secrets)) git(project, 'config', name, value);
  put(project, { '.git/hooks/post-checkout': '#!/bin/sh\ntouch s3cret-hook\n' });
  const { run, log } = await runIt(bench, { strategy: 'worktree' });
  expect(run.conclusion, log).toBe('success');
  expect(log).not.toContain('s3cret');
  expect(log).toContain('\nhttps://host.example/o/r.git\n');
  expect(log).toContain('remote.up.url=ssh://git@host.example/o/r.git');
  expect(log).toContain('lfs.url=https://host.example/lfs');
});

describe('what a step pushes', () => {
  const commit = 'git commit -q --allow-empty -m "made by a step"';

  test.each([
    ['git push origin HEAD:main', { 'heads/main': 'made by a step' }],
    ['git push --force origin HEAD:refs/heads/main', { 'heads/main': 'made by a step' }],
    ['git push --force-with-lease origin HEAD:main', { 'heads/main': 'made by a step' }],
    [
      'git switch -q -C main; git branch -q -u origin/main; git push',
      { 'heads/main': 'made by a step' },
    ],
    ['git tag mine; git push --tags', { 'tags/mine': 'made by a step' }],
    ['git push -q origin HEAD:refs/heads/a/b/c v1', { 'heads/a/b/c': 'made by a step' }],
    ['git tag -f v1 && git push -f origin v1', { 'tags/v1': 'made by a step' }],
    [
      'git push "$(git remote get-url origin)" HEAD:refs/heads/by-address',
      { 'heads/by-address': 'made by a step' },
    ],
    ['git push origin :main', {}],
  ])('%s', async (command, expected) => {
    const bench = await benchOf(`${commit}\n${command}`);
    const before = fingerprint(join(project, '.git'));
    const farBefore = fingerprint(far);
    const { run, log } = await runIt(bench, { strategy: 'worktree' });
    expect(run.conclusion, log).toBe('success');
    const prefix = `refs/runner/${run.id}/`;
    const format = `--format=%(refname:lstrip=3)=%(if)%(*subject)%(then)%(*subject)%(else)%(subject)%(end)`;
    const pushed = git(project, 'for-each-ref', format, prefix).split('\n').filter(Boolean);
    expect(pushed).toEqual(Object.entries(expected).map(([name, text]) => `${name}=${text}`));
    const after = Object.entries(fingerprint(join(project, '.git')));
    expect(Object.fromEntries(after.filter(([path]) => !path.startsWith('refs/runner')))).toEqual(
      before,
    );
    expect(fingerprint(far)).toEqual(farBefore);
    expect(git(project, 'fsck')).toBe('');
    const said = bench.service.annotations(run.id).map(({ message }) => message);
    if (pushed.length > 0) expect(said.join()).toContain(`Pushed to ${prefix}`);
    // It stays as long as the run does.
    await bench.service.remove(run.id).catch(() => undefined);
  });

  test('is refused as the remote would refuse it, and by hooks of nobody', async () => {
    const bench = await benchOf(
      'git reset -q --hard HEAD~1\n' + commit + '\ngit push origin HEAD:main && exit 1 || true',
    );
    put(project, { 'a.txt': 'two\n' });
    commitAll(project, 'second');
    git(project, 'push', '-q', 'origin', 'main');
    for (const hook of ['reference-transaction', 'post-receive', 'update', 'pre-receive']) {
      put(project, { [`.git/hooks/${hook}`]: `#!/bin/sh\ntouch ${base}/hooked\nexit 1\n` });
      git(project, 'update-index', '--refresh');
    }
    const { run, log } = await runIt(bench, { strategy: 'worktree' });
    expect(run.conclusion, log).toBe('success');
    expect(log).toContain('rejected');
    expect(existsSync(join(base, 'hooked'))).toBe(false);
  });

  test.each([
    'https://host.invalid/o/r.git',
    'https://token@host.invalid/o/r.git',
    'ssh://git@host.invalid/o/r.git',
    'git@host.invalid:o/r.git',
  ])('does not go to %s', async (address) => {
    const bench = await benchOf(`git push ${address} HEAD:main`);
    const { run, log } = await runIt(bench, { strategy: 'worktree' });
    expect(run.conclusion).toBe('failure');
    expect(log).toContain('RUNNER_ALLOW_PUSH');
  });

  test.each([
    ['for all runs', { allowPush: true }, {}],
    ['for one', {}, { allowPush: true }],
  ])('goes to the remote where that is allowed: %s', async (_, overrides, sandbox) => {
    const bench = await benchOf(`${commit}\ngit push origin HEAD:main`, overrides);
    const { run, log } = await runIt(bench, { strategy: 'worktree', ...sandbox });
    expect(run.conclusion, log).toBe('success');
    expect(git(far, 'log', '-1', '--format=%s', 'main')).toBe('made by a step');
    expect(git(project, 'for-each-ref', 'refs/runner')).toBe('');
  });

  test('goes with the run', async () => {
    const bench = await benchOf(`${commit}\ngit push origin HEAD:main`);
    const before = fingerprint(join(project, '.git'));
    const { run } = await bench.service.start({ workflow: 'w' });
    await bench.events.completed(run.id);
    expect(git(project, 'for-each-ref', 'refs/runner')).not.toBe('');
    git(project, 'pack-refs', '--all');
    git(project, 'update-ref', 'refs/heads/mine', 'HEAD');
    await expect.poll(() => bench.service.remove(run.id).then(() => true)).toBe(true);
    expect(git(project, 'for-each-ref', 'refs/runner')).toBe('');
    expect(existsSync(join(project, '.git', 'refs', 'runner'))).toBe(false);
    expect(Object.keys(before)).toContain('config');
    expect(git(project, 'rev-parse', 'mine')).toBe(git(project, 'rev-parse', 'HEAD'));
  });
});

test('git gc --prune=now in the project harms no run, whatever was thrown away before', async () => {
  const go = join(base, 'go');
  const bench = await benchOf(
    [
      `until [ -e ${go} ]; do sleep 0.05; done`,
      'git log --format=%s',
      'git fsck --connectivity-only',
      'git log -1 --format=%s doomed',
      'git describe --tags --always',
      'git diff --stat HEAD~1 HEAD',
      'git commit -q --allow-empty -m more && git gc -q --prune=now && git log -1 --format=%s',
    ].join('\n'),
  );
  git(project, 'switch', '-q', '-c', 'doomed');
  put(project, { 'b.txt': 'doomed\n' });
  commitAll(project, 'on a branch that goes');
  git(project, 'switch', '-q', 'main');
  put(project, { 'a.txt': 'amended away\n' });
  const lost = commitAll(project, 'amended away');
  const { run } = await bench.service.start({ workflow: 'w', sandbox: { strategy: 'worktree' } });
  await bench.events.when(({ type }) => type === 'step.started');
  git(project, 'commit', '-q', '--amend', '-m', 'the new one');
  git(project, 'branch', '-q', '-D', 'doomed');
  git(project, 'stash', 'clear');
  git(project, 'reflog', 'expire', '--expire=now', '--all');
  git(project, 'gc', '-q', '--prune=now');
  writeFileSync(go, '');
  const ended = await bench.events.completed(run.id);
  const log = await textOf(bench.service.logs(run.id, {}));
  expect(ended.conclusion, log).toBe('success');
  expect(log).toContain('amended away\na workflow\n');
  expect(log).toContain('\nmore\n');
  await bench.stop();
  // Afterwards nothing is held any more.
  expect(git(project, 'for-each-ref', 'refs/runner')).toBe('');
  git(project, 'gc', '-q', '--prune=now');
  expect(() => git(project, 'cat-file', '-e', lost)).toThrow('failed');
});

test('a run that waits in the queue keeps its commit, too', async () => {
  const go = join(base, 'go');
  const bench = await benchOf(`until [ -e ${go} ]; do sleep 0.05; done\ngit log -1 --format=%s`);
  const first = await bench.service.start({ workflow: 'w' });
  await bench.events.when(({ type }) => type === 'step.started');
  const limited = bench.service.counts();
  expect(limited.inProgress).toBe(1);
  put(project, { 'a.txt': 'amended away\n' });
  commitAll(project, 'amended away');
  const waiting = await Promise.all(
    Array.from({ length: 5 }, () => bench.service.start({ workflow: 'w' })),
  );
  git(project, 'commit', '-q', '--amend', '-m', 'the new one');
  git(project, 'reflog', 'expire', '--expire=now', '--all');
  git(project, 'gc', '-q', '--prune=now');
  writeFileSync(go, '');
  for (const { run } of waiting) {
    const ended = await bench.events.completed(run.id);
    expect(ended.conclusion, bench.errors(run.id)[0]?.message).toBe('success');
  }
  await bench.events.completed(first.run.id);
  await bench.stop();
  expect(git(project, 'for-each-ref', 'refs/runner')).toBe('');
});
