import { expect, test } from 'vitest';
import type { Conclusion, Job, WorkflowRun } from '../../model/run.ts';
import { jobToShow } from './render-run.ts';

function shown(run: Conclusion | undefined, ...jobs: readonly (Conclusion | undefined)[]) {
  const all = jobs.map((conclusion, index) => ({
    id: `job-${index}`,
    status: conclusion === undefined ? 'in_progress' : 'completed',
    ...(conclusion === undefined ? {} : { conclusion }),
    ...(conclusion === 'skipped' ? {} : { startedAt: '2026-01-01T00:00:00.000Z' }),
  })) as unknown as Job[];
  return jobToShow({ conclusion: run, jobs: all } as unknown as WorkflowRun)?.id;
}

test('of a run that failed by a timeout the job that timed out is shown', () => {
  expect(shown('failure', 'success', 'cancelled', 'skipped')).toBe('job-1');
  expect(shown('failure', 'cancelled', 'success', 'failure')).toBe('job-2');
  expect(shown(undefined, 'success', 'cancelled', undefined)).toBe('job-2');
  // Who cancelled the run knows why.
  expect(shown('cancelled', 'skipped', 'success', 'cancelled')).toBe('job-1');
  expect(shown('success', 'skipped', 'success')).toBe('job-1');
});
