import { expect, test } from 'vitest';
import { createBench, type Bench, type BenchOptions } from '../support/scheduler-bench.ts';
import { ScriptedExecutor } from '../support/scripted-executor.ts';

async function benchOf(jobs: string, options: BenchOptions = {}): Promise<Bench> {
  return await createBench({
    executor: new ScriptedExecutor(),
    ...options,
    workflows: { 'w.yml': `on: workflow_dispatch\njobs:\n${jobs}` },
  });
}

test('legs have ids in order, names with their values, and the contexts of the leg', async () => {
  await using bench = await benchOf(`
  t:
    runs-on: \${{ matrix.os }}
    strategy:
      max-parallel: 2
      matrix:
        os: [ubuntu-22.04, ubuntu-24.04]
        node: [20, 22]
        exclude: [{ os: ubuntu-22.04, node: 20 }]
        include: [{ os: ubuntu-24.04, node: 22, extra: yes-please }]
    steps:
      - run: say \${{ matrix.os }} \${{ matrix.node }} \${{ matrix.extra }} \${{ strategy.job-index }}/\${{ strategy.job-total }} \${{ strategy.max-parallel }}
  named:
    name: Build \${{ matrix.a }}
    runs-on: ubuntu-latest
    strategy: { matrix: { a: [x] } }
    steps: [{ run: ok }]
  plain:
    name: Plain
    runs-on: ubuntu-latest
    strategy: { matrix: { a: [x] } }
    steps: [{ run: ok }]
`);
  const { run: queued } = await bench.service.start({ workflow: 'w' });
  // Matrix jobs that need no evaluation are there from the start, with the ids that they keep.
  expect(queued.jobs.map((job) => [job.id, job.name])).toEqual([
    ['t:1', 't (ubuntu-22.04, 22)'],
    ['t:2', 't (ubuntu-24.04, 20)'],
    ['t:3', 't (ubuntu-24.04, 22, yes-please)'],
    ['named:1', 'named (x)'],
    ['plain:1', 'Plain (x)'],
  ]);
  const run = await bench.events.completed(queued.id);
  expect(run.jobs.map((job) => [job.id, job.name])).toEqual([
    ['t:1', 't (ubuntu-22.04, 22)'],
    ['t:2', 't (ubuntu-24.04, 20)'],
    ['t:3', 't (ubuntu-24.04, 22, yes-please)'],
    ['named:1', 'Build x'],
    ['plain:1', 'Plain (x)'],
  ]);
  expect(run.jobs[2]?.matrix).toEqual({ os: 'ubuntu-24.04', node: 22, extra: 'yes-please' });
  expect(bench.events.lines(run.id, 't:1', 1)).toEqual(['ubuntu-22.04 22  0/3 2']);
  expect(bench.events.lines(run.id, 't:3', 1)).toEqual(['ubuntu-24.04 22 yes-please 2/3 2']);
  expect(bench.problems).toEqual([]);
});

test('a matrix from an output, and needs of its legs', async () => {
  await using bench = await benchOf(`
  plan:
    runs-on: ubuntu-latest
    outputs: { m: '\${{ steps.s.outputs.m }}' }
    steps:
      - { id: s, run: 'set m {"n":[1,2,3]}' }
  t:
    needs: plan
    runs-on: ubuntu-latest
    strategy: { matrix: '\${{ fromJSON(needs.plan.outputs.m) }}' }
    outputs: { last: '\${{ matrix.n }}', only: "\${{ matrix.n == 2 && 'two' || '' }}" }
    steps: [{ run: 'say \${{ matrix.n }}' }]
  use:
    needs: t
    runs-on: ubuntu-latest
    steps: [{ run: 'say \${{ needs.t.result }} \${{ needs.t.outputs.only }}' }]
`);
  const run = await bench.run('w');
  expect(run.jobs.map((job) => job.id)).toEqual(['plan', 't:1', 't:2', 't:3', 'use']);
  expect(run.jobs[4]?.needs).toEqual(['t']);
  expect(bench.events.lines(run.id, 'use', 1)).toEqual(['success two']);
});

