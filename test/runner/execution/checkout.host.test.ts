/** What actions/checkout leaves for what it is asked for, as git commands of later steps see it. */
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { StartRequest } from '../../../src/runner/model/ports.ts';
import type { SandboxStrategy } from '../../../src/runner/model/run.ts';
import { byLength, inShort } from '../../support/test-length.ts';
import { commitAll, git, put } from '../support/git-project.ts';
import { type Bench, createBench, textOf } from '../support/scheduler-bench.ts';

let base = '';
let project = '';
const benches: Bench[] = [];
const worktree = { strategy: 'worktree' } as const;

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'checkout-')));
  project = join(base, 'project');
  git(base, 'init', '-q', '-b', 'main', project);
  put(project, { '.gitignore': '.runner\n', 'a.txt': 'one\n' });
  commitAll(project, 'one');
  git(project, 'tag', '-a', 'v1', '-m', 'v1');
  git(project, 'branch', 'side');
  put(project, { 'a.txt': 'two\n' });
  commitAll(project, 'two');
  put(project, { 'a.txt': 'three\n' });
});
afterEach(async () => {
  await Promise.all(benches.splice(0).map((bench) => bench.stop()));
  vi.unstubAllEnvs();
  rmSync(base, { recursive: true, force: true });
});

/** Runs the steps, the last of which is a script; its lines, or the log of a run that failed. */
async function linesOf(
  steps: readonly string[],
  script: string,
  sandbox: StartRequest['sandbox'] = worktree,
  dir = project,
): Promise<{
  readonly lines: readonly string[];
  readonly log: string;
  readonly conclusion: string | undefined;
}> {
  const text = [
    'on: workflow_dispatch',
    'jobs:',
    '  j:',
    '    runs-on: x',
    '    steps:',
    ...steps.map((step) => `      - ${step}`),
    '      - run: |',
    ...script.split('\n').map((line) => `          ${line}`),
    '',
  ].join('\n');
  put(dir, { '.github/workflows/w.yml': text });
  if (sandbox?.strategy === 'worktree') commitAll(dir, 'a workflow');
  const nothing = (): Promise<void> => Promise.resolve();
  const bench = await createBench({
    project: { dir, write: nothing, workflow: nothing, [Symbol.asyncDispose]: nothing },
  });
  benches.push(bench);
  const { run } = await bench.service.start({ workflow: 'w', sandbox });
  const { conclusion } = await bench.events.completed(run.id);
  const log = await textOf(bench.service.logs(run.id, {}));
  const lines = bench.events.lines(run.id, 'j', steps.length + 1);
  await bench.stop();
  return { lines, log, conclusion };
}

const checkout = (given: string): string => `{ uses: actions/checkout@v4, with: { ${given} } }`;
const LOOK = [
  'git log --format=%s',
  'git branch --show-current',
  'git for-each-ref --format="%(refname)"',
  'git describe --tags 2>/dev/null || echo no name',
  'git status --porcelain',
].join('\n');

describe('history', () => {
  inShort(test)('is the commit alone, on its branch, without tags', async () => {
    const { lines, log } = await linesOf(['{ uses: actions/checkout@v4 }'], LOOK);
    const refs = ['refs/heads/main', 'refs/remotes/origin/main'];
    expect(lines, log).toEqual(['a workflow', 'main', ...refs, 'no name']);
  });

  inShort(test)('of a depth', async () => {
    const { lines } = await linesOf([checkout('fetch-depth: 2')], LOOK);
    expect(lines.slice(0, 3)).toEqual(['a workflow', 'two', 'main']);
  });

  test('of a depth across merges, as git itself would cut it', async () => {
    git(project, 'add', '-A');
    git(project, 'commit', '-qm', 'three');
    git(project, 'checkout', '-q', 'side');
    put(project, { 'b.txt': 'b' });
    commitAll(project, 'aside');
    git(project, 'checkout', '-q', 'main');
    git(project, 'merge', '-q', '--no-edit', 'side');
    for (const depth of byLength([3], [2, 4, 40])) {
      const { lines } = await linesOf(
        [checkout(`fetch-depth: ${depth}`)],
        'git log --format=%H | sort\ngit fsck --no-dangling',
      );
      const twin = join(base, `twin-${depth}`);
      git(base, 'clone', '-q', `--depth=${depth}`, `file://${project}`, twin);
      const expected = git(twin, 'log', '--format=%H').split('\n').toSorted();
      expect(lines, `depth ${depth}`).toEqual(expected);
    }
  });

  inShort(test)('is all of it, with every branch and tag, for 0', async () => {
    const { lines } = await linesOf([checkout('fetch-depth: 0')], LOOK);
    expect(lines).toEqual([
      'a workflow',
      'two',
      'one',
      'main',
      'refs/heads/main',
      'refs/remotes/origin/main',
      'refs/remotes/origin/side',
      'refs/tags/v1',
      expect.stringMatching(/^v1-2-g/),
    ]);
  });

  inShort(test)('has tags where they are asked for', async () => {
    const { lines } = await linesOf([checkout('fetch-tags: true')], LOOK);
    expect(lines).toContain('refs/tags/v1');
    expect(lines).not.toContain('one');
  });

  inShort(test)('that the project does not have is a failure', async () => {
    commitAll(project, 'three');
    const shallow = join(base, 'shallow');
    git(base, 'clone', '-q', '--depth=2', `file://${project}`, shallow);
    put(shallow, { '.gitignore': '.runner\n' });
    for (const depth of [0, 5]) {
      const ran = await linesOf([checkout(`fetch-depth: ${depth}`)], 'true', worktree, shallow);
      expect(ran.conclusion).toBe('failure');
      expect(ran.log).toContain('git fetch --unshallow');
    }
    const { lines } = await linesOf(['{ uses: actions/checkout@v4 }'], LOOK, worktree, shallow);
    expect(lines[0]).toBe('a workflow');
  });
});

