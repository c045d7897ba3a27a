import { expect, test } from 'vitest';
import { createBench } from '../support/scheduler-bench.ts';
import { ScriptedExecutor } from '../support/scripted-executor.ts';

const WAITING = `
on: { workflow_dispatch: { inputs: { gate: { type: string, default: gate } } } }
jobs:
  a:
    runs-on: ubuntu-latest
    strategy: { matrix: { n: [1, 2, 3, 4, 5, 6] } }
    steps: [{ run: "wait \${{ inputs.gate }}" }]
`;
const PLAIN = 'on: workflow_dispatch\njobs: { a: { runs-on: x, steps: [{ run: ok }] } }\n';

test('runs in progress and queued runs are limited; beyond them QUEUE_FULL', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await createBench({
    executor,
    limits: { runsInProgressMax: 2, queuedRunsMax: 3 },
    workflows: { 'w.yml': WAITING },
  });
  const ids: string[] = [];
  for (let count = 0; count < 2; count += 1) {
    ids.push((await bench.service.start({ workflow: 'w' })).run.id);
  }
  const [first = '', second = ''] = ids;
  await bench.events.when((event) => event.type === 'run.started' && event.runId === first);
  await bench.events.when((event) => event.type === 'run.started' && event.runId === second);
  // All at once: the places are counted before anything is awaited.
  const starts = await Promise.allSettled(
    Array.from({ length: 5 }, () => bench.service.start({ workflow: 'w' })),
  );
  const refused = starts.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  expect(refused).toMatchObject([{ reason: 'QUEUE_FULL' }, { reason: 'QUEUE_FULL' }]);
  expect(bench.service.counts()).toMatchObject({ queued: 3, inProgress: 2 });
  executor.open('gate');
  for (const run of bench.service.list({ limit: 10 })) await bench.events.completed(run.id);
});

test('jobs in progress are limited over all runs, and runs take turns (C1)', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await createBench({
    executor,
    limits: { jobsInProgressMax: 2, runsInProgressMax: 4 },
    workflows: { 'w.yml': WAITING },
  });
  const first = (await bench.service.start({ workflow: 'w' })).run.id;
  await bench.events.when((event) => event.type === 'job.started' && event.jobId === 'a:2');
  const second = (await bench.service.start({ workflow: 'w' })).run.id;
  await bench.events.when((event) => event.type === 'run.started' && event.runId === second);
  executor.open('gate');
  await bench.events.completed(first);
  await bench.events.completed(second);
  expect(executor.runningMax).toBe(2);
  const ofSecond = executor.requests.flatMap(({ runId }, at) => (runId === second ? [at] : []));
  // The first run had two jobs before the second one came; then they alternate. Of two that may begin
  // together the one whose folder is made sooner does.
  const turns = [3, 5, 7, 9, 10, 11];
  expect(executor.requests).toHaveLength(12);
  expect(ofSecond).toHaveLength(turns.length);
  for (const [n, at] of ofSecond.entries()) {
    expect(Math.abs(at - (turns[n] ?? 0)), `turns at ${ofSecond.join()}`).toBeLessThanOrEqual(1);
  }
});

test('runs are kept up to a number and an age; the oldest finished ones go, with all they left', async () => {
  let offsetMs = 0;
  const clock = { nowMs: () => Date.now() + offsetMs, monotonicMs: () => performance.now() };
  await using bench = await createBench({
    executor: new ScriptedExecutor(),
    limits: { retainedRunsMax: 3, retainedAgeMs: 60_000, jobsInProgressMax: 8 },
    workflows: { 'w.yml': PLAIN, 'wait.yml': WAITING },
    overrides: { clock },
  });
  const waiting = (await bench.service.start({ workflow: 'wait' })).run.id;
  const ids: string[] = [];
  for (let count = 0; count < 4; count += 1) ids.push((await bench.run('w')).id);
  const listed = (): readonly string[] => bench.service.list({ limit: 10 }).map((run) => run.id);
  // The run in progress counts, and is never removed.
  await expect.poll(listed).toEqual([ids[3], ids[2], waiting]);
  offsetMs = 61_000;
  const last = (await bench.run('w')).id;
  await expect.poll(listed).toEqual([last, waiting]);
  expect(bench.service.get(waiting)?.status).toBe('in_progress');
});

test('list: newest first, by status and workflow, a page at a time', async () => {
  await using bench = await createBench({
    executor: new ScriptedExecutor(),
    workflows: {
      'w.yml': PLAIN,
      'x.yml': PLAIN.replace('ok', 'fail').replace('on:', 'name: The X\non:'),
    },
  });
  const ids: string[] = [];
  for (const name of ['w', 'x', 'w', 'x']) ids.push((await bench.run(name)).id);
  const idsOf = (filter: Parameters<typeof bench.service.list>[0]): readonly number[] =>
    bench.service.list(filter).map((run) => ids.indexOf(run.id));
  expect(idsOf({ limit: 10 })).toEqual([3, 2, 1, 0]);
  expect(idsOf({ limit: 2 })).toEqual([3, 2]);
  expect(idsOf({ limit: 2, before: ids[2] })).toEqual([1, 0]);
  expect(idsOf({ limit: 10, status: 'failed' })).toEqual([3, 1]);
  expect(idsOf({ limit: 10, workflow: 'The X' })).toEqual([3, 1]);
  expect(idsOf({ limit: 10, workflow: 'x' })).toEqual([3, 1]);
  expect(idsOf({ limit: 10, workflow: 'w.yml', status: 'completed' })).toEqual([2, 0]);
});

test('removing the newest run does not give its number away, also after a restart', async () => {
  await using first = await createBench({
    executor: new ScriptedExecutor(),
    workflows: { 'w.yml': PLAIN },
  });
  await first.run('w');
  const { id } = await first.run('w');
  await first.service.remove(id);
  await first.stop();
  await using second = await createBench({
    project: first.project,
    executor: new ScriptedExecutor(),
  });
  expect((await second.run('w')).runNumber).toBe(3);
});