test('fail-fast cancels siblings in progress and queued ones', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await benchOf(
    `
  t:
    runs-on: ubuntu-latest
    strategy: { matrix: { script: [wait fail-now, wait never, wait never, wait never] } }
    steps:
      - run: \${{ matrix.script }}
      - run: fail
      - if: cancelled()
        run: say cleaned
  after:
    needs: t
    if: always()
    runs-on: ubuntu-latest
    steps: [{ run: 'say \${{ needs.t.result }}' }]
`,
    { executor, limits: { jobsInProgressMax: 2 } },
  );
  const { run } = await bench.service.start({ workflow: 'w' });
  await bench.events.when((event) => event.type === 'step.started' && event.jobId === 't:2');
  executor.open('fail-now');
  const end = await bench.events.completed(run.id);
  expect(end).toMatchObject({ status: 'failed', conclusion: 'failure' });
  expect(end.jobs.map((job) => job.conclusion)).toEqual([
    'failure',
    'cancelled',
    'cancelled',
    'cancelled',
    'success',
  ]);
  expect(bench.events.lines(run.id, 't:2', 3)).toEqual(['cleaned']);
  expect(end.jobs[3]?.steps).toEqual([]);
  expect(bench.events.lines(run.id, 'after', 1)).toEqual(['failure']);
});

test('fail-fast: false, or continue-on-error of the failing leg, lets the siblings go on', async () => {
  await using bench = await benchOf(
    `
  off:
    runs-on: ubuntu-latest
    strategy: { fail-fast: false, matrix: { script: [fail, ok] } }
    steps: [{ run: '\${{ matrix.script }}' }]
  forgiven:
    runs-on: ubuntu-latest
    continue-on-error: \${{ matrix.script == 'fail' }}
    strategy: { matrix: { script: [fail, ok] } }
    steps: [{ run: '\${{ matrix.script }}' }]
  after:
    needs: forgiven
    runs-on: ubuntu-latest
    steps: [{ run: ok }]
`,
    { limits: { jobsInProgressMax: 1 } },
  );
  const run = await bench.run('w');
  expect(run.jobs.map((job) => job.conclusion)).toEqual([
    'failure',
    'success',
    'failure',
    'success',
    'success',
  ]);
});

test('max-parallel holds', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await benchOf(
    `
  t:
    runs-on: ubuntu-latest
    strategy: { max-parallel: 3, matrix: { n: [1,2,3,4,5,6,7,8,9,10] } }
    steps: [{ run: wait gate }]
`,
    { executor, limits: { jobsInProgressMax: 8 } },
  );
  const { id } = (await bench.service.start({ workflow: 'w' })).run;
  await bench.events.when((event) => event.type === 'job.started' && event.jobId === 't:3');
  executor.open('gate');
  const run = await bench.events.completed(id);
  expect(run.conclusion).toBe('success');
  expect(executor.runningMax).toBe(3);
});

test('a matrix that cannot be is a failed job with an annotation', async () => {
  await using bench = await benchOf(
    `
  empty:
    runs-on: ubuntu-latest
    strategy: { matrix: { n: "\${{ fromJSON('[]') }}" } }
    steps: [{ run: ok }]
  large:
    runs-on: ubuntu-latest
    strategy: { matrix: { a: "\${{ fromJSON(format('[{0}0]', vars.MANY)) }}", b: [1, 2] } }
    steps: [{ run: ok }]
`,
    {
      overrides: {
        secrets: {
          secretsFor: () => Promise.resolve({}),
          variablesFor: () => Promise.resolve({ MANY: '0,'.repeat(200) }),
          environments: () => Promise.resolve([]),
        },
      },
    },
  );
  const run = await bench.run('w');
  expect(run.jobs.map((job) => [job.id, job.conclusion])).toEqual([
    ['empty', 'failure'],
    ['large', 'failure'],
  ]);
  const messages = bench.service.annotations(run.id).map(({ message }) => message);
  expect(messages).toEqual([
    expect.stringContaining('does not contain any values'),
    expect.stringContaining('256'),
  ]);
});

test('a run has at most so many jobs, legs included', async () => {
  await using bench = await benchOf(
    `
  a:
    runs-on: ubuntu-latest
    strategy: { matrix: { n: [1,2,3,4] } }
    steps: [{ run: ok }]
  b:
    needs: a
    runs-on: ubuntu-latest
    strategy: { matrix: { n: "\${{ fromJSON('[1,2,3,4]') }}" } }
    steps: [{ run: ok }]
`,
    { limits: { jobsPerRunMax: 6 } },
  );
  const run = await bench.run('w');
  expect(run.jobs.map((job) => job.id)).toEqual(['a:1', 'a:2', 'a:3', 'a:4', 'b']);
  expect(run.conclusion).toBe('failure');
});

const EVALUATED = `
  list: { runs-on: ubuntu-latest, outputs: { m: '\${{ steps.o.outputs.m }}' }, steps: [{ id: o, run: 'set m {"a":[1,2]}' }] }
  t:
    needs: list
    runs-on: ubuntu-latest
    strategy: { matrix: '\${{ fromJSON(needs.list.outputs.m) }}' }
    steps: [{ run: ok }]
`;

