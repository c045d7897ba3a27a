import { expect, test } from 'vitest';
import type { WorkflowRun } from '../../../src/runner/model/run.ts';
import { byLength } from '../../support/test-length.ts';
import { createBench } from '../support/scheduler-bench.ts';
import { ScriptedExecutor } from '../support/scripted-executor.ts';

/** Each end of a job is a look at the whole run. */
const MANY = byLength(100, 1_000);
const HEAD = 'on: workflow_dispatch\njobs:\n';

/** A job in a few lines: `keys` are more lines of it. */
function job(key: string, script: string, ...keys: readonly string[]): string {
  const lines = [`  ${key}:`, '    runs-on: ubuntu-latest', ...keys.map((each) => `    ${each}`)];
  return [...lines, '    steps:', `      - run: ${script}`, ''].join('\n');
}

function conclusions(run: WorkflowRun): Record<string, string | undefined> {
  return Object.fromEntries(run.jobs.map((each) => [each.id, each.conclusion]));
}

async function runOf(...jobs: readonly string[]): Promise<WorkflowRun> {
  await using bench = await createBench({
    workflows: { 'w.yml': HEAD + jobs.join('') },
    executor: new ScriptedExecutor(),
  });
  const run = await bench.run('w');
  expect(bench.problems).toEqual([]);
  return run;
}

test('a job starts the moment its own needs end, whatever else still runs', async () => {
  const executor = new ScriptedExecutor();
  await using bench = await createBench({
    limits: { jobsInProgressMax: 4 },
    executor,
    workflows: {
      'w.yml':
        HEAD +
        job('slow', 'wait slow') +
        job('quick', 'ok') +
        job('after', 'wait after', 'needs: quick') +
        job('last', 'ok', 'needs: [slow, after]'),
    },
  });
  const { run } = await bench.service.start({ workflow: 'w' });
  await bench.events.when((event) => event.type === 'step.started' && event.jobId === 'after');
  expect(bench.service.get(run.id)?.jobs.map((each) => each.status)).toEqual([
    'in_progress',
    'completed',
    'in_progress',
    'queued',
  ]);
  executor.open('after');
  executor.open('slow');
  const story = (await bench.events.completed(run.id), bench.events.story(run.id));
  expect(story.indexOf('job.started last')).toBeGreaterThan(story.indexOf('job.completed slow'));
});

test('a failure skips what needs it, near and far, and fails the run', async () => {
  const run = await runOf(
    job('a', 'fail'),
    job('b', 'ok', 'needs: a'),
    job('c', 'ok', 'needs: b'),
    job('d', 'ok'),
  );
  expect(run).toMatchObject({ status: 'failed', conclusion: 'failure' });
  expect(conclusions(run)).toEqual({ a: 'failure', b: 'skipped', c: 'skipped', d: 'success' });
});

test('always(), failure() and success() look at all jobs before, near and far', async () => {
  const run = await runOf(
    job('a', 'fail'),
    job('b', 'ok', 'needs: a', 'if: always()'),
    // b succeeded, but a before it did not.
    job('c', 'ok', 'needs: b'),
    job('d', 'ok', 'needs: b', 'if: failure()'),
    job('e', 'ok', 'needs: [a, b]', "if: success('b')"),
    job('f', 'ok', 'needs: [a, b]', "if: failure('b')"),
    job('g', 'ok', 'needs: [a, b]', "if: failure('a', 'b')"),
    job('h', 'ok', 'if: cancelled()'),
  );
  expect(conclusions(run)).toEqual({
    a: 'failure',
    b: 'success',
    c: 'skipped',
    d: 'success',
    e: 'success',
    f: 'skipped',
    g: 'success',
    h: 'skipped',
  });
});

test('a skipped need is neither success nor failure, and skips on', async () => {
  const run = await runOf(
    job('a', 'ok', 'if: false'),
    job('b', 'ok', 'needs: a'),
    job('c', 'ok', 'needs: a', 'if: failure()'),
    job('d', 'ok', 'needs: a', "if: always() && needs.a.result == 'skipped'"),
    job('e', 'ok', 'needs: d'),
    job('f', 'ok', 'needs: d', 'if: ${{ !failure() && !cancelled() }}'),
  );
  expect(conclusions(run)).toEqual({
    a: 'skipped',
    b: 'skipped',
    c: 'skipped',
    d: 'success',
    e: 'skipped',
    f: 'success',
  });
  expect(run).toMatchObject({ status: 'completed', conclusion: 'success' });
});

