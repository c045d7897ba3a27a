/**
 * The scheduler against a slow reference that knows neither time nor promises: random graphs of jobs,
 * the same conclusions.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Conclusion } from '../../../src/runner/model/run.ts';
import { byLength } from '../../support/test-length.ts';
import { createBench } from '../support/scheduler-bench.ts';
import { ScriptedExecutor } from '../support/scripted-executor.ts';

const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));

/** A condition, and what it means for a job with these ancestors and needs. */
const CONDITIONS: Readonly<
  Record<string, (ancestors: readonly Conclusion[], needs: readonly Conclusion[]) => boolean>
> = {
  '': (ancestors) => ancestors.every((each) => each === 'success'),
  'always()': () => true,
  'failure()': (ancestors) => ancestors.includes('failure'),
  'success() || failure()': (ancestors) =>
    ancestors.every((each) => each === 'success') || ancestors.includes('failure'),
  '!failure() && !cancelled()': (ancestors) => !ancestors.includes('failure'),
  false: () => false,
  'cancelled()': () => false,
  "contains(needs.*.result, 'skipped')": (ancestors, needs) =>
    ancestors.every((each) => each === 'success') && needs.includes('skipped'),
  "always() && contains(needs.*.result, 'skipped')": (_ancestors, needs) =>
    needs.includes('skipped'),
};

type RandomJob = {
  readonly needs: readonly number[];
  readonly condition: string;
  readonly isFailing: boolean;
  readonly isForgiven: boolean;
};

const graph: fc.Arbitrary<readonly RandomJob[]> = fc.integer({ min: 1, max: 9 }).chain((count) =>
  fc.tuple(
    ...Array.from({ length: count }, (_, index) =>
      fc.record({
        needs: fc.subarray(Array.from({ length: index }, (_each, other) => other)),
        condition: fc.constantFrom(...Object.keys(CONDITIONS)),
        isFailing: fc.boolean(),
        isForgiven: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, fc.boolean()),
      }),
    ),
  ),
);

function textOfGraph(jobs: readonly RandomJob[]): string {
  const texts = jobs.map((job, index) =>
    [
      `  j${index}:`,
      '    runs-on: x',
      `    needs: [${job.needs.map((need) => `j${need}`).join(', ')}]`,
      ...(job.condition === '' ? [] : [`    if: \${{ ${job.condition} }}`]),
      `    continue-on-error: ${job.isForgiven}`,
      `    steps: [{ run: ${job.isFailing ? 'fail' : 'ok'} }]`,
    ]
      .filter((line) => !line.endsWith('needs: []'))
      .join('\n'),
  );
  return `on: workflow_dispatch\njobs:\n${texts.join('\n')}\n`;
}

function reference(jobs: readonly RandomJob[]): readonly (readonly [Conclusion, Conclusion])[] {
  const ends: (readonly [Conclusion, Conclusion])[] = [];
  const ancestorsOf = (index: number): readonly number[] =>
    (jobs[index]?.needs ?? []).flatMap((need) => [need, ...ancestorsOf(need)]);
  for (const [index, job] of jobs.entries()) {
    const resultOf = (other: number): Conclusion => ends[other]?.[1] ?? 'skipped';
    const mayRun = CONDITIONS[job.condition]?.(
      ancestorsOf(index).map(resultOf),
      job.needs.map(resultOf),
    );
    if (mayRun !== true) ends.push(['skipped', 'skipped']);
    else if (!job.isFailing) ends.push(['success', 'success']);
    else ends.push(['failure', job.isForgiven ? 'success' : 'failure']);
  }
  return ends;
}

describe(`scheduler == reference (SEED=${SEED})`, () => {
  test('random graphs come to the same conclusions', async () => {
    await using bench = await createBench({
      executor: new ScriptedExecutor(),
      limits: { jobsInProgressMax: 3 },
    });
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(graph, async (jobs) => {
        runs += 1;
        const name = `g${runs}.yml`;
        await bench.project.workflow('g.yml', `name: ${name}\n${textOfGraph(jobs)}`);
        const run = await bench.run('g.yml');
        const expected = reference(jobs);
        expect(run.jobs.map((job) => job.conclusion)).toEqual(expected.map(([shown]) => shown));
        const results = expected.map(([, result]) => result);
        const conclusion = results.includes('failure')
          ? 'failure'
          : results.includes('success')
            ? 'success'
            : 'skipped';
        expect(run.conclusion).toBe(conclusion);
        expect(bench.errors(run.id)).toEqual([]);
      }),
      { seed: SEED, numRuns: byLength(40, 120) },
    );
    expect(bench.problems).toEqual([]);
  });
});
