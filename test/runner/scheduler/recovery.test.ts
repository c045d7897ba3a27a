import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createRunnerProject, type RunnerProject } from '../support/runner-project.ts';
import { createBench, textOf } from '../support/scheduler-bench.ts';
import { ScriptedExecutor } from '../support/scripted-executor.ts';

const WAITING = `
on: { workflow_dispatch: { inputs: { gate: { type: string, default: gate } } } }
jobs:
  a:
    runs-on: ubuntu-latest
    steps: [{ run: say before }, { run: "wait \${{ inputs.gate }}" }, { run: ok }]
  b: { needs: a, runs-on: ubuntu-latest, steps: [{ run: ok }] }
`;

test('shutdown cancels what is in progress, parks what is queued; a restart goes on with it', async () => {
  await using project = await createRunnerProject({ 'w.yml': WAITING });
  const executor = new ScriptedExecutor();
  const limits = { runsInProgressMax: 1 };
  const before = await createBench({ project, executor, limits });
  const first = (await before.service.start({ workflow: 'w' })).run;
  const second = (await before.service.start({ workflow: 'w', inputs: { gate: 'x' } })).run;
  await before.events.when((event) => event.type === 'step.started' && event.stepNumber === 2);
  await before.stop();
  expect(before.service.get(first.id)).toMatchObject({ status: 'cancelled' });
  expect(before.errors(first.id)).toEqual([
    { level: 'error', message: 'runner stopped', file: '.github/workflows/w.yml', title: 'w.yml' },
  ]);
  expect(before.service.get(second.id)?.status).toBe('queued');
  await expect(before.service.start({ workflow: 'w' })).rejects.toMatchObject({
    reason: 'SHUTTING_DOWN',
  });
  expect(before.problems).toEqual([]);

  // What is queued is of the workflow as it was.
  await project.workflow('w.yml', 'on: push\njobs: nonsense\n');
  executor.open('x');
  await using after = await createBench({ project, executor, limits });
  const end = await after.events.completed(second.id);
  expect(end).toMatchObject({ status: 'completed', inputs: { gate: 'x' }, runNumber: 2 });
  // What was shown before is what is shown after.
  expect(after.service.get(first.id)).toEqual(before.service.get(first.id));
  expect(after.service.annotations(first.id)).toEqual(before.service.annotations(first.id));
  expect(await textOf(after.service.logs(first.id, {}))).toContain('before');
  expect(after.service.list({ limit: 10 }).map((run) => run.id)).toEqual([second.id, first.id]);
  await project.workflow('w.yml', WAITING);
  expect((await after.run('w', { gate: 'x' })).runNumber).toBe(3);
  expect(after.problems).toEqual([]);
});

test('a run that was in progress when the process went away is cancelled, to its last step', async () => {
  await using project = await createRunnerProject({ 'w.yml': WAITING });
  const executor = new ScriptedExecutor();
  const before = await createBench({ project, executor });
  const { run } = await before.service.start({ workflow: 'w' });
  await before.events.when((event) => event.type === 'step.started' && event.stepNumber === 2);
  // As a crash: the store lets go of the folder, and the service is told nothing.
  await before.store.close();

  await using after = await createBench({ project, executor });
  const end = after.service.get(run.id);
  expect(end).toMatchObject({ status: 'cancelled', conclusion: 'cancelled', attempt: 1 });
  expect(end?.jobs.map((job) => [job.status, job.conclusion])).toEqual([
    ['completed', 'cancelled'],
    ['completed', 'cancelled'],
  ]);
  expect(end?.jobs[0]?.steps.map((step) => step.conclusion)).toEqual([
    'success',
    'cancelled',
    'skipped',
  ]);
  expect(after.errors(run.id)).toEqual([{ level: 'error', message: 'runner restarted' }]);
  expect(await textOf(after.service.logs(run.id, {}))).toContain('before');
  // It can be run again, and a second restart changes nothing.
  executor.open('gate');
  await after.service.rerun(run.id, {});
  expect((await after.events.completed(run.id, 2)).status).toBe('completed');
  expect(after.errors(run.id)).toEqual([]);
});

test('queued runs keep their order and their groups over a restart', async () => {
  const grouped = WAITING.replace('jobs:', 'concurrency: { group: g, queue: max }\njobs:');
  await using project = await createRunnerProject({ 'w.yml': grouped });
  const executor = new ScriptedExecutor();
  const before = await createBench({ project, executor });
  const ids: string[] = [];
  for (const gate of ['1', '2', '3', '4']) {
    ids.push((await before.service.start({ workflow: 'w', inputs: { gate } })).run.id);
  }
  await before.events.when((event) => event.type === 'step.started' && event.stepNumber === 2);
  await before.stop();
  const [, second = '', third = '', fourth = ''] = ids;

  await using after = await createBench({ project, executor });
  expect(after.service.counts().queued + after.service.counts().inProgress).toBe(3);
  executor.open('4');
  executor.open('3');
  executor.open('2');
  await after.events.completed(fourth);
  const ends = after.events.events.flatMap((event) =>
    event.type === 'run.completed' ? [event.runId] : [],
  );
  expect(ends).toEqual([second, third, fourth]);
});

/** As a runner left it that did not keep workflows yet. */
function forgetWorkflow(project: RunnerProject, runId: string): Promise<void> {
  return rm(join(project.dir, '.runner', 'runs', runId, 'workflow.json'));
}

test('a queued run whose workflow was not kept and is gone after the restart fails, with an annotation', async () => {
  await using project = await createRunnerProject({ 'w.yml': WAITING });
  const executor = new ScriptedExecutor();
  const limits = { runsInProgressMax: 1 };
  const before = await createBench({ project, executor, limits });
  await before.service.start({ workflow: 'w' });
  const second = (await before.service.start({ workflow: 'w' })).run;
  await before.stop();
  await forgetWorkflow(project, second.id);
  await project.workflow('w.yml', 'on: [');
  await using after = await createBench({ project, executor, limits });
  expect(after.service.get(second.id)).toMatchObject({ status: 'failed', conclusion: 'failure' });
  expect(after.errors(second.id)).toHaveLength(1);
});

test('jobs that a workflow that was not kept lost or won while a run was queued', async () => {
  await using project = await createRunnerProject({ 'w.yml': WAITING });
  const executor = new ScriptedExecutor();
  const limits = { runsInProgressMax: 1 };
  const before = await createBench({ project, executor, limits });
  await before.service.start({ workflow: 'w' });
  const second = (await before.service.start({ workflow: 'w' })).run;
  await before.stop();
  await forgetWorkflow(project, second.id);
  executor.open('gate');
  await project.workflow('w.yml', WAITING.replace('  b:', '  c:'));
  await using after = await createBench({ project, executor, limits });
  const end = await after.events.completed(second.id);
  expect(end.jobs.map((job) => [job.id, job.conclusion])).toEqual([
    ['a', 'success'],
    ['b', 'skipped'],
    ['c', 'success'],
  ]);
});