test('a run whose jobs are all skipped is skipped, and tells only their ends', async () => {
  await using bench = await createBench({
    workflows: { 'w.yml': HEAD + job('a', 'ok', 'if: false') + job('b', 'ok', 'needs: a') },
    executor: new ScriptedExecutor(),
  });
  const run = await bench.run('w');
  expect(run).toMatchObject({ status: 'completed', conclusion: 'skipped' });
  expect(bench.events.story(run.id)).toEqual([
    'run.started',
    'job.completed a',
    'job.completed b',
    'run.completed',
  ]);
});

test('continue-on-error of a job: it fails, the run and what needs it see success', async () => {
  const run = await runOf(
    job('a', 'fail', 'continue-on-error: true'),
    job('b', 'say ${{ needs.a.result }}', 'needs: a'),
    job('c', 'fail', "continue-on-error: ${{ vars.NO_SUCH == 'x' }}", 'needs: a'),
  );
  expect(conclusions(run)).toEqual({ a: 'failure', b: 'success', c: 'failure' });
  expect(run.conclusion).toBe('failure');
  const forgiven = await runOf(job('a', 'fail', 'continue-on-error: true'));
  expect(forgiven).toMatchObject({ status: 'completed', conclusion: 'success' });
});

test('needs has results and outputs of the own needs only', async () => {
  await using bench = await createBench({
    executor: new ScriptedExecutor(),
    workflows: {
      'w.yml': `${HEAD}
  a:
    runs-on: ubuntu-latest
    outputs: { word: '\${{ steps.s.outputs.w }}' }
    steps:
      - id: s
        run: set w green
  b:
    needs: a
    runs-on: ubuntu-latest
    steps:
      - run: say \${{ toJSON(needs) }}
  c:
    needs: b
    runs-on: ubuntu-latest
    steps:
      - run: say \${{ needs.a.outputs.word }}|\${{ needs.b.result }}
`,
    },
  });
  const run = await bench.run('w');
  expect(run.jobs[0]?.outputs).toEqual({ word: 'green' });
  const said = bench.events.lines(run.id, 'b', 1).join('\n');
  expect(JSON.parse(said)).toEqual({ a: { result: 'success', outputs: { word: 'green' } } });
  expect(bench.events.lines(run.id, 'c', 1)).toEqual(['|success']);
});

test('a key that cannot be evaluated fails its job, with an annotation, and nothing else', async () => {
  await using bench = await createBench({
    executor: new ScriptedExecutor(),
    workflows: {
      'w.yml':
        HEAD +
        job('a', 'ok', "timeout-minutes: ${{ fromJSON('-1') }}") +
        job('b', 'ok') +
        job('c', 'ok', "if: fromJSON('{') == 1"),
    },
  });
  const run = await bench.run('w');
  expect(conclusions(run)).toEqual({ a: 'failure', b: 'success', c: 'failure' });
  const annotated = bench.service
    .annotations(run.id)
    .map(({ level, jobId }) => `${level} ${jobId}`);
  expect(new Set(annotated)).toEqual(new Set(['error a', 'warning undefined', 'error c']));
  expect(bench.problems).toEqual([]);
});

// Each of them has a folder made and removed, on a disk that others use, too.
test(`${MANY} jobs in a chain and ${MANY} side by side end`, { timeout: 120_000 }, async () => {
  const side = Array.from({ length: MANY }, (_, index) => job(`j${index}`, 'ok'));
  const chain = Array.from({ length: MANY }, (_, index) =>
    index === 0 ? job('j0', 'ok') : job(`j${index}`, 'ok', `needs: j${index - 1}`),
  );
  for (const jobs of [side, chain]) {
    const run = await runOf(...jobs);
    expect(run.conclusion).toBe('success');
    expect(run.jobs.filter((each) => each.conclusion === 'success')).toHaveLength(MANY);
  }
});
