/** The scheduler with real processes, where what it decides meets them. */
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createBench, secretsFrom, textOf, type Bench } from '../support/scheduler-bench.ts';

async function benchOf(jobs: string, more: Parameters<typeof createBench>[0] = {}): Promise<Bench> {
  return await createBench({
    ...more,
    workflows: { 'w.yml': `on: workflow_dispatch\njobs:\n${jobs}` },
  });
}

test('a job past its timeout is cancelled, its run fails; the one beside it does not notice', async () => {
  const after = 'needs: slow, runs-on: x';
  await using bench = await benchOf(`
  slow:
    runs-on: ubuntu-latest
    timeout-minutes: 0.005
    steps:
      - run: sleep 30
      - run: echo never
      - { if: failure(), run: echo never }
      - { if: cancelled(), run: 'echo "job is \${{ job.status }}"' }
      - { if: always(), run: echo always }
  quick:
    runs-on: ubuntu-latest
    steps: [{ run: echo ok }]
  plain: { ${after}, steps: [{ run: echo never }] }
  mends: { ${after}, if: failure(), steps: [{ run: echo never }] }
  names: { ${after}, if: "failure('slow')", steps: [{ run: echo never }] }
  tidies: { ${after}, if: cancelled(), steps: [{ run: echo never }] }
  reports: { ${after}, if: always(), steps: [{ run: 'echo slow is \${{ needs.slow.result }}' }] }
`);
  const run = await bench.run('w');
  expect(run).toMatchObject({ status: 'failed', conclusion: 'failure' });
  expect(Object.fromEntries(run.jobs.map((job) => [job.id, job.conclusion]))).toEqual({
    slow: 'cancelled',
    quick: 'success',
    plain: 'skipped',
    mends: 'skipped',
    names: 'skipped',
    tidies: 'skipped',
    reports: 'success',
  });
  const [sleeps, ...others] = run.jobs[0]?.steps.map((step) => step.conclusion) ?? [];
  expect(sleeps).toBe('cancelled');
  expect(others).toEqual(['skipped', 'skipped', 'success', 'success']);
  const log = await textOf(bench.service.logs(run.id, {}));
  expect(log).toContain('job is cancelled');
  expect(log).toContain('slow is cancelled');
  const errors = bench.errors(run.id);
  expect(errors[0]?.message).toContain('exceeded the maximum execution time');
  expect(new Set(errors.map(({ jobId }) => jobId))).toEqual(new Set(['slow']));
  // What is kept of an earlier attempt has timed out still.
  await bench.service.rerun(run.id, { job: 'quick' });
  expect((await bench.events.completed(run.id, 2)).conclusion).toBe('failure');
  const again = await bench.service.rerun(run.id, { failedOnly: true });
  expect(again.jobs[0]).toMatchObject({ id: 'slow', status: 'queued', attempt: 3 });
});

test('a matrix job past its timeout ends its siblings; continue-on-error forgives failures alone', async () => {
  await using bench = await benchOf(
    `
  t:
    runs-on: ubuntu-latest
    timeout-minutes: \${{ matrix.m }}
    continue-on-error: \${{ matrix.m < 1 }}
    strategy: { matrix: { m: [0.005, 5] } }
    steps: [{ run: sleep 30 }]
  after: { needs: t, if: always(), runs-on: x, steps: [{ run: 'echo t is \${{ needs.t.result }}' }] }
`,
    { limits: { jobsInProgressMax: 2 } },
  );
  const run = await bench.run('w');
  expect(run.jobs.map((job) => job.conclusion)).toEqual(['cancelled', 'cancelled', 'success']);
  expect(await textOf(bench.service.logs(run.id, {}))).toContain('t is cancelled');
  expect(run.conclusion).toBe('failure');
});

