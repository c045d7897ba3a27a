/**
 * What one job leaves in its folder, and what of it other jobs see. Real runs: scheduler, sandboxes, git and
 * processes are the runner's own.
 */
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StartRequest } from '../../../src/runner/model/ports.ts';
import type { WorkflowRun } from '../../../src/runner/model/run.ts';
import { byLength, inLong, inShort } from '../../support/test-length.ts';
import { commitAll, git, put } from '../support/git-project.ts';
import { type Bench, createBench, textOf } from '../support/scheduler-bench.ts';

type Overrides = NonNullable<Parameters<typeof createBench>[0]>['overrides'];

let base = '';
let project = '';
const benches: Bench[] = [];

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'workspaces-')));
  project = join(base, 'project');
  git(base, 'init', '-q', '-b', 'main', project);
  put(project, { '.gitignore': '.runner\nnode_modules\n', 'a.txt': 'one\n', 'src/b.txt': 'two\n' });
});
afterEach(async () => {
  await Promise.all(benches.splice(0).map((bench) => bench.stop()));
  rmSync(base, { recursive: true, force: true });
});

function jobsText(jobs: string): string {
  return `on: workflow_dispatch\njobs:\n${jobs}`;
}

async function benchOf(jobs: string, overrides: Overrides = {}, jobsAtOnce = 4): Promise<Bench> {
  put(project, { '.github/workflows/w.yml': jobsText(jobs) });
  commitAll(project, 'a workflow');
  const nothing = (): Promise<void> => Promise.resolve();
  const bench = await createBench({
    project: { dir: project, write: nothing, workflow: nothing, [Symbol.asyncDispose]: nothing },
    limits: { jobsInProgressMax: jobsAtOnce },
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
  return { run, log: await textOf(bench.service.logs(run.id, {})) };
}

const CHECKOUT = '{ uses: actions/checkout@v4 }';
const conclusions = (run: WorkflowRun): readonly (string | undefined)[] =>
  run.jobs.map(({ conclusion }) => conclusion);

/** Everything below a folder but git's own, with what tells two files of one name apart. */
function inodesBelow(dir: string): ReadonlyMap<string, number> {
  const names = readdirSync(dir, { recursive: true }).map(String);
  const own = names.filter((name) => !name.startsWith('.git/') && name !== '.git');
  return new Map(
    own
      .filter((name) => lstatSync(join(dir, name)).isFile())
      .map((name) => [name, statSync(join(dir, name)).ino]),
  );
}

describe.each(['worktree', 'copy'] as const)('in a %s', (strategy) => {
  // In a copy an artifact that was forgotten shows the same.
  const of = strategy === 'copy' ? inLong : inShort;

  test('legs that all make the same folder do not meet', { timeout: 180_000 }, async () => {
    const matrixJobs = Array.from({ length: byLength(8, 50) }, (_, index) => index + 1);
    const bench = await benchOf(
      `  t:
    runs-on: x
    strategy: { matrix: { n: [${matrixJobs.join(', ')}] } }
    steps:
      - ${CHECKOUT}
      - run: |
          mkdir build
          echo \${{ matrix.n }} > build/leg
          echo \${{ matrix.n }} >> a.txt
          test "$(cat build/leg a.txt)" = "$(printf '%s\\n' \${{ matrix.n }} one \${{ matrix.n }})"
          test "$(git status --porcelain)" = "$(printf ' M a.txt\\n?? build/')"
`,
      {},
      8,
    );
    const { run, log } = await runIt(bench, { strategy });
    expect(conclusions(run), log).toEqual(matrixJobs.map(() => 'success'));
    const paths = run.jobs.map(({ sandbox }) => sandbox?.path ?? '');
    expect(new Set(paths).size).toBe(matrixJobs.length);
    for (const [index, path] of paths.entries()) {
      expect(path).toBe(join(run.sandbox?.path ?? '', `t.${index + 1}`, basename(project)));
    }
    await bench.stop();
    expect(existsSync(run.sandbox?.path ?? base)).toBe(false);
    expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('one\n');
    expect(bench.problems).toEqual([]);
  });

  of(test)(
    'a later job sees nothing of an earlier one but artifacts, caches and outputs',
    async () => {
      const bench = await benchOf(`  first:
    runs-on: x
    outputs: { said: '\${{ steps.s.outputs.said }}' }
    steps:
      - ${CHECKOUT}
      - id: s
        run: |
          mkdir dist kept ../beside; echo x | tee dist/x kept/x new.txt ../beside/x "$RUNNER_TEMP/x"
          echo changed > a.txt; rm src/b.txt; echo said=hello >> "$GITHUB_OUTPUT"
          git config user.name me; git config user.email me@example.com
          git add -A; git commit -qm first; git branch left; git tag left; git stash list
      - { uses: actions/upload-artifact@v4, with: { name: dist, path: dist } }
      - { uses: actions/cache@v4, with: { path: kept, key: k } }
  second:
    needs: first
    runs-on: x
    steps:
      - ${CHECKOUT}
      - run: |
          test ! -e dist; test ! -e kept; test ! -e new.txt; test ! -e ../beside; test ! -e "$RUNNER_TEMP/x"
          test "$(cat a.txt src/b.txt)" = "$(printf 'one\\ntwo')"
          test -z "$(git status --porcelain)"; test -z "$(git branch --list left)"; test -z "$(git tag -l left)"
          test "$(git log -1 --format=%s)" = "a workflow"; test "$(git config user.name)" != me
      - { uses: actions/download-artifact@v4, with: { name: dist, path: dist } }
      - { uses: actions/cache@v4, with: { path: kept, key: k } }
      - run: test "$(cat dist/x kept/x)" = "$(printf 'x\\nx')" && test "\${{ needs.first.outputs.said }}" = hello
`);
      const { run, log } = await runIt(bench, { strategy });
      expect(conclusions(run), log).toEqual(['success', 'success']);
    },
  );

  inShort(test)('an upload-artifact that was forgotten is red', async () => {
    const bench = await benchOf(`  build:
    runs-on: x
    steps: [${CHECKOUT}, { run: 'mkdir dist; echo x > dist/x' }]
  deploy:
    needs: build
    runs-on: x
    steps: [${CHECKOUT}, { run: cat dist/x }]
`);
    const { run } = await runIt(bench, { strategy });
    expect(conclusions(run)).toEqual(['success', 'failure']);
  });

  inShort(test)(
    'all jobs begin with the state of the start, whatever becomes of the project',
    async () => {
      const gate = join(base, 'gate');
      const bench = await benchOf(`  first:
    runs-on: x
    steps: [{ run: 'until [ -e ${gate} ]; do sleep 0.05; done' }]
  second:
    needs: first
    runs-on: x
    steps: [${CHECKOUT}, { run: 'cat a.txt src/b.txt; git log --oneline | wc -l' }]
`);
      const started = await bench.service.start({ workflow: 'w', sandbox: { strategy } });
      await bench.events.when(({ type }) => type === 'step.started');
      put(project, { 'a.txt': 'later\n', 'c.txt': 'new\n' });
      rmSync(join(project, 'src'), { recursive: true });
      commitAll(project, 'later');
      git(project, 'gc', '-q', '--prune=now');
      put(base, { gate: '' });
      const run = await bench.events.completed(started.run.id);
      expect(conclusions(run)).toEqual(['success', 'success']);
      expect(bench.events.lines(run.id, 'second', 2)).toEqual(['one', 'two', '1']);
    },
  );
});

inShort(test)(
  'no file of a job is another name of one of the project or of another job',
  async () => {
    const bench = await benchOf(
      `  a: { runs-on: x, steps: [${CHECKOUT}] }
  b: { runs-on: x, steps: [${CHECKOUT}] }
  c: { runs-on: x, steps: [${CHECKOUT}] }
`,
      { keepWorkspaces: 'all' },
    );
    const { run } = await runIt(bench, { strategy: 'copy' });
    const folders = [project, ...run.jobs.map(({ sandbox }) => sandbox?.path ?? '')];
    const seen = new Set<number>();
    for (const dir of folders) {
      const inodes = inodesBelow(dir);
      expect(inodes.has('src/b.txt'), dir).toBe(true);
      for (const name of ['a.txt', 'src/b.txt']) {
        expect(seen, `${dir} ${name}`).not.toContain(inodes.get(name));
        seen.add(inodes.get(name) ?? 0);
      }
    }
  },
);

inShort(test)("packages of the project are not found from a job's folder", async () => {
  put(project, { 'node_modules/left/index.js': 'module.exports = 1;\n' });
  const bench = await benchOf(`  j:
    runs-on: x
    steps:
      - ${CHECKOUT}
      - run: node -e 'try { require("left"); process.exit(1) } catch (error) { console.log(error.code) }'
`);
  const { run, log } = await runIt(bench);
  expect(run.conclusion, log).toBe('success');
  expect(bench.events.lines(run.id, 'j', 2)).toEqual(['MODULE_NOT_FOUND']);
});

test('git sees nothing changed in a job, also by commands that look at no content', async () => {
  // Long ago, so that no file is too young for its time to tell.
  const past = new Date(Date.now() - 100_000);
  for (const name of ['a.txt', 'src/b.txt']) utimesSync(join(project, name), past, past);
  const look = 'git diff-index --quiet HEAD && git diff-files --quiet && git status --porcelain';
  const bench = await benchOf(`  j:
    runs-on: x
    strategy: { matrix: { n: [1, 2] } }
    steps: [${CHECKOUT}, { run: '${look}' }, { run: 'echo 0ne > a.txt; git status --porcelain' }]
`);
  for (const strategy of byLength(['worktree'] as const, ['copy'] as const)) {
    git(project, 'update-index', '--refresh');
    const { run, log } = await runIt(bench, { strategy });
    expect(run.conclusion, log).toBe('success');
    for (const job of ['j:1', 'j:2']) {
      expect(bench.events.lines(run.id, job, 2)).toEqual([]);
      expect(bench.events.lines(run.id, job, 3)).toEqual([' M a.txt']);
    }
  }
});

inShort(test)('absolute links into the project lead into the folder of each job', async () => {
  symlinkSync(join(project, 'a.txt'), join(project, 'link'));
  const bench = await benchOf(`  j:
    runs-on: x
    strategy: { matrix: { n: [1, 2] } }
    steps: [{ run: 'echo \${{ matrix.n }} > link; cat a.txt; readlink link' }]
`);
  const { run } = await runIt(bench, { strategy: 'copy' });
  for (const [index, job] of run.jobs.entries()) {
    const path = join(job.sandbox?.path ?? '', 'a.txt');
    expect(bench.events.lines(run.id, job.id, 1)).toEqual([String(index + 1), path]);
  }
  expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('one\n');
});

describe('what stays', () => {
  const JOBS = `  good: { runs-on: x, steps: [{ run: echo good > left }] }
  bad: { runs-on: x, steps: [{ run: echo bad > left; exit 1 }] }
`;

  const kinds: readonly (readonly ['none' | 'failed' | 'all', readonly string[]])[] = [
    ['failed', ['bad']],
    ['none', []],
    ['all', ['bad', 'good']],
  ];
  test.each(byLength(kinds.slice(0, 1), kinds.slice(1)))(
    'of the jobs of a run: %s',
    async (keepWorkspaces, kept) => {
      const bench = await benchOf(JOBS, { keepWorkspaces });
      const { run } = await runIt(bench);
      await bench.service.shutdown();
      const dir = run.sandbox?.path ?? '';
      const folders = existsSync(dir)
        ? readdirSync(dir).filter((name) => !name.startsWith('.'))
        : [];
      expect(folders.toSorted()).toEqual(kept);
      for (const job of kept) {
        const path = run.jobs.find(({ id }) => id === job)?.sandbox?.path ?? '';
        expect(readFileSync(join(path, 'left'), 'utf8')).toBe(`${job}\n`);
      }
      await bench.stop();
      // The next start keeps them, and they go with their run.
      const next = await benchOf(JOBS, { keepWorkspaces });
      expect(existsSync(dir)).toBe(kept.length > 0);
      await next.service.remove(run.id);
      expect(existsSync(dir)).toBe(false);
      expect(next.problems).toEqual([]);
    },
  );

  inShort(test)('a folder that a step made a link of is not followed', async () => {
    const treasure = join(base, 'treasure');
    put(treasure, { 'coin.txt': 'gold\n' });
    const bench = await benchOf(`  j:
    runs-on: x
    steps:
      - run: |
          cd /; job="$(dirname "$GITHUB_WORKSPACE")"; run="$(dirname "$job")"
          rm -rf "$GITHUB_WORKSPACE"; ln -s ${treasure} "$GITHUB_WORKSPACE"
          ln -s ${treasure} "$run/other"; ln -s ${treasure} "$job/beside"
  whole:
    runs-on: x
    steps: [{ run: 'cd /; job="$(dirname "$GITHUB_WORKSPACE")"; rm -rf "$job"; ln -s ${treasure} "$job"' }]
`);
    const { run } = await runIt(bench);
    await bench.stop();
    expect(readFileSync(join(treasure, 'coin.txt'), 'utf8')).toBe('gold\n');
    expect(existsSync(dirname(run.sandbox?.path ?? '/nowhere'))).toBe(false);
  });
});

inShort(describe)('the paths of a job', () => {
  test('have no part that begins with a dot, and lie in no repository and not in the project', async () => {
    git(base, 'init', '-q');
    const bench = await benchOf(`  j:
    runs-on: x
    steps:
      - run: |
          for path in "$0" "$GITHUB_WORKSPACE" "$RUNNER_WORKSPACE" "$RUNNER_TEMP" "$RUNNER_TOOL_CACHE" "$GITHUB_EVENT_PATH" "$GIT_CONFIG_GLOBAL"; do
            case "$path" in */.* | ${project}/*) echo "wrong: $path"; exit 1 ;; /*) ;; *) exit 1 ;; esac
          done
          cd "$RUNNER_TEMP"; if git rev-parse --git-dir; then exit 1; fi
      - shell: node {0}
        run: |
          const parts = [__filename, process.cwd()].flatMap((path) => path.split('/'));
          process.exitCode = parts.some((part) => part.startsWith('.')) ? 1 : 0;
`);
    const { run, log } = await runIt(bench);
    expect([conclusions(run), log]).toEqual([['success'], expect.not.stringContaining('wrong')]);
  });

  test('what it puts beside its workspace can be uploaded and goes with it; the tool cache stays', async () => {
    const bench = await benchOf(`  j:
    runs-on: x
    steps:
      - run: |
          echo report > "$RUNNER_TEMP/report.txt"
          mkdir -p "$RUNNER_TOOL_CACHE/t"; echo again >> "$RUNNER_TOOL_CACHE/t/runs"
          rm -rf "$RUNNER_WORKSPACE"/*; mkdir "$GITHUB_WORKSPACE"
      - uses: actions/upload-artifact@v4
        with: { name: report, path: '\${{ runner.temp }}/report.txt', if-no-files-found: error }
      - run: test -s "$GITHUB_EVENT_PATH"; cat "$RUNNER_TOOL_CACHE/t/runs"
`);
    const first = await runIt(bench);
    const second = await runIt(bench);
    for (const { run } of [first, second]) {
      expect(conclusions(run)).toEqual(['success']);
      expect(bench.service.artifacts(run.id).map(({ name }) => name)).toEqual(['report']);
    }
    expect(second.log).toContain('again\nagain');
    await bench.service.shutdown();
    expect(existsSync(second.run.sandbox?.path ?? base)).toBe(false);
    expect(readdirSync(join(project, '.runner', 'jobs'))).toEqual([]);
  });
});

inShort(describe)('a job without actions/checkout', () => {
  const JOBS = `  bare: { runs-on: x, steps: [{ run: 'ls -A | grep -v "^.git$" || true' }] }
  with: { runs-on: x, steps: [${CHECKOUT}, { run: cat a.txt }] }
  late: { runs-on: x, steps: [{ run: 'ls -A; echo x > made' }, ${CHECKOUT}, { run: 'ls; git status --short' }] }
`;

  test('has the files of the run, with a warning', async () => {
    const bench = await benchOf(JOBS);
    const { run, log } = await runIt(bench);
    expect(run.conclusion, log).toBe('success');
    expect(bench.events.lines(run.id, 'bare', 1)).toContain('a.txt');
    const warned = bench.service.annotations(run.id).map(({ message }) => message.split(':')[0]);
    expect(warned).toEqual(['No actions/checkout in bare']);
    // What was made before it is gone, as on GitHub.
    expect(bench.events.lines(run.id, 'late', 3)).toEqual(['a.txt', 'src']);
  });

  test('begins empty where that is asked for, and so do the others until they check out', async () => {
    const bench = await benchOf(JOBS, { strictCheckout: true });
    const { run, log } = await runIt(bench);
    expect(run.conclusion, log).toBe('success');
    expect(bench.events.lines(run.id, 'bare', 1)).toEqual([]);
    expect(bench.events.lines(run.id, 'with', 2)).toEqual(['one']);
    expect(bench.events.lines(run.id, 'late', 1)).toEqual([]);
    expect(bench.events.lines(run.id, 'late', 3)).toEqual(['a.txt', 'src']);
    expect(bench.service.annotations(run.id)).toEqual([]);
  });
});

inShort(test)(
  'checkout follows no link that a step put in place of its folder or its repository',
  async () => {
    const treasure = join(base, 'treasure');
    git(base, 'init', '-q', '-b', 'main', treasure);
    put(treasure, { 'coin.txt': 'gold\n' });
    commitAll(treasure, 'gold');
    const refs = git(treasure, 'for-each-ref');
    const bench = await benchOf(`  folder:
    runs-on: x
    steps:
      - run: cd /; rm -rf "$GITHUB_WORKSPACE"; ln -s ${treasure} "$GITHUB_WORKSPACE"
      - ${CHECKOUT}
      - run: cat a.txt; test ! -e coin.txt; test ! -L "$GITHUB_WORKSPACE"
  repository:
    runs-on: x
    steps:
      - run: rm -rf .git; ln -s ${treasure}/.git .git
      - { uses: actions/checkout@v4, with: { clean: false } }
      - run: test ! -L .git; git log -1 --format=%s
`);
    const { run, log } = await runIt(bench);
    expect(conclusions(run), log).toEqual(['success', 'success']);
    expect(bench.events.lines(run.id, 'repository', 3)).toEqual(['a workflow']);
    expect(readdirSync(treasure).toSorted()).toEqual(['.git', 'coin.txt']);
    expect(git(treasure, 'for-each-ref')).toBe(refs);
  },
);

inShort(test)('without git, jobs are apart as well', async () => {
  rmSync(join(project, '.git'), { recursive: true });
  put(project, {
    '.github/workflows/w.yml': jobsText(`  j:
    runs-on: x
    strategy: { matrix: { n: [1, 2, 3] } }
    steps: [${CHECKOUT}, { run: 'mkdir build; cat a.txt; git rev-parse --show-toplevel || true' }]
`),
  });
  // A repository around the folder of workspaces must not be taken for theirs.
  git(base, 'init', '-q');
  const nothing = (): Promise<void> => Promise.resolve();
  const bench = await createBench({
    project: { dir: project, write: nothing, workflow: nothing, [Symbol.asyncDispose]: nothing },
  });
  benches.push(bench);
  const { run, log } = await runIt(bench);
  expect(conclusions(run), log).toEqual(['success', 'success', 'success']);
  expect(log).toContain('not a git repository');
});
