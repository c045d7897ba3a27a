import { spawn } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { RunnerEvent } from '../../../src/runner/model/events.ts';
import { processesOf, randomFrom } from '../support/kill-tools.ts';
import { createRunnerProject, type RunnerProject } from '../support/runner-project.ts';
import { createBench, textOf, type Bench } from '../support/scheduler-bench.ts';

const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const KILLS = Number(process.env['KILLS'] ?? 4);
const CHILD = fileURLToPath(new URL('scheduler-child.ts', import.meta.url));
/** After the first event, at most so long until the kill. */
const KILL_WITHIN_MS = 1200;

const WORKFLOWS = {
  'graph.yml': `
on: workflow_dispatch
jobs:
  a: { runs-on: x, steps: [{ run: 'echo a; setsid sleep 300 &' }, { run: sleep 0.1 }] }
  b: { needs: a, runs-on: x, steps: [{ run: 'false' }, { if: always(), run: echo b }] }
  c: { needs: b, if: always(), runs-on: x, steps: [{ run: echo c }] }
`,
  'matrix.yml': `
on: workflow_dispatch
jobs:
  m:
    runs-on: x
    strategy: { fail-fast: false, matrix: { n: [1, 2, 3] } }
    steps: [{ run: 'echo \${{ matrix.n }}' }]
`,
  'chatty.yml': `
on: workflow_dispatch
jobs: { l: { runs-on: x, steps: [{ run: 'for i in $(seq 2000); do echo line $i; done' }] } }
`,
  'grouped.yml': `
on: workflow_dispatch
concurrency: { group: g, queue: max }
jobs: { g: { runs-on: x, steps: [{ run: 'echo begin; sleep 0.1; echo end' }] } }
`,
};

type Told =
  | RunnerEvent
  | { readonly type: 'ready' }
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'accepted' | 'cancelled'; readonly runId: string };

/** Lets a runner work and kills it; answers what it had told by then. */
async function workAndDie(dir: string, afterMs: number): Promise<readonly Told[]> {
  const child = spawn(process.execPath, [CHILD, dir], { stdio: ['ignore', 'pipe', 'inherit'] });
  const told: Told[] = [];
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  for await (const line of createInterface({ input: child.stdout })) {
    if (told.length === 0) setTimeout(() => child.kill('SIGKILL'), afterMs);
    // The pipe may end in the middle of a line.
    if (line.endsWith('}')) told.push(JSON.parse(line) as Told);
  }
  await exited;
  return told;
}

async function expectKept(bench: Bench, told: readonly Told[]): Promise<void> {
  const lines = new Map<string, string[]>();
  for (const event of told) {
    if (!('runId' in event)) continue;
    const run = bench.service.get(event.runId);
    expect(run, `${event.type} of a run that is there`).toBeDefined();
    const job = 'jobId' in event ? run?.jobs.find((each) => each.id === event.jobId) : undefined;
    switch (event.type) {
      case 'cancelled':
        expect(run?.status).toBe('cancelled');
        break;
      case 'run.completed':
        expect(run).toEqual(event.run);
        break;
      case 'job.completed':
        expect(job).toEqual(event.job);
        break;
      case 'step.completed':
        expect(job?.steps.find((step) => step.number === event.stepNumber)).toEqual(event.step);
        break;
      case 'step.log': {
        const key = `${event.runId} ${event.jobId} ${event.stepNumber}`;
        lines.set(key, [...(lines.get(key) ?? []), event.line]);
        break;
      }
      default:
    }
  }
  for (const [key, announced] of lines) {
    const [runId = '', jobId = '', step = ''] = key.split(' ');
    const query = { jobId, stepNumber: Number(step) };
    const text = await textOf(bench.service.logs(runId, query));
    const kept = text.split('\n').slice(2);
    expect(kept.slice(0, announced.length)).toEqual(announced);
  }
}

/** Runs that had begun and whose end was not told: it may be on the disk all the same. */
function expectSettled(bench: Bench, interrupted: ReadonlySet<string>): number {
  let restarted = 0;
  for (const id of interrupted) {
    const run = bench.service.get(id);
    expect(run?.conclusion, id).toBeDefined();
    if (bench.errors(id).some(({ message }) => message === 'runner restarted')) {
      restarted += 1;
      expect(run, id).toMatchObject({ status: 'cancelled', conclusion: 'cancelled' });
    }
    expect(run?.jobs.every((job) => job.status === 'completed')).toBe(true);
    const steps = run?.jobs.flatMap((job) => job.steps) ?? [];
    expect(steps.every((step) => step.status === 'completed')).toBe(true);
  }
  return restarted;
}

/** Answers how many runs the kill interrupted. */
async function killOnce(project: RunnerProject, afterMs: number): Promise<number> {
  const told = await workAndDie(project.dir, afterMs);
  const refused = told.flatMap((each) => (each.type === 'refused' ? [each.message] : []));
  expect(refused.filter((message) => !message.includes('queued already'))).toEqual([]);
  const started = new Set<string>();
  for (const event of told) {
    if (event.type === 'run.started') started.add(event.runId);
    if (event.type === 'run.completed') started.delete(event.runId);
  }
  await using bench = await createBench({ project, limits: { runsInProgressMax: 3 } });
  // Before anything that was queued can have gone on: nothing was awaited.
  await expectKept(bench, told);
  const restarted = expectSettled(bench, started);
  const waiting = bench.service
    .list({ limit: 10_000 })
    .filter((run) => run.conclusion === undefined);
  for (const run of waiting) await bench.events.completed(run.id);
  for (const run of bench.service.list({ limit: 10_000 })) {
    expect(run.conclusion, run.id).toBeDefined();
  }
  expect(bench.problems.filter((problem) => !problem.includes('torn'))).toEqual([]);
  await bench.stop();
  const left = await readdir(join(project.dir, '.runner', 'jobs')).catch(() => []);
  expect(left).toEqual([]);
  expect(await processesOf(project.dir)).toEqual([]);
  return restarted;
}

describe(`kill -9 of a runner (SEED=${SEED})`, () => {
  test(
    'what was announced is kept, nothing is left in progress, queued runs go on (C3)',
    async () => {
      const random = randomFrom(SEED);
      await using project = await createRunnerProject(WORKFLOWS);
      let restarted = 0;
      for (let kill = 0; kill < KILLS; kill += 1) {
        restarted += await killOnce(project, Math.floor(random() * KILL_WITHIN_MS));
      }
      // The kills met something.
      expect(restarted).toBeGreaterThan(0);
    },
    KILLS * 30_000,
  );
});