describe('another ref, another folder', () => {
  const refs: readonly (readonly [string, readonly [string, string]])[] = [
    ['ref: side', ['one', 'side']],
    ['ref: v1', ['one', '']],
    ['ref: refs/heads/side', ['one', 'side']],
    ['ref: refs/tags/v1', ['one', '']],
  ];
  test.each(byLength(refs.slice(0, 2), refs.slice(2)))('%s', async (given, [content, branch]) => {
    const { lines, log } = await linesOf(
      [checkout(given)],
      'cat a.txt\necho "$(git branch --show-current)"\ngit log --oneline | wc -l\ngit status --porcelain',
    );
    expect(lines, log).toEqual([content, branch, '1']);
  });

  inShort(test).each(['worktree', 'copy'] as const)(
    'with a path alone the rest is empty: %s',
    async (strategy) => {
      const { lines, log } = await linesOf(
        [checkout('path: app'), checkout('path: old, ref: side')],
        'ls -A\ncat app/a.txt old/a.txt\ngit -C app status --porcelain | grep -v workflows || true',
        { strategy },
      );
      // A copy is the files as they are.
      const changed = strategy === 'copy' ? [' M a.txt', '?? .github/'] : [];
      expect(lines, log).toEqual(['app', 'old', 'three', 'one', ...changed]);
    },
  );

  inShort(test)(
    'a second checkout takes away what was made since, unless it is told not to',
    async () => {
      const steps = ['{ uses: actions/checkout@v4 }', '{ run: echo x > made; echo y > a.txt }'];
      const clean = await linesOf([...steps, '{ uses: actions/checkout@v4 }'], 'ls; cat a.txt');
      expect(clean.lines).toEqual(['a.txt', 'three']);
      const kept = await linesOf([...steps, checkout('clean: false')], 'ls; cat a.txt');
      expect(kept.lines).toEqual(['a.txt', 'made', 'y']);
    },
  );

  test('what is no number or flag is a failure', async () => {
    const wrong = ['fetch-depth: deep', 'submodules: some', 'fetch-tags: maybe', 'lfs: 3'];
    for (const given of byLength(wrong.slice(0, 2), wrong.slice(2))) {
      const ran = await linesOf([checkout(given)], 'true');
      expect(ran.conclusion, given).toBe('failure');
      expect(ran.log).toContain(given.split(':')[0]);
    }
  });

  inShort(test)('the project itself stays as it is', async () => {
    const before = git(project, 'rev-parse', 'HEAD');
    const { lines } = await linesOf(
      ['{ uses: actions/checkout@v4 }'],
      'pwd; git log --oneline | wc -l',
      {
        strategy: 'none',
      },
    );
    expect(lines).toEqual([project, '2']);
    expect(git(project, 'rev-parse', 'HEAD')).toBe(before);
    expect(git(project, 'for-each-ref', 'refs/heads/side')).not.toBe('');
  });
});

