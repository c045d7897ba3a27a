import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { WorkflowRun } from '../../../src/runner/model/run.ts';
import { createBench, textOf, type Bench } from '../support/scheduler-bench.ts';
import { ScriptedExecutor } from '../support/scripted-executor.ts';

const WORKFLOW = `
on: workflow_dispatch
jobs:
  good:
    runs-on: ubuntu-latest
    outputs: { w: "\${{ steps.s.outputs.w }}" }
    steps: [{ id: s, run: set w kept }, { run: "say attempt \${{ github.run_attempt }}" }]
  flaky:
    needs: good
    runs-on: ubuntu-latest
    strategy: { fail-fast: false, matrix: { n: [1, 2] } }
    steps:
      - run: "\${{ matrix.n == 2 && github.run_attempt == '1' && 'fail' || format('say {0}', needs.good.outputs.w) }}"
  call:
    uses: ./.github/workflows/called.yml
  after:
    needs: [flaky, call]
    runs-on: ubuntu-latest
    steps: [{ run: "say \${{ needs.call.outputs.v }}" }]
`;
const CALLED = `
on: { workflow_call: { outputs: { v: { value: "\${{ jobs.x.outputs.v }}" } } } }
jobs:
  x:
    runs-on: ubuntu-latest
    outputs: { v: "\${{ steps.s.outputs.v }}" }
    steps: [{ id: s, run: set v deep }]
  y: { runs-on: ubuntu-latest, needs: x, steps: [{ run: ok }] }
`;

async function bench(): Promise<Bench> {
  return await createBench({
    executor: new ScriptedExecutor(),
    workflows: { 'w.yml': WORKFLOW, 'called.yml': CALLED },
  });
}

function table(run: WorkflowRun): readonly string[] {
  return run.jobs.map((job) => `${job.id} ${job.conclusion ?? job.status} ${job.attempt}`);
}

test('failedOnly runs failed legs and what needs them; the rest keeps what it had', async () => {
  await using made = await bench();
  const first = await made.run('w');
  expect(table(first)).toEqual([
    'good success 1',
    'flaky:1 success 1',
    'flaky:2 failure 1',
    'call/x success 1',
    'call/y success 1',
    'after skipped 1',
  ]);
  const queued = await made.service.rerun(first.id, { failedOnly: true });
  expect(queued).toMatchObject({ id: first.id, attempt: 2, status: 'queued', runNumber: 1 });
  expect(queued.conclusion).toBeUndefined();
  expect(table(queued)).toEqual([
    'good success 1',
    'flaky:1 success 1',
    'flaky:2 queued 2',
    'call/x success 1',
    'call/y success 1',
    'after queued 2',
  ]);
  const second = await made.events.completed(first.id, 2);
  expect(table(second)).toEqual([
    'good success 1',
    'flaky:1 success 1',
    'flaky:2 success 2',
    'call/x success 1',
    'call/y success 1',
    'after success 2',
  ]);
  expect(second).toMatchObject({ status: 'completed', attempt: 2 });
  // Outputs of what was kept reach what runs again, through a called workflow, too.
  expect(made.events.lines(first.id, 'flaky:2', 1)).toEqual(['kept']);
  expect(made.events.lines(first.id, 'after', 1)).toEqual(['deep']);
  expect(made.problems).toEqual([]);
  await expect(made.service.rerun(first.id, { failedOnly: true })).rejects.toMatchObject({
    reason: 'INVALID_REQUEST',
  });
});

test('job: one job, with what needs it; a caller stands for its jobs', async () => {
  await using made = await bench();
  const first = await made.run('w');
  await made.service.rerun(first.id, { job: 'call/x' });
  const second = await made.events.completed(first.id, 2);
  expect(table(second)).toEqual([
    'good success 1',
    'flaky:1 success 1',
    'flaky:2 failure 1',
    'call/x success 2',
    'call/y success 2',
    'after skipped 2',
  ]);
  await made.service.rerun(first.id, { job: 'flaky' });
  const third = await made.events.completed(first.id, 3);
  expect(table(third)).toEqual([
    'good success 1',
    'flaky:1 success 3',
    'flaky:2 success 3',
    'call/x success 2',
    'call/y success 2',
    'after success 3',
  ]);
  await expect(made.service.rerun(first.id, { job: 'nobody' })).rejects.toMatchObject({
    reason: 'INVALID_REQUEST',
    metadata: { field: 'job' },
  });
});

