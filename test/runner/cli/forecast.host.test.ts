import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeWorkspace } from '../../support/runner.ts';
import { byLength } from '../../support/test-length.ts';
import { runCli } from './cli-process.ts';

/** Run as well as planned: one with other jobs, one that fails at once, and one that may not fail at all. */
const SHORT: readonly string[] = ['call.yml', 'image.yml', 'perhaps.yml'];

test(
  '-n and list say what will fail, with the exit code that the run then has',
  { timeout: 120_000 },
  async () => {
    const matrixJobs = Array.from({ length: 257 }, (_, index) => index).join(', ');
    const files = {
      'call.yml': `jobs:
  bad: { uses: ./.github/workflows/gone.yml }
  after: { needs: bad, runs-on: ubuntu-latest, steps: [{ run: exit 0 }] }
  good: { runs-on: ubuntu-latest, steps: [{ run: echo ran-well }] }`,
      'services.yml': `jobs: { s: { runs-on: x, services: { db: { image: db } }, steps: [{ run: exit 0 }] } }`,
      'image.yml': `jobs: { c: { runs-on: x, container: node:22, steps: [{ run: exit 0 }] } }`,
      'legs.yml': `jobs: { m: { runs-on: x, strategy: { matrix: { n: [${matrixJobs}] } }, steps: [{ run: exit 0 }] } }`,
      'remote.yml': `jobs: { r: { runs-on: x, steps: [{ uses: some/where@v1 }] } }`,
      'local.yml': `jobs: { l: { runs-on: x, steps: [{ uses: ./nowhere }] } }`,
      'label.yml': `jobs: { w: { runs-on: windows-latest, steps: [{ run: exit 0 }] } }`,
      'perhaps.yml': `jobs: { p: { runs-on: x, steps: [{ if: failure(), uses: ./nowhere }, { run: exit 0 }] } }`,
    };
    const workspace = makeWorkspace(
      Object.fromEntries(
        Object.entries(files).map(([name, text]) => [
          `.github/workflows/${name}`,
          `on: workflow_dispatch\n${text}\n`,
        ]),
      ),
      true,
    );
    const list = await runCli(workspace, ['list', '--json']);
    const listed = JSON.parse(list.stdout) as {
      fileName: string;
      forecast: { exitCode: number; problems: { message: string; isSure: boolean }[] };
    }[];
    const cases = [
      ['call.yml', "Unable to find reusable workflow './.github/workflows/gone.yml'"],
      ['services.yml', "'services' needs a container"],
      ['image.yml', "'container' needs a container"],
      ['legs.yml', 'more than 256 combinations'],
      ['remote.yml', 'the action some/where@v1 is not here'],
      ['local.yml', 'the action ./nowhere is not in the project'],
      ['label.yml', "it asks for 'windows-latest'"],
      ['perhaps.yml', '? p: the action ./nowhere is not in the project'],
    ] as const;
    for (const [name, said] of cases) {
      const { forecast } = listed.find(({ fileName }) => fileName === name) ?? {};
      const code = name === 'perhaps.yml' ? 0 : 1;
      expect([name, forecast?.exitCode]).toEqual([name, code]);
      if (!byLength(SHORT, [name]).includes(name)) continue;
      const plan = await runCli(workspace, ['run', name, '-n']);
      const run = await runCli(workspace, ['run', name, '-q']);
      expect(plan.stdout).toContain(said);
      expect(plan.stdout).toContain(`exit code ${run.code}\n`);
      expect([name, plan.code, run.code]).toEqual([name, code, code]);
      if (name !== 'call.yml') continue;
      expect(run.stdout).toMatch(/^after - after skipped$/m);
      expect(run.stdout).toMatch(/✓ good success/);
    }
    expect((await runCli(workspace, ['list'])).stdout).toContain(
      '✗ image.yml     workflow_dispatch\n    ✗ c: ',
    );
  },
);

