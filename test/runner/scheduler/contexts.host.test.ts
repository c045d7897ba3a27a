import { expect, test } from 'vitest';
import type { TextMask } from '../../../src/runner/model/ports.ts';
import type { WorkflowRun } from '../../../src/runner/model/run.ts';
import { createBench, secretsFrom, textOf } from '../support/scheduler-bench.ts';
import { ScriptedExecutor } from '../support/scripted-executor.ts';

test('inputs keep their types, github.event.inputs has texts, the run shows texts', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await createBench({
    executor,
    workflows: {
      'w.yml': `
name: Release
run-name: Release \${{ inputs.count }} by \${{ github.actor }} no \${{ github.run_number }}
on:
  workflow_dispatch:
    inputs:
      flag: { type: boolean }
      count: { type: number, default: 3 }
      kind: { type: choice, options: [a, b] }
jobs:
  a: { runs-on: x, steps: [{ run: ok }] }
`,
    },
  });
  const run = await bench.run('Release', { flag: 'true' });
  expect(run).toMatchObject({
    name: 'Release 3 by local no 1',
    inputs: { flag: 'true', count: '3', kind: 'a' },
  });
  const [request] = executor.requests;
  expect(request?.contexts.inputs).toEqual({ flag: true, count: 3, kind: 'a' });
  expect(request?.event['inputs']).toEqual({ flag: 'true', count: '3', kind: 'a' });
  expect(request?.contexts.github).toMatchObject({
    actor: 'local',
    event: request?.event ?? {},
    event_name: 'workflow_dispatch',
    job: 'a',
    ref: '',
    repository: expect.stringMatching(/^local\//) as string,
    run_attempt: '1',
    run_id: String(run.numericId),
    run_number: '1',
    sha: '0'.repeat(40),
    workflow: 'Release',
    workspace: run.jobs[0]?.sandbox?.path,
  });
  await expect(
    bench.service.start({ workflow: 'w', inputs: { kind: 'c', nope: '1' } }),
  ).rejects.toMatchObject({ reason: 'INVALID_INPUTS' });
  expect(bench.service.counts()).toEqual({ queued: 0, inProgress: 0 });
});

test('github.workflow of a file without a name is its path; each workflow counts its own runs', async () => {
  const executor = new ScriptedExecutor();
  const jobs = 'jobs: { a: { runs-on: x, steps: [{ run: ok }] } }';
  await using bench = await createBench({
    executor,
    workflows: {
      'w.yml': `on: workflow_dispatch\nrun-name: of \${{ github.workflow }}\n${jobs}\n`,
      'named.yml': `name: Named\non: workflow_dispatch\n${jobs}\n`,
    },
  });
  const runs = [await bench.run('w'), await bench.run('named'), await bench.run('w')];
  expect(runs.map(({ name, runNumber }) => [name, runNumber])).toEqual([
    ['of .github/workflows/w.yml', 1],
    ['Named', 1],
    ['of .github/workflows/w.yml', 2],
  ]);
  expect(
    executor.requests.map(({ contexts: { github } }) => {
      const { workflow, run_number: number } = github as Record<string, unknown>;
      return [workflow, number];
    }),
  ).toEqual([
    ['.github/workflows/w.yml', '1'],
    ['Named', '1'],
    ['.github/workflows/w.yml', '2'],
  ]);
});

test('the event of a webhook is github.event, and the trigger', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await createBench({
    executor,
    workflows: { 'w.yml': 'on: issues\njobs: { a: { runs-on: x, steps: [{ run: ok }] } }\n' },
  });
  const payload = { action: 'opened', issue: { number: 7 } };
  const request = { workflow: 'w', event: 'issues', payload, actor: 'octo' };
  const { run, warnings } = await bench.service.start(request);
  expect(warnings).toEqual([]);
  expect((await bench.events.completed(run.id)).trigger.event).toBe('issues');
  expect(executor.requests[0]?.contexts.github).toMatchObject({
    event: payload,
    event_name: 'issues',
    actor: 'octo',
  });
});

