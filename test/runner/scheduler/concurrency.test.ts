import { expect, test } from 'vitest';
import { createBench, type Bench } from '../support/scheduler-bench.ts';
import { ScriptedExecutor } from '../support/scripted-executor.ts';

async function benchOf(
  executor: ScriptedExecutor,
  concurrency: string,
  jobKeys = '',
): Promise<Bench> {
  return await createBench({
    executor,
    limits: { runsInProgressMax: 8, jobsInProgressMax: 8 },
    workflows: {
      'w.yml': `
on: { workflow_dispatch: { inputs: { gate: { type: string } } } }
${concurrency}
jobs:
  a:
    runs-on: ubuntu-latest
    ${jobKeys}
    steps: [{ run: "wait \${{ inputs.gate }}" }]
`,
      'upper.yml': `
on: { workflow_dispatch: { inputs: { gate: { type: string } } } }
concurrency: DEPLOY
jobs:
  a:
    runs-on: ubuntu-latest
    steps: [{ run: "wait \${{ inputs.gate }}" }]
`,
    },
  });
}

async function start(bench: Bench, gate: string, workflow = 'w'): Promise<string> {
  return (await bench.service.start({ workflow, inputs: { gate } })).run.id;
}

async function started(bench: Bench, id: string): Promise<void> {
  await bench.events.when((event) => event.type === 'job.started' && event.runId === id);
}

test('one of a group goes on, one waits, a newcomer takes the place of the one that waits (C2)', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await benchOf(executor, 'concurrency: deploy');
  const first = await start(bench, 'first');
  await started(bench, first);
  const second = await start(bench, 'second');
  // Names of groups compare without case, over all workflows.
  const third = await start(bench, 'third', 'upper');
  const evicted = await bench.events.completed(second);
  expect(evicted).toMatchObject({ status: 'cancelled', conclusion: 'cancelled' });
  expect(evicted.jobs.map((job) => job.conclusion)).toEqual(['cancelled']);
  expect(bench.errors(second)).toEqual([
    {
      level: 'error',
      message: 'Canceling since a higher priority waiting request for DEPLOY exists',
      file: '.github/workflows/w.yml',
      title: bench.service.get(second)?.name,
    },
  ]);
  expect(bench.events.story(second)).toEqual(['job.completed a', 'run.completed']);
  expect(bench.service.get(third)?.status).toBe('queued');
  executor.open('first');
  await started(bench, third);
  expect(bench.service.get(first)?.status).toBe('completed');
  executor.open('third');
  expect((await bench.events.completed(third)).conclusion).toBe('success');
});

test('cancel-in-progress cancels the one that goes on', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await benchOf(
    executor,
    "concurrency: { group: 'g-${{ github.workflow }}', cancel-in-progress: true }",
  );
  const first = await start(bench, 'first');
  await started(bench, first);
  const second = await start(bench, 'second');
  expect((await bench.events.completed(first)).status).toBe('cancelled');
  await started(bench, second);
  executor.open('second');
  expect((await bench.events.completed(second)).status).toBe('completed');
});

test('queue: max keeps them all, in order', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await benchOf(executor, 'concurrency: { group: g, queue: max }');
  const ids = [];
  for (const gate of ['1', '2', '3', '4']) ids.push(await start(bench, gate));
  for (const [index, id] of ids.entries()) {
    await started(bench, id);
    expect(bench.service.counts()).toMatchObject({ queued: 3 - index, inProgress: 1 });
    executor.open(String(index + 1));
    expect((await bench.events.completed(id)).status).toBe('completed');
  }
});

test('groups of jobs: the others of the run go on, the evicted one is cancelled', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await benchOf(executor, '', 'concurrency: { group: J }');
  const first = await start(bench, 'first');
  await started(bench, first);
  const second = await start(bench, 'second');
  const third = await start(bench, 'third');
  const evicted = await bench.events.completed(second);
  expect(evicted.jobs[0]).toMatchObject({ conclusion: 'cancelled', steps: [] });
  expect(evicted).toMatchObject({ status: 'cancelled' });
  expect(bench.service.get(third)?.jobs[0]?.status).toBe('queued');
  executor.open('first');
  executor.open('third');
  expect((await bench.events.completed(third)).status).toBe('completed');
});