test('a call whose job passes its timeout ends the siblings of its matrix, as the job would', async () => {
  await using bench = await createBench({
    limits: { jobsInProgressMax: 2 },
    workflows: {
      'w.yml': `on: workflow_dispatch
jobs:
  c:
    strategy: { matrix: { m: [0.005, 5] } }
    uses: ./.github/workflows/outer.yml
    with: { m: "\${{ matrix.m }}" }
`,
      'outer.yml': `on: { workflow_call: { inputs: { m: { type: number } } } }
jobs: { b: { uses: ./.github/workflows/inner.yml, with: { m: "\${{ inputs.m }}" } } }
`,
      'inner.yml': `on: { workflow_call: { inputs: { m: { type: number } } } }
jobs:
  a: { runs-on: x, timeout-minutes: "\${{ inputs.m }}", steps: [{ run: sleep 20 }] }
`,
    },
  });
  const run = await bench.run('w');
  expect(run.jobs.map(({ id, conclusion }) => [id, conclusion])).toEqual([
    ['c:1/b/a', 'cancelled'],
    ['c:2/b/a', 'cancelled'],
  ]);
  expect(run.conclusion).toBe('failure');
});

test('a call that failed before does not end the sibling that runs again', async () => {
  await using bench = await createBench({
    workflows: {
      'w.yml': `on: workflow_dispatch
jobs:
  c:
    strategy: { matrix: { m: [1, 2] } }
    uses: ./.github/workflows/inner.yml
    with: { m: "\${{ matrix.m }}" }
`,
      'inner.yml': `on: { workflow_call: { inputs: { m: { type: number } } } }
jobs: { a: { runs-on: x, steps: [{ run: '[ \${{ inputs.m }} = 2 ] || exit 1' }] } }
`,
    },
  });
  const run = await bench.run('w');
  await bench.service.rerun(run.id, { job: 'c:2/a' });
  const again = await bench.events.completed(run.id, 2);
  expect(again.jobs.map(({ id, conclusion }) => [id, conclusion])).toEqual([
    ['c:1/a', 'failure'],
    ['c:2/a', 'success'],
  ]);
});

test('fail-fast ends real processes of siblings, and their later steps', async () => {
  await using bench = await benchOf(
    `
  t:
    runs-on: ubuntu-latest
    strategy: { matrix: { n: [1, 2, 3] } }
    steps:
      - env: { N: '\${{ matrix.n }}' }
        run: |
          if [ "$N" = 1 ]; then sleep 0.2; exit 7; fi
          echo started; sleep 30
      - run: echo never
`,
    { limits: { jobsInProgressMax: 2 } },
  );
  const run = await bench.run('w');
  expect(run.jobs.map((job) => job.conclusion)).toEqual(['failure', 'cancelled', 'cancelled']);
  expect(run.jobs[1]?.steps.map((step) => step.conclusion)).toEqual(['cancelled', 'skipped']);
});

test('a called workflow with an action, outputs, a secret and a summary', async () => {
  await using bench = await createBench({
    secrets: secretsFrom({ '': { TOKEN: 'very-secret-value' } }),
    workflows: {
      'called.yml': `
on:
  workflow_call:
    inputs: { who: { type: string, required: true } }
    secrets: { T: { required: true } }
    outputs: { greeting: { value: "\${{ jobs.greet.outputs.g }}" } }
jobs:
  greet:
    runs-on: ubuntu-latest
    outputs: { g: "\${{ steps.s.outputs.g }}" }
    steps:
      - id: s
        env: { T: "\${{ secrets.T }}", WHO: "\${{ inputs.who }}" }
        run: |
          echo "the secret is $T"
          echo "g=hello $WHO" >> "$GITHUB_OUTPUT"
          echo "# Done for $WHO" >> "$GITHUB_STEP_SUMMARY"
`,
      'w.yml': `
on: workflow_dispatch
jobs:
  call:
    uses: ./.github/workflows/called.yml
    with: { who: world }
    secrets: { T: "\${{ secrets.TOKEN }}" }
  use:
    needs: call
    runs-on: ubuntu-latest
    steps: [{ run: 'echo "\${{ needs.call.outputs.greeting }}"' }]
`,
    },
  });
  const run = await bench.run('w');
  expect(bench.errors(run.id)).toEqual([]);
  expect(run.conclusion).toBe('success');
  expect(await textOf(bench.service.logs(run.id, {}))).toBe(
    [
      '=== Job: call/greet (call / greet) ===',
      `--- Step 1: ${run.jobs[0]?.steps[0]?.name} [success] ---`,
      'the secret is ***',
      '',
      '=== Job: use (use) ===',
      `--- Step 1: ${run.jobs[1]?.steps[0]?.name} [success] ---`,
      'hello world',
      '',
    ].join('\n'),
  );
  expect(bench.service.summary(run.id)).toBe('# Done for world\n');
});