test('secrets of the environment over the default ones, masks, and only those that are named', async () => {
  const executor = new ScriptedExecutor();
  const secrets = secretsFrom(
    { '': { KEY: 'common', OTHER: 'other' }, prod: { KEY: 'of-prod' } },
    { '': { V: 'v' }, prod: { V: 'v-prod' } },
  );
  await using bench = await createBench({
    executor,
    secrets,
    limits: { jobsInProgressMax: 1 },
    workflows: {
      'w.yml': `
on: workflow_dispatch
env:
  PLAIN: \${{ vars.V }}
  LEAK: "x\${{ secrets.KEY }}y"
jobs:
  a:
    runs-on: x
    environment: { name: prod, url: "https://example.test" }
    steps: [{ run: "say \${{ vars.V }} \${{ secrets.KEY }}" }]
  b:
    runs-on: x
    environment: { name: "", deployment: false }
    steps: [{ run: "say \${{ vars.V }} \${{ secrets.KEY }}" }]
`,
    },
  });
  const run = await bench.run('w');
  expect(run.env).toEqual({ PLAIN: 'v', LEAK: 'x***y' });
  expect(run.jobs[0]?.environment).toEqual({ name: 'prod' });
  expect(run.jobs[1]?.environment).toBeUndefined();
  expect(bench.events.lines(run.id, 'a', 1)).toEqual(['v-prod of-prod']);
  expect(bench.events.lines(run.id, 'b', 1)).toEqual(['v common']);
  expect(executor.requests.map(({ masks }) => masks)).toEqual([['of-prod'], ['common']]);
  expect(secrets.reads).toEqual([
    { jobId: '', names: ['KEY'] },
    { jobId: 'a', names: ['KEY'] },
    { jobId: 'b', names: ['KEY'] },
  ]);
  expect(bench.deployments).toEqual(['started a prod', 'ended a prod success -']);
});

test('a label of another operating system skips the job with a warning, unless any will do', async () => {
  const workflows = {
    'w.yml': `
on: workflow_dispatch
jobs:
  mac: { runs-on: macos-14, steps: [{ run: ok }] }
  win: { runs-on: [self-hosted, Windows], steps: [{ run: ok }] }
  group: { runs-on: { group: big, labels: windows-2022 }, steps: [{ run: ok }] }
  own: { runs-on: [self-hosted, my-box], steps: [{ run: ok }] }
  after: { needs: mac, runs-on: ubuntu-latest, steps: [{ run: ok }] }
`,
  };
  const executor = new ScriptedExecutor();
  await using bench = await createBench({ executor, workflows, overrides: { platform: 'linux' } });
  const run = await bench.run('w');
  expect(run.jobs.map((job) => [job.id, job.conclusion])).toEqual([
    ['mac', 'skipped'],
    ['win', 'skipped'],
    ['group', 'skipped'],
    ['own', 'success'],
    ['after', 'skipped'],
  ]);
  expect(bench.service.annotations(run.id).map(({ level, jobId }) => [level, jobId])).toEqual([
    ['warning', 'mac'],
    ['warning', 'win'],
    ['warning', 'group'],
    // Of the run: a job has no checkout.
    ['warning', undefined],
  ]);
  await using any = await createBench({
    executor,
    workflows,
    overrides: { platform: 'linux', runsOn: 'any' },
  });
  expect((await any.run('w')).jobs.map((job) => job.conclusion)).toEqual(
    Array.from({ length: 5 }, () => 'success'),
  );
});

