// Yields milliseconds of what the scheduler and the disk add to a run: jobs are done in this process and
// do nothing. A run of one job, matrices of 50 and 250 matrix jobs, 1,000 jobs side by side and in a chain.
// Run: npm run bench -- runner-scheduler
import type { JobExecutor } from '../src/runner/model/execution.ts';
import { createBench } from '../test/runner/support/scheduler-bench.ts';

const HEAD = 'on: workflow_dispatch\njobs:\n';
const STEPS = "    runs-on: ubuntu-latest\n    steps: [{ run: 'true' }]\n";

/** Reports one step that succeeds at once. */
const executor: JobExecutor = {
  execute: (_request, report) => {
    report.stepsKnown([{ number: 1, name: 'step' }]);
    report.stepStarted(1, 'step');
    const conclusion = 'success';
    report.stepCompleted(1, { conclusion, outcome: conclusion, outputs: {}, name: 'step' });
    return { outcome: Promise.resolve({ conclusion, outputs: {} }), cancel: () => undefined };
  },
};

function matrix(legs: number): string {
  const values = Array.from({ length: legs }, (_, index) => index).join(', ');
  return `${HEAD}  a:\n    strategy: { matrix: { n: [${values}] } }\n${STEPS}`;
}

function jobs(count: number, isChain: boolean): string {
  const each = Array.from({ length: count }, (_, index) => {
    const needs = isChain && index > 0 ? `    needs: j${index - 1}\n` : '';
    return `  j${index}:\n${needs}${STEPS}`;
  });
  return HEAD + each.join('');
}

const bench = await createBench({
  executor,
  workflows: {
    'one.yml': matrix(1),
    'legs-50.yml': matrix(50),
    'legs-250.yml': matrix(250),
    'side-1000.yml': jobs(1000, false),
    'chain-1000.yml': jobs(1000, true),
  },
});

for (const [workflow, rounds] of [
  ['one', 100],
  ['legs-50', 20],
  ['legs-250', 9],
  ['side-1000', 5],
  ['chain-1000', 5],
] as const) {
  const times: number[] = [];
  // The first one reads the workflow.
  await bench.run(workflow);
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    await bench.run(workflow);
    times.push(performance.now() - start);
    bench.events.events.length = 0;
  }
  times.sort((a, b) => a - b);
  const [p50, worst] = [times[rounds >> 1] ?? 0, times.at(-1) ?? 0];
  console.log(
    JSON.stringify({ workflow, p50Ms: p50.toFixed(1), worstMs: worst.toFixed(1), rounds }),
  );
}

await bench[Symbol.asyncDispose]();