test('50 legs of real processes all end, and leave no folder of theirs', async () => {
  const matrixJobs = Array.from({ length: 50 }, (_, index) => index + 1);
  await using bench = await benchOf(`
  t:
    runs-on: ubuntu-latest
    strategy: { matrix: { n: [${matrixJobs.join(', ')}] } }
    steps: [{ run: 'echo \${{ matrix.n }}' }]
`);
  const run = await bench.run('w');
  expect(run.jobs.map((job) => job.conclusion)).toEqual(matrixJobs.map(() => 'success'));
  for (const matrixJob of matrixJobs)
    expect(bench.events.lines(run.id, `t:${matrixJob}`, 1)).toEqual([String(matrixJob)]);
  expect(bench.problems).toEqual([]);
  await bench.stop();
  const state = join(bench.project.dir, '.runner');
  await expect.poll(() => readdir(join(state, 'jobs'))).toEqual([]);
  expect(existsSync(run.sandbox?.path ?? state)).toBe(false);
});

test('numbers, keys and names reach jobs as on GitHub', async () => {
  await using bench = await benchOf(`
  gives:
    runs-on: ubuntu-latest
    outputs: { m: '\${{ steps.m.outputs.m }}', __proto__: '\${{ steps.m.outputs.__proto__ }}' }
    steps:
      - id: m
        run: |
          echo '__proto__=own' >> $GITHUB_OUTPUT
          echo 'm={"30":["a"],"4":[0.00001,1e15],"include":[{"30":"z","Two":1,"TWO":2}]}' >> $GITHUB_OUTPUT
  takes:
    needs: gives
    runs-on: ubuntu-latest
    env: { __proto__: variable, NAME: upper, ID: 123456789012345678 }
    strategy: { matrix: '\${{ fromJSON(needs.gives.outputs.m) }}' }
    steps:
      - run: |
          echo "\${{ join(matrix.*, ' ') }} | \${{ needs.gives.outputs.__proto__ }}"
          env | grep -e '^__proto__=' -e '^NAME=' -e '^name=' -e '^ID=' | sort
          echo "[\${{ env.Name }}] \${{ env.NAME }} \${{ env.name }}"
        env: { name: lower }
`);
  const run = await bench.run('w');
  expect(run).toMatchObject({ status: 'completed', conclusion: 'success' });
  const variables = [
    'ID=1.23456789012346E+17',
    'NAME=upper',
    '__proto__=variable',
    'name=lower',
    '[] upper lower',
  ];
  const logs: Record<string, readonly string[]> = {};
  for (const { id, name } of run.jobs.slice(1)) {
    const lines = (await textOf(bench.service.logs(run.id, { jobId: id }))).split('\n');
    logs[name] = lines.slice(lines.findIndex((line) => line.endsWith('| own')));
  }
  const ofJob = (first: string): readonly string[] => [`${first} | own`, ...variables, ''];
  expect(logs).toEqual({
    'takes (a, 1E-05)': ofJob('a 1E-05'),
    'takes (a, 1E+15)': ofJob('a 1E+15'),
    'takes (z, 2)': ofJob('z 2'),
  });
});