test('-n foresees what a matrix asks for, other repositories and Pythons that cannot be had', async () => {
  const workspace = makeWorkspace(
    {
      '.github/workflows/some.yml': `on: workflow_dispatch
jobs:
  some: { runs-on: '\${{ matrix.os }}', strategy: { matrix: { os: [ubuntu-latest, windows-latest] } }, steps: [{ run: exit 0 }] }
  after: { needs: some, runs-on: x, steps: [{ uses: actions/checkout@v4, with: { repository: '\${{ github.repository }}' } }] }
`,
      '.github/workflows/none.yml': `on: workflow_dispatch
jobs: { none: { runs-on: ['\${{ matrix.os }}'], strategy: { matrix: { os: [macos-14, windows-latest] } }, steps: [{ run: exit 0 }] } }
`,
      '.github/workflows/other.yml': `on: workflow_dispatch
jobs:
  own: { runs-on: x, steps: [{ uses: actions/checkout@v4, with: { repository: Some/Where } }] }
  other: { runs-on: x, steps: [{ uses: actions/checkout@v4, with: { repository: some/other, path: x } }] }
  known: { runs-on: x, strategy: { matrix: { r: [some/where, else/where] } }, steps: [{ uses: actions/checkout@v4, with: { repository: '\${{ matrix.r }}' } }] }
`,
      '.github/workflows/python.yml': `on: workflow_dispatch
jobs:
  p: { runs-on: x, strategy: { matrix: { v: ['3.12', pypy3.10] } }, steps: [{ uses: actions/setup-python@v5, with: { python-version: '\${{ matrix.v }}' } }] }
  q: { runs-on: x, steps: [{ uses: actions/setup-python@v5, with: { python-version: "3.12\\n3.13t" } }] }
  f: { runs-on: x, steps: [{ uses: actions/setup-python@v5, with: { python-version: '3.13', freethreaded: true } }] }
  r: { runs-on: x, steps: [{ uses: actions/setup-python@v5, with: { python-version: '\${{ vars.V || inputs.v }}' } }] }
`,
      '.github/workflows/remote.yml': `on: workflow_dispatch
jobs: { r: { uses: some/where/.github/workflows/x.yml@v1 } }
`,
      '.github/workflows/gone.yml': `on: workflow_dispatch
jobs: { g: { runs-on: '\${{ matrix.os }}', strategy: { matrix: { include: [{ os: x, r: '' }, { os: macos-14, r: else/where }] } }, steps: [{ uses: actions/checkout@v4, with: { repository: '\${{ matrix.r }}' } }] } }
`,
      '.github/workflows/nothing.yml': `on: workflow_dispatch
jobs:
  m: { runs-on: macos-14, steps: [{ run: exit 0 }] }
  w: { runs-on: windows-latest, if: always(), steps: [{ run: exit 0 }] }
`,
      '.github/workflows/forgiven.yml': `on: workflow_dispatch
jobs: { f: { runs-on: x, continue-on-error: true, strategy: { matrix: { a: [1], exclude: [{ a: 1 }] } }, steps: [{ run: exit 0 }] } }
`,
    },
    true,
  );
  const git = (...args: string[]) => execFileSync('git', args, { cwd: workspace });
  git('remote', 'add', 'origin', 'https://code.example/some/where.git');
  const plan = async (
    name: string,
    ...args: string[]
  ): Promise<[string | number, readonly string[]]> => {
    const { code, stdout } = await runCli(workspace, ['run', name, '-n', ...args]);
    return [code, stdout.split('\n').filter((line) => /^[✗?] /.test(line))];
  };
  const refused = 'cannot be checked out: without network there is only';
  const own = "the project's own repository, 'some/where'";
  expect(await plan('some')).toEqual([
    0,
    ["✗ some: left out: 1 of its 2 matrix jobs, which ask for 'windows-latest'"],
  ]);
  expect(await plan('none')).toEqual([
    1,
    ["✗ none: left out: it asks for 'macos-14', which is another operating system"],
  ]);
  expect(await plan('other')).toEqual([
    1,
    [
      `✗ other: actions/checkout@v4: 'some/other' ${refused} ${own}`,
      `✗ known: actions/checkout@v4: 'else/where' ${refused} ${own}`,
    ],
  ]);
  const python = 'cannot be had: only CPython with its usual build is';
  expect(await plan('python')).toEqual([
    1,
    [
      `✗ p: actions/setup-python@v5: Python 'pypy3.10' ${python}`,
      `✗ q: actions/setup-python@v5: Python '3.13t' ${python}`,
      '✗ f: actions/setup-python@v5: a Python that is freethreaded cannot be had',
    ],
  ]);
  expect((await plan('remote'))[1]).toEqual([
    "✗ r: Unable to find reusable workflow 'some/where/.github/workflows/x.yml@v1': `runner actions fetch` gets those of other repositories",
  ]);
  // What is left out, or not asked for, fails nothing.
  const part = "✗ g: left out: 1 of its 2 matrix jobs, which ask for 'macos-14'";
  expect(await plan('gone')).toEqual([0, [part]]);
  const known = (await plan('other', '--matrix', 'r:some/where'))[1];
  expect(known).toEqual([`✗ other: actions/checkout@v4: 'some/other' ${refused} ${own}`]);
  // What no condition can bring about, and what no `continue-on-error` forgives.
  expect((await plan('nothing'))[0]).toBe(1);
  expect((await plan('forgiven'))[0]).toBe(1);
  for (const [name, code] of [
    ['some', 0],
    ['gone', 0],
    ['nothing', 1],
    ['forgiven', 1],
  ] as const) {
    const run = await runCli(workspace, ['run', name, '-q']);
    expect([name, run.code]).toEqual([name, code]);
    if (name === 'some') expect(run.stdout).toContain('after success');
  }
});

test('without workflows list and run say where they looked, and which folder has some', async () => {
  const text = 'on: push\njobs: { a: { runs-on: x, steps: [{ run: exit 0 }] } }\n';
  const workspace = makeWorkspace({ '.github/workflows/a.yml': text, 'part/deep/x': '' }, true);
  const deep = join(workspace, 'part/deep');
  for (const args of [['list'], ['list', '--json'], ['run', 'a'], ['run', 'a', '-n']]) {
    const { code, stdout, stderr } = await runCli(deep, args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(`There are no workflows in ${deep}/.github/workflows`);
    expect(stderr).toContain(`${workspace} has some: \`--workspace ${workspace}\``);
  }
});
