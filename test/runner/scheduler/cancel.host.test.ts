import { expect, test } from 'vitest';
import { createBench, type Bench, type BenchOptions } from '../support/scheduler-bench.ts';
import { ScriptedExecutor } from '../support/scripted-executor.ts';

async function benchOf(jobs: string, options: BenchOptions = {}): Promise<Bench> {
  return await createBench({
    limits: { jobsInProgressMax: 4 },
    ...options,
    workflows: { 'w.yml': `on: workflow_dispatch\njobs:\n${jobs}` },
  });
}

const started = (jobId: string) => (event: { type: string; jobId?: string }) =>
  event.type === 'step.started' && event.jobId === jobId;

test('in progress: jobs stop, what needs them is skipped, always() resists and still starts', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await benchOf(
    `
  a:
    runs-on: ubuntu-latest
    steps:
      - run: wait never
      - run: say never
      - if: always()
        run: say cleaned
  resisting:
    if: always()
    runs-on: ubuntu-latest
    steps: [{ run: wait resist }]
  b:
    needs: a
    runs-on: ubuntu-latest
    steps: [{ run: ok }]
  c:
    needs: a
    if: cancelled()
    runs-on: ubuntu-latest
    steps: [{ run: 'say \${{ needs.a.result }}' }]
`,
    { executor },
  );
  const { run } = await bench.service.start({ workflow: 'w' });
  await bench.events.when(started('a'));
  await bench.events.when(started('resisting'));
  const answer = await bench.service.cancel(run.id);
  expect(answer).toEqual({
    id: run.id,
    status: 'in_progress',
    cancelRequestedAt: bench.service.get(run.id)?.cancelRequestedAt,
  });
  await bench.events.when((event) => event.type === 'job.completed' && event.jobId === 'c');
  expect(bench.service.get(run.id)?.jobs[1]?.status).toBe('in_progress');
  executor.open('resist');
  const end = await bench.events.completed(run.id);
  expect(end).toMatchObject({ status: 'cancelled', conclusion: 'cancelled' });
  expect(end.jobs.map((job) => [job.id, job.conclusion])).toEqual([
    ['a', 'cancelled'],
    ['resisting', 'success'],
    ['b', 'skipped'],
    ['c', 'success'],
  ]);
  expect(end.jobs[0]?.steps.map((step) => step.conclusion)).toEqual([
    'cancelled',
    'skipped',
    'success',
  ]);
  expect(bench.events.lines(run.id, 'c', 1)).toEqual(['cancelled']);
  await expect(bench.service.cancel(run.id)).rejects.toMatchObject({
    reason: 'RUN_NOT_CANCELLABLE',
  });
  await expect(bench.service.cancel('nobody')).rejects.toMatchObject({ reason: 'RUN_NOT_FOUND' });
  expect(bench.problems).toEqual([]);
});

test('the second call kills, also what resists; nothing starts any more', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await benchOf(
    `
  a:
    if: always()
    runs-on: ubuntu-latest
    steps: [{ run: stay never }]
  b:
    needs: a
    if: always()
    runs-on: ubuntu-latest
    steps: [{ run: ok }]
`,
    { executor },
  );
  const { run } = await bench.service.start({ workflow: 'w' });
  await bench.events.when(started('a'));
  await bench.service.cancel(run.id);
  expect(bench.service.get(run.id)?.jobs[0]?.status).toBe('in_progress');
  expect((await bench.service.cancel(run.id)).cancelRequestedAt).toBe(
    bench.service.get(run.id)?.cancelRequestedAt,
  );
  const end = await bench.events.completed(run.id);
  expect(end.jobs.map((job) => job.conclusion)).toEqual(['cancelled', 'cancelled']);
  expect(end.status).toBe('cancelled');
});

test('cancel-timeout-minutes kills a job that does not stop', async () => {
  await using bench = await benchOf(
    `
  a:
    cancel-timeout-minutes: 0.005
    runs-on: ubuntu-latest
    steps: [{ run: stay never }]
`,
    { executor: new ScriptedExecutor() },
  );
  const { run } = await bench.service.start({ workflow: 'w' });
  await bench.events.when(started('a'));
  await bench.service.cancel(run.id);
  const end = await bench.events.completed(run.id);
  expect(end.jobs[0]?.conclusion).toBe('cancelled');
});

test('a queued run is cancelled at once, without having started', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await benchOf(
    `
  a:
    runs-on: ubuntu-latest
    steps: [{ run: wait gate }]
`,
    { executor, limits: { runsInProgressMax: 1 } },
  );
  const first = (await bench.service.start({ workflow: 'w' })).run;
  const second = (await bench.service.start({ workflow: 'w' })).run;
  expect(await bench.service.cancel(second.id)).toMatchObject({ status: 'cancelled' });
  expect(bench.events.story(second.id)).toEqual(['job.completed a', 'run.completed']);
  expect(bench.service.get(second.id)).toMatchObject({
    status: 'cancelled',
    conclusion: 'cancelled',
  });
  executor.open('gate');
  expect((await bench.events.completed(first.id)).conclusion).toBe('success');
});

test('real processes: the group is interrupted, always() steps run, nothing is left', async () => {
  await using bench = await benchOf(`
  a:
    runs-on: ubuntu-latest
    steps:
      - run: |
          trap 'echo interrupted; exit 1' INT
          echo ready
          while true; do sleep 0.05; done
      - run: echo not me
      - if: cancelled()
        run: echo cleaned
`);
  const { run } = await bench.service.start({ workflow: 'w' });
  await bench.events.when((event) => event.type === 'step.log' && event.line === 'ready');
  await bench.service.cancel(run.id);
  const end = await bench.events.completed(run.id);
  expect(end.status).toBe('cancelled');
  expect(end.jobs[0]?.steps.map((step) => step.conclusion)).toEqual([
    'cancelled',
    'skipped',
    'success',
  ]);
  expect(bench.events.lines(run.id, 'a', 1)).toContain('interrupted');
  expect(bench.events.lines(run.id, 'a', 3)).toEqual(['cleaned']);
});
