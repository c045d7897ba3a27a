/** The command and runs, with actions from a git repository. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDir, writeFiles } from '../../support/job-harness.ts';
import { callCli } from '../cli/cli-process.ts';

const WORKFLOW = `on: workflow_dispatch
jobs:
  one:
    runs-on: ubuntu-latest
    strategy: { matrix: { n: [1, 2, 3] } }
    steps: [{ uses: actions/checkout@v4 }, { uses: o/outer@v1 }]
  two: { runs-on: ubuntu-latest, steps: [{ uses: o/outer@v1 }] }
`;

type Run = {
  readonly id: string;
  readonly conclusion?: string;
  readonly actions?: readonly {
    readonly name: string;
    readonly source: string;
    readonly commit?: string;
  }[];
};

function git(dir: string, ...args: readonly string[]): string {
  const who = ['-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'init.defaultBranch=main'];
  return execFileSync('git', [...who, ...args], { cwd: dir, encoding: 'utf8' }).trim();
}

function repository(dir: string, files: Readonly<Record<string, string>>): string {
  mkdirSync(dir, { recursive: true });
  writeFiles(dir, files);
  git(dir, 'init', '--quiet');
  git(dir, 'add', '--all');
  git(dir, 'commit', '--quiet', '--message', 'x');
  git(dir, 'tag', 'v1');
  return git(dir, 'rev-parse', 'HEAD');
}

function composite(step: string): string {
  return `name: x\nruns: { using: composite, steps: [${step}] }\n`;
}

/** A workflow that is called, and says where it lies. */
function saysWhere(word: string): string {
  const parts = ['ref', 'sha', 'repository', 'file_path'];
  const texts = parts.map((part) => `\${{ job.workflow_${part} }}`);
  return `on: workflow_call\njobs: { c: { runs-on: x, steps: [{ run: "echo ${word} ${texts.join(' ')}" }] } }\n`;
}

test('before a run it is told once what is missing; fetched actions are recorded with it', async () => {
  const host = temporaryDir();
  const outer = repository(join(host, 'o/outer'), {
    'action.yml': composite('{ uses: o/inner@main }'),
  });
  const inner = repository(join(host, 'o/inner'), {
    'action.yml': composite('{ run: echo from inside, shell: bash }'),
  });
  const project = temporaryDir();
  writeFiles(project, { '.github/workflows/ci.yml': WORKFLOW });
  const env = {
    RUNNER_ACTIONS_URL: host,
    RUNNER_INSTALL_TOOLS: 'false',
    RUNNER_TOOLS_DIR: join(project, 'tools'),
  };
  const cli = (...args: readonly string[]) => callCli(project, args, env);
  const newest = async (): Promise<Run> => {
    const { stdout } = await cli('runs', '--json', '--limit', '1');
    return JSON.parse(stdout) as Run;
  };

  const listed = await cli('actions', 'list');
  expect(listed.code).toBe(1);
  expect(listed.stdout).toContain('✓ actions/checkout@v4  built-in');
  expect(listed.stdout).toContain('✗ o/outer@v1           missing');

  const failed = await cli('run', 'ci');
  expect(failed.code).toBe(1);
  expect(failed.stdout.split('Of 2 actions 1 are missing: o/outer@v1')).toHaveLength(2);
  expect((await newest()).actions).toEqual([
    { name: 'actions/checkout@v4', source: 'built-in' },
    { name: 'o/outer@v1', source: 'missing' },
  ]);
  expect(existsSync(join(project, '.runner/actions.lock'))).toBe(false);

  const fetched = await cli('actions', 'fetch');
  expect(fetched.code).toBe(0);
  expect(fetched.stdout).toContain(`✓ o/inner@main         fetched ${inner.slice(0, 12)}`);
  expect((await cli('run', 'ci')).code).toBe(0);
  const green = await newest();
  expect(green.actions).toEqual([
    { name: 'actions/checkout@v4', source: 'built-in' },
    { name: 'o/inner@main', source: 'fetched', commit: inner },
    { name: 'o/outer@v1', source: 'fetched', commit: outer },
  ]);
  // The lock is meant to be committed, the files are not.
  git(project, 'init', '--quiet');
  git(project, 'add', '--all');
  const staged = git(project, 'diff', '--cached', '--name-only').split('\n');
  expect(staged.filter((path) => path.startsWith('.runner/'))).toEqual(['.runner/actions.lock']);

  writeFileSync(
    join(project, '.github/workflows/ci.yml'),
    WORKFLOW.replaceAll('o/outer@v1', 'o/inner@main'),
  );
  const pruned = await cli('actions', 'prune');
  expect(pruned.stdout.trim()).toBe('Removed o/outer@v1');
  expect(readFileSync(join(project, '.runner/actions.lock'), 'utf8')).not.toContain('o/outer');
});