test('a label of another architecture is a warning, and the job runs', async () => {
  const workflows = {
    'w.yml': `
on: workflow_dispatch
jobs:
  arm: { runs-on: ubuntu-24.04-arm, steps: [{ uses: actions/checkout@v4 }] }
  own: { runs-on: [self-hosted, ARM64], steps: [{ uses: actions/checkout@v4 }] }
  x64: { runs-on: [self-hosted, linux, X64], steps: [{ uses: actions/checkout@v4 }] }
  none: { runs-on: [ubuntu-latest-8-cores-farm, my-arm], steps: [{ uses: actions/checkout@v4 }] }
`,
  };
  const executor = new ScriptedExecutor();
  const messages = async (architecture: 'x64' | 'arm64', runsOn?: 'any'): Promise<string[]> => {
    const overrides = { platform: 'linux' as const, architecture, runsOn };
    await using bench = await createBench({ executor, workflows, overrides });
    const run = await bench.run('w');
    expect(run.jobs.map(({ conclusion }) => conclusion)).toEqual(
      Array.from({ length: 4 }, () => 'success'),
    );
    return bench.service
      .annotations(run.id)
      .map(({ level, jobId, message }) => `${level} ${jobId}: ${message}`);
  };
  const end = 'which is arm64: it runs on this machine all the same, which is x64';
  expect(await messages('x64')).toEqual([
    `warning arm: The job asks for 'ubuntu-24.04-arm', ${end}`,
    `warning own: The job asks for 'ARM64', ${end}`,
  ]);
  expect(await messages('arm64')).toEqual([
    "warning x64: The job asks for 'X64', which is x64: it runs on this machine all the same, which is arm64",
  ]);
  expect(await messages('x64', 'any')).toEqual([]);
});

test('what is told of a deployment hides the secrets of the whole run, of all environments', async () => {
  const asked: unknown[][] = [];
  const source = secretsFrom({ '': { HERE: 'the-here', UNNAMED: 'unnamed' } });
  const told: string[] = [];
  const tell = (run: WorkflowRun, environment: string, mask: TextMask): void => {
    const texts = [environment, ...run.jobs.map(({ name }) => name), 'unnamed'];
    told.push(texts.map(mask).join(' | '));
  };
  await using bench = await createBench({
    executor: new ScriptedExecutor(),
    secrets: {
      ...source,
      masksFor: (environment, names) => {
        asked.push([environment, names]);
        const all = { HERE: 'the-here', FAR: environment === undefined ? 'the-far' : '' };
        const found = Object.entries(all).filter(([name]) => names?.includes(name) ?? true);
        return Promise.resolve(found.map(([, value]) => value));
      },
    },
    overrides: {
      sealer: {
        seal: (_context, value) => Promise.resolve({ salt: '', value }),
        open: (_context, { value }) => Promise.resolve(value),
      },
      deployments: {
        isRecorded: (_run, _jobId, environment) => environment !== 'unwatched',
        deploymentStarted: (run, _jobId, environment, mask) => tell(run, environment, mask),
        deploymentEnded: (run, _jobId, environment, _url, mask) => tell(run, environment, mask),
      },
    },
    workflows: {
      'w.yml': `
on: workflow_dispatch
jobs:
  deploy:
    runs-on: x
    name: deploy the-far made-of-the-here
    environment: { name: "for-\${{ 'given-1' }}" }
    steps: [{ run: ok }]
  plain: { needs: deploy, runs-on: x, environment: the-far, steps: [{ run: ok }] }
  quiet: { needs: deploy, runs-on: x, environment: unwatched, steps: [{ run: ok }] }
  other: { needs: deploy, runs-on: x, steps: [{ run: "say \${{ secrets.here }}" }] }
  call: { needs: deploy, uses: ./.github/workflows/called.yml, secrets: { MADE: "made-of-\${{ secrets.HERE }}" } }
`,
      'called.yml': `
on: { workflow_call: { secrets: { MADE: { required: true } } } }
jobs: { x: { runs-on: x, steps: [{ run: "say \${{ secrets.far }} \${{ secrets.given }}" }] } }
`,
    },
  });
  const { run } = await bench.service.start({ workflow: 'w', secrets: { given: 'given-1' } });
  await bench.events.completed(run.id);
  // No job names the last of them; the environment's name of the second stands in the file.
  const names = 'deploy *** made-of-*** | plain | quiet | other | call / x | unnamed';
  const [one, two] = [`for-*** | ${names}`, `the-far | ${names}`];
  expect(told).toEqual([one, one, two, two]);
  // For what is recorded alone.
  const ofAll = asked.filter(([environment]) => environment === undefined);
  expect(ofAll).toEqual(told.map(() => [undefined, ['FAR', 'GIVEN', 'HERE']]));
  expect(asked).toContainEqual(['for-given-1', []]);
});