test('all: everything again, logs replaced', async () => {
  await using made = await bench();
  const first = await made.run('w');
  expect(await textOf(made.service.logs(first.id, { jobId: 'good' }))).toContain('attempt 1');
  await made.service.rerun(first.id, {});
  const second = await made.events.completed(first.id, 2);
  expect(table(second)).toEqual([
    'good success 2',
    'flaky:1 success 2',
    'flaky:2 success 2',
    'call/x success 2',
    'call/y success 2',
    'after success 2',
  ]);
  const log = await textOf(made.service.logs(first.id, { jobId: 'good' }));
  expect(log).toContain('attempt 2');
  expect(log).not.toContain('attempt 1');
});

const CALL_REPLACED = WORKFLOW.replace(
  '  call:\n    uses: ./.github/workflows/called.yml\n',
  '  call: { runs-on: ubuntu-latest, steps: [{ run: ok }] }\n',
);

test('what runs again are the workflow and the called ones of the first attempt, whatever became of them', async () => {
  await using made = await bench();
  const first = await made.run('w');
  await made.project.workflow('w.yml', CALL_REPLACED);
  await made.project.workflow('called.yml', 'on: push\njobs: nonsense\n');
  await made.service.rerun(first.id, { job: 'call' });
  const second = await made.events.completed(first.id, 2);
  expect(table(second).slice(3)).toEqual([
    'call/x success 2',
    'call/y success 2',
    'after skipped 2',
  ]);
  await rm(join(made.project.dir, '.github'), { recursive: true });
  await made.stop();
  await using again = await createBench({
    project: made.project,
    executor: new ScriptedExecutor(),
  });
  await again.service.rerun(first.id, {});
  expect(table(await again.events.completed(first.id, 3))).toHaveLength(6);
  expect(again.problems).toEqual([]);
});

test('a run that was recorded without its workflow takes the file of now', async () => {
  await using made = await bench();
  const first = await made.run('w');
  await rm(join(made.project.dir, '.runner', 'runs', first.id, 'workflow.json'));
  await made.project.workflow('w.yml', CALL_REPLACED);
  await made.service.rerun(first.id, {});
  expect(table(await made.events.completed(first.id, 2))[3]).toBe('call success 2');
});

test('a kept workflow that cannot be read is an error, not another workflow', async () => {
  await using made = await bench();
  const first = await made.run('w');
  const kept = join('.runner', 'runs', first.id, 'workflow.json');
  for (const text of ['{', '{}', 'null', '{"format":1,"sources":[{"text":"x"}]}']) {
    await made.project.write(kept, text);
    await expect(made.service.rerun(first.id, {})).rejects.toMatchObject({
      reason: 'STORE_UNAVAILABLE',
    });
  }
  expect(made.service.get(first.id)?.attempt).toBe(1);
});

test('only a finished run can be run again or removed', async () => {
  const executor = new ScriptedExecutor();
  await using made = await createBench({
    executor,
    workflows: {
      'w.yml': 'on: push\njobs: { a: { runs-on: x, steps: [{ run: wait gate }] } }\n',
    },
  });
  const { run, warnings } = await made.service.start({ workflow: 'w' });
  expect(warnings).toHaveLength(1);
  await expect(made.service.rerun(run.id, {})).rejects.toMatchObject({
    reason: 'RUN_NOT_FINISHED',
  });
  await expect(made.service.remove(run.id)).rejects.toMatchObject({ reason: 'RUN_NOT_FINISHED' });
  executor.open('gate');
  await made.events.completed(run.id);
  await made.service.remove(run.id);
  expect(made.service.get(run.id)).toBeUndefined();
  await expect(made.service.rerun(run.id, {})).rejects.toMatchObject({ reason: 'RUN_NOT_FOUND' });
  const next = await made.run('w');
  expect(next.runNumber).toBe(2);
});