test('the same group at the top and at a job is told instead of waiting for ever (C2)', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await benchOf(executor, 'concurrency: Same', 'concurrency: same');
  const id = await start(bench, 'never');
  const run = await bench.events.completed(id);
  expect(run.status).toBe('cancelled');
  expect(bench.errors(id)).toEqual([
    {
      level: 'error',
      message:
        "Canceling since a deadlock was detected for concurrency group: 'same' between a top level workflow and 'a'",
      jobId: 'a',
      file: '.github/workflows/w.yml',
      title: 'a',
    },
  ]);
});

test('a cancelled run that waits for its group leaves the line', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await benchOf(executor, 'concurrency: { group: g, queue: max }');
  const first = await start(bench, 'first');
  const second = await start(bench, 'second');
  const third = await start(bench, 'third');
  expect((await bench.service.cancel(second)).status).toBe('cancelled');
  executor.open('first');
  executor.open('third');
  expect((await bench.events.completed(first)).status).toBe('completed');
  expect((await bench.events.completed(third)).status).toBe('completed');
});

test('a run that has a group gets a slot when the jobs of all runs with slots wait for that group', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await createBench({
    executor,
    limits: { runsInProgressMax: 1 },
    workflows: {
      'job.yml': `
on: workflow_dispatch
jobs:
  first: { runs-on: x, steps: [{ run: wait begin }] }
  wanting: { needs: first, concurrency: g, runs-on: x, steps: [{ run: ok }] }
`,
      'run.yml': `
on: workflow_dispatch
concurrency: G
jobs: { a: { runs-on: x, steps: [{ run: ok }] } }
`,
    },
  });
  const wanting = (await bench.service.start({ workflow: 'job' })).run.id;
  await started(bench, wanting);
  const holding = (await bench.service.start({ workflow: 'run' })).run.id;
  executor.open('begin');
  expect((await bench.events.completed(holding)).status).toBe('completed');
  expect((await bench.events.completed(wanting)).status).toBe('completed');
});

test('runs in the project itself take turns, unless their concurrency says otherwise; jobs always do', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await createBench({
    executor,
    limits: { jobsInProgressMax: 4 },
    workflows: {
      'w.yml': 'on: workflow_dispatch\njobs: { a: { runs-on: x, steps: [{ run: wait gate }] } }\n',
      'own.yml':
        'on: workflow_dispatch\nconcurrency: own\njobs: { a: { runs-on: x, steps: [{ run: ok }] } }\n',
    },
  });
  const sandbox = { strategy: 'none' } as const;
  const first = (await bench.service.start({ workflow: 'w', sandbox })).run.id;
  await started(bench, first);
  const second = (await bench.service.start({ workflow: 'w', sandbox })).run.id;
  const own = (await bench.service.start({ workflow: 'own', sandbox })).run.id;
  await bench.events.when((event) => event.type === 'run.started' && event.runId === own);
  expect(bench.service.get(second)?.status).toBe('queued');
  expect(bench.service.get(own)).toMatchObject({
    jobs: [{ status: 'queued' }],
    sandbox: { path: bench.project.dir, strategy: 'none' },
  });
  executor.open('gate');
  expect((await bench.events.completed(own)).status).toBe('completed');
  await bench.events.completed(second);
  const story = bench.events.events.flatMap((event) =>
    event.type.startsWith('run.') && event.runId !== own ? [`${event.type} ${event.runId}`] : [],
  );
  expect(story).toEqual([
    `run.started ${first}`,
    `run.completed ${first}`,
    `run.started ${second}`,
    `run.completed ${second}`,
  ]);
});

test('cancel-in-progress at a job cancels the job that goes on, and its run with it', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await benchOf(
    executor,
    '',
    'concurrency: { group: j, cancel-in-progress: true }',
  );
  const first = await start(bench, 'first');
  await started(bench, first);
  const second = await start(bench, 'second');
  const end = await bench.events.completed(first);
  expect(end).toMatchObject({ status: 'cancelled', conclusion: 'cancelled' });
  expect(end.cancelRequestedAt).toBeUndefined();
  executor.open('second');
  expect((await bench.events.completed(second)).status).toBe('completed');
});