test('a run fetches what is missing when it is told to', async () => {
  const host = temporaryDir();
  const inner = repository(join(host, 'o/inner'), {
    'action.yml': composite('{ run: echo from inside, shell: bash }'),
    '.github/workflows/called.yml':
      'on: workflow_call\njobs: { c: { uses: ./.github/workflows/below.yml } }\n',
    '.github/workflows/below.yml': saysWhere('far'),
  });
  const project = temporaryDir();
  writeFiles(project, {
    '.github/workflows/ci.yml':
      'on: workflow_dispatch\njobs: { a: { runs-on: x, steps: [{ uses: ./local }] } }\n',
    'local/action.yml': composite('{ uses: o/inner@v1 }'),
    '.github/workflows/calls.yml':
      'on: workflow_dispatch\njobs: { a: { uses: o/inner/.github/workflows/called.yml@v1 }, b: { uses: ./.github/workflows/own.yml } }\n',
    '.github/workflows/own.yml': saysWhere('near'),
  });
  const env = {
    RUNNER_ACTIONS_URL: `file://${host}`,
    RUNNER_FETCH_ACTIONS: 'true',
    RUNNER_INSTALL_TOOLS: 'false',
    RUNNER_TOOLS_DIR: join(project, 'tools'),
  };
  const run = await callCli(project, ['run', 'ci'], env);
  expect(run.stdout).toContain('from inside');
  expect(run.code).toBe(0);
  const { stdout } = await callCli(project, ['runs', '--json'], env);
  expect((JSON.parse(stdout) as Run).actions).toEqual([
    { name: 'o/inner@v1', source: 'fetched', commit: inner },
  ]);
  // A workflow of another repository, as well: what was fetched for the action has it.
  const called = await callCli(project, ['run', 'calls'], env);
  expect(called.code).toBe(0);
  const far = 'o/inner/.github/workflows/below.yml@v1';
  const [own, file, sha] = [
    `local/${basename(project)}`,
    '.github/workflows/own.yml',
    '0'.repeat(40),
  ];
  expect(called.stdout).toContain(`far ${far} ${inner} o/inner .github/workflows/below.yml\n`);
  expect(called.stdout).toContain(`near ${own}/${file}@${sha} ${sha} ${own} ${file}\n`);
});

test('what no job of the run uses is not missing', async () => {
  const project = temporaryDir();
  const matrixJobs = 'strategy: { matrix: { n: [1, 2] } }';
  const job = (name: string, more = ''): string =>
    `{ runs-on: x, ${more} steps: [{ run: 'true' }, { if: false, uses: o/${name}@v1 }] }`;
  writeFiles(project, {
    '.github/workflows/ci.yml': `on: workflow_dispatch
jobs:
  first: ${job('first')}
  second: ${job('second', 'needs: first,')}
  legs: ${job('legs', `${matrixJobs},`)}
  third: ${job('third', 'strategy: { matrix: { n: [3] } },')}
  computed: ${job('computed', "strategy: { matrix: { n: ['${{ github.run_number }}'] } },")}
  calls: { uses: ./.github/workflows/called.yml, ${matrixJobs} }
  far: { uses: ./.github/workflows/called.yml, with: { what: x } }
`,
    '.github/workflows/called.yml': `on: { workflow_call: { inputs: { what: { type: string } } } }
jobs: { inner: ${job('inner')}, other: ${job('other', 'strategy: { matrix: { m: [1] } },')} }
`,
  });
  const env = { RUNNER_INSTALL_TOOLS: 'false', RUNNER_TOOLS_DIR: join(project, 'tools') };
  const neededBy = async (...args: readonly string[]): Promise<readonly string[]> => {
    const { stdout } = await callCli(project, ['run', 'ci', ...args], env);
    const names = /Of \d+ actions \d+ are missing: (.*?)\. /.exec(stdout)?.[1]?.split(', ') ?? [];
    return names.map((name) => name.slice('o/'.length, -'@v1'.length));
  };
  expect(await neededBy('-j', 'second')).toEqual(['first', 'second']);
  // A job of which no matrix job is chosen needs nothing.
  expect(await neededBy('-j', 'legs', '-j', 'third', '--matrix', 'n:3')).toEqual(['third']);
  // What only the run can tell is looked at, and so is a job that no chosen value is for.
  expect(await neededBy('--matrix', 'n:3')).toEqual([
    'computed',
    'first',
    'inner',
    'other',
    'second',
    'third',
  ]);
});

test('the command says how it is used', async () => {
  const project = temporaryDir();
  for (const [args, text] of [
    [['actions'], 'actions needs list, fetch or prune'],
    [['actions', 'get'], 'actions needs list, fetch or prune'],
    [['actions', 'prune', 'ci'], 'takes no workflow'],
    [['actions', 'list', '--update'], '--update is an option of fetch'],
    [['actions', 'fetch', 'nothing'], 'There are no workflows in'],
  ] as const) {
    const { code, stderr } = await callCli(project, args);
    expect(code).toBe(2);
    expect(stderr).toContain(text);
  }
});