test('a token only for those who declare permissions, and masked', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await createBench({
    executor,
    overrides: {
      identity: {
        repository: 'octo/hello',
        serverUrl: 'https://host.test',
        apiUrl: 'https://host.test/api',
        graphqlUrl: 'https://host.test/graphql',
        token: 'tok-123456',
      },
    },
    workflows: {
      'w.yml': `
on: workflow_dispatch
jobs:
  without: { runs-on: x, steps: [{ run: ok }] }
  with: { permissions: { contents: read }, runs-on: x, steps: [{ run: ok }] }
`,
    },
  });
  await bench.run('w');
  const requests = executor.requests.toSorted((a, b) => (a.jobId < b.jobId ? 1 : -1));
  expect(requests.map(({ contexts }) => contexts.github['token'])).toEqual(['', 'tok-123456']);
  expect(requests.map(({ masks }) => masks)).toEqual([[], ['tok-123456']]);
  expect(requests[0]?.contexts.github).toMatchObject({
    repository: 'octo/hello',
    repository_owner: 'octo',
    repositoryUrl: 'git://host.test/octo/hello.git',
    workflow_ref: `octo/hello/.github/workflows/w.yml@${'0'.repeat(40)}`,
  });
});

test('an invalid workflow is refused with its problems', async () => {
  await using bench = await createBench({
    executor: new ScriptedExecutor(),
    workflows: { 'w.yml': 'on: push\njobs: { a: { steps: [{ run: ok }] } }\n' },
  });
  await expect(bench.service.start({ workflow: 'w' })).rejects.toMatchObject({
    reason: 'INVALID_WORKFLOW',
    message: expect.stringMatching(/^w\.yml:2:\d+: /) as string,
  });
  await expect(bench.service.start({ workflow: 'none' })).rejects.toMatchObject({
    reason: 'WORKFLOW_NOT_FOUND',
  });
});

test('logs: headers of lines that look like one, tails, one job or step, limits', async () => {
  const lines = Array.from({ length: 50 }, (_, index) => `line ${index}`).join('\\n');
  await using bench = await createBench({
    limits: { stepLogBytesMax: 100 },
    workflows: {
      'w.yml': `
on: workflow_dispatch
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - name: Tricky
        run: |
          echo '=== Job: x (x) ==='
          echo ' --- Step'
          printf -- '--- Step 9: no newline at the end'
      - run: |
          printf '${lines}\\n'
          echo '## Sum' >> "$GITHUB_STEP_SUMMARY"
  b: { if: false, runs-on: ubuntu-latest, steps: [{ run: ok }] }
`,
    },
  });
  const run = await bench.run('w');
  expect(run.conclusion).toBe('success');
  const whole = await textOf(bench.service.logs(run.id, {}));
  expect(whole.split('\n').slice(0, 5)).toEqual([
    '=== Job: a (a) ===',
    '--- Step 1: Tricky [success] ---',
    ' === Job: x (x) ===',
    ' --- Step',
    ' --- Step 9: no newline at the end',
  ]);
  expect(whole.endsWith('line 49\n\n=== Job: b (b) ===\n')).toBe(true);
  const tail = await textOf(bench.service.logs(run.id, { jobId: 'a', stepNumber: 2, tail: 2 }));
  expect(tail.split('\n').slice(2)).toEqual(['line 48', 'line 49', '']);
  const full = await bench.service.getWithLogs(run.id);
  const [first, second] = full.jobs[0]?.steps ?? [];
  expect(first?.log).toBe('=== Job: x (x) ===\n --- Step\n--- Step 9: no newline at the end\n');
  expect(second?.log).toMatch(
    /^line 0\nline 1\n[^]*\n\[The log is longer than 100 bytes: [^\n]+\]\n$/,
  );
  expect(bench.service.summary(run.id)).toBe('## Sum\n');
  expect(bench.service.artifacts(run.id)).toEqual([]);
  expect(bench.service.get(run.id)?.jobs[0]?.steps[0]?.log).toBe('');
  await expect(textOf(bench.service.logs('nobody', {}))).rejects.toMatchObject({
    reason: 'RUN_NOT_FOUND',
  });
});