test.each([
  [{ a: ['2'] }, 'success', ['list success', 't:1 success'], []],
  [{ a: ['99'] }, 'failure', ['list success', 't skipped'], ['(a: 1), (a: 2)']],
  [{ c: ['1'] }, 'failure', ['list success', 't skipped'], ['(a: 1), (a: 2)']],
])(
  'of a matrix that only the run knows %j leaves what it names, else the run fails',
  async (matrix, conclusion, jobs, matrixJobs) => {
    await using bench = await benchOf(EVALUATED);
    const { run: queued } = await bench.service.start({ workflow: 'w', matrix });
    const run = await bench.events.completed(queued.id);
    expect(run.conclusion).toBe(conclusion);
    expect(run.jobs.map((job) => `${job.id} ${job.conclusion}`)).toEqual(jobs);
    const messages = bench.service
      .annotations(run.id)
      .map(({ level, message }) => `${level} ${message}`);
    for (const text of matrixJobs) expect(messages.join('\n')).toContain(text);
    expect(messages.some((text) => text.startsWith('error No leg of any matrix'))).toBe(
      matrixJobs.length > 0,
    );
  },
);

test('a key that one matrix has leaves another one whole, and legs of another value out', async () => {
  await using bench = await benchOf(`
  a: { runs-on: ubuntu-latest, strategy: { matrix: { os: [x, y] } }, steps: [{ run: ok }] }
  b: { runs-on: ubuntu-latest, strategy: { matrix: { node: [1, 2] } }, steps: [{ run: ok }] }
  c: { runs-on: ubuntu-latest, strategy: { matrix: { os: [z] } }, steps: [{ run: ok }] }
`);
  const { run: queued } = await bench.service.start({ workflow: 'w', matrix: { OS: ['x'] } });
  const run = await bench.events.completed(queued.id);
  expect(run.jobs.map((job) => `${job.id} ${job.conclusion}`).toSorted()).toEqual([
    'a:1 success',
    'b:1 success',
    'b:2 success',
    'c skipped',
  ]);
  expect(run.conclusion).toBe('success');
});

test.each([
  [{ os: ['q'] }, "'os' is never 'q'; it is linux, macos"],
  [{ os: ['macso'] }, 'did you mean macos?'],
  [
    { oss: ['linux'] },
    "has the key 'oss'; there are os (linux, macos), n (1, 2); did you mean os?",
  ],
  [
    { os: ['macos'], n: ['2'] },
    'no leg has os:macos and n:2 together; there are (os: linux, n: 1)',
  ],
])('%j, which no leg has, starts nothing', async (matrix, message) => {
  await using bench = await benchOf(`
  a:
    runs-on: ubuntu-latest
    strategy: { matrix: { os: [linux, macos], n: [1, 2], exclude: [{ os: macos, n: 2 }] } }
    steps: [{ run: ok }]
`);
  await expect(bench.service.start({ workflow: 'w', matrix })).rejects.toMatchObject({
    reason: 'INVALID_REQUEST',
    metadata: { field: 'matrix' },
    message: expect.stringContaining(message) as string,
  });
  expect(bench.service.list({ limit: 1 })).toEqual([]);
});

test('a run in which nothing ran is a failure, unless its own conditions say so', async () => {
  await using bench = await createBench({
    executor: new ScriptedExecutor(),
    overrides: { platform: 'linux' },
    workflows: {
      'foreign.yml': `on: workflow_dispatch\njobs:
  w: { runs-on: windows-latest, steps: [{ run: ok }] }
  after: { needs: w, runs-on: ubuntu-latest, steps: [{ run: ok }] }
  not: { if: false, runs-on: ubuntu-latest, steps: [{ run: ok }] }`,
      'partly.yml': `on: workflow_dispatch\njobs:
  w: { runs-on: windows-latest, steps: [{ run: ok }] }
  l: { runs-on: ubuntu-latest, steps: [{ run: ok }] }`,
      'condition.yml': `on: workflow_dispatch\njobs:
  not: { if: false, runs-on: ubuntu-latest, steps: [{ run: ok }] }
  after: { needs: not, runs-on: ubuntu-latest, steps: [{ run: ok }] }`,
    },
  });
  const foreign = await bench.run('foreign');
  expect([foreign.status, foreign.conclusion]).toEqual(['failed', 'failure']);
  expect(foreign.jobs.every(({ conclusion }) => conclusion === 'skipped')).toBe(true);
  expect(bench.errors(foreign.id).map(({ message }) => message)).toEqual([
    'Nothing ran: 1 job was left out by the runner, not by a condition of the workflow',
  ]);
  expect((await bench.run('partly')).conclusion).toBe('success');
  expect((await bench.run('condition')).conclusion).toBe('skipped');
});