describe('submodules', () => {
  beforeEach(() => {
    vi.stubEnv('GIT_CONFIG_COUNT', '1');
    vi.stubEnv('GIT_CONFIG_KEY_0', 'protocol.file.allow');
    vi.stubEnv('GIT_CONFIG_VALUE_0', 'always');
    const [inner, outer] = [join(base, 'inner'), join(base, 'outer')];
    for (const dir of [inner, outer]) git(base, 'init', '-q', '-b', 'main', dir);
    put(inner, { 'deep.txt': 'deep\n' });
    commitAll(inner, 'inner');
    put(outer, { 'lib.txt': 'lib\n' });
    git(outer, 'submodule', '--quiet', 'add', inner, 'in');
    commitAll(outer, 'outer');
    git(project, 'submodule', '--quiet', 'add', outer, 'lib');
  });

  const FIND = 'find lib -name "*.txt" | sort\ngit submodule status | cut -c1';

  const strategies = ['worktree', 'copy'] as const satisfies readonly SandboxStrategy[];
  test.each(byLength(strategies.slice(0, 1), strategies.slice(1)))(
    'are there only where they are asked for: %s',
    async (strategy) => {
      git(project, 'submodule', '--quiet', 'update', '--init', '--recursive');
      commitAll(project, 'with a submodule');
      put(project, { 'dirty.txt': '' });
      const without = await linesOf(['{ uses: actions/checkout@v4 }'], FIND, { strategy });
      expect(without.lines, without.log).toEqual(['-']);
      const direct = await linesOf([checkout('submodules: true')], FIND, { strategy });
      expect(direct.lines, direct.log).toEqual(['lib/lib.txt', ' ']);
      const all = await linesOf(
        [checkout('submodules: recursive')],
        `${FIND}\ngit -C lib/in log --format=%s\ngit -C lib status --porcelain`,
        { strategy },
      );
      expect(all.lines, all.log).toEqual(['lib/in/deep.txt', 'lib/lib.txt', ' ', 'inner']);
    },
  );

  inShort(test)('that the project does not have are a failure', async () => {
    commitAll(project, 'with a submodule');
    const clone = join(base, 'clone');
    git(base, 'clone', '-q', project, clone);
    put(clone, { '.gitignore': '.runner\n' });
    const ran = await linesOf([checkout('submodules: true')], 'true', worktree, clone);
    expect(ran.conclusion).toBe('failure');
    expect(ran.log).toContain("does not have 'lib'");
  });
});

inShort(describe)('LFS', () => {
  const POINTER = 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n';

  /** Stands in for git-lfs, which few machines have: it obeys the same variable. */
  beforeEach(() => {
    put(base, {
      'smudge.sh':
        '#!/bin/sh\nif [ -n "$GIT_LFS_SKIP_SMUDGE" ]; then cat; else cat >/dev/null; echo whole; fi\n',
      'clean.sh': `#!/bin/sh\ncat >/dev/null; printf '${POINTER.replaceAll('\n', String.raw`\n`)}'\n`,
    });
    git(project, 'config', 'filter.lfs.smudge', `sh ${join(base, 'smudge.sh')}`);
    git(project, 'config', 'filter.lfs.clean', `sh ${join(base, 'clean.sh')}`);
    put(project, { '.gitattributes': '*.bin filter=lfs\n', 'x.bin': 'whole\n' });
  });

  test('leaves pointers unless the files are asked for', async () => {
    const without = await linesOf(
      ['{ uses: actions/checkout@v4 }'],
      'head -1 x.bin; git status --porcelain',
    );
    expect(without.lines, without.log).toEqual([POINTER.split('\n')[0]]);
    const whole = await linesOf([checkout('lfs: true')], 'cat x.bin; git status --porcelain');
    expect(whole.lines, whole.log).toEqual(['whole']);
    expect(readFileSync(join(project, 'x.bin'), 'utf8')).toBe('whole\n');
  });

  test('fails where they cannot be had', async () => {
    git(project, 'config', 'filter.lfs.smudge', 'cat');
    const ran = await linesOf([checkout('lfs: true')], 'true');
    expect(ran.conclusion).toBe('failure');
    expect(ran.log).toContain("'x.bin' is not in the project's LFS store");
  });
});

test('the log says when the files are a copy, and how they differ from the commit', async () => {
  const own = checkout('fetch-depth: 1');
  const head = git(project, 'rev-parse', 'HEAD');
  const end = `not those of commit ${head}`;
  // a.txt and .github, which is new.
  const guessed = await linesOf([own], 'cat a.txt', {});
  expect(guessed.log).toContain(
    `The files are a copy of the project with 2 changed or untracked files and folders, ${end}`,
  );
  git(project, 'mv', 'a.txt', 'b c.txt');
  put(project, { 'new.txt': '' });
  const renamed = await linesOf([own], 'cat "b c.txt"', {});
  expect(renamed.log.match(/are a copy of the project with 3 changed/g)).toHaveLength(1);
  const asked = await linesOf([own], 'true', { strategy: 'copy' });
  expect(asked.log).toContain(`a copy of the project as it was when the run began, with what is`);
  expect(asked.log).toContain(end);
  const committed = await linesOf([own], 'true');
  expect(committed.log).not.toContain('a copy of the project');
});
