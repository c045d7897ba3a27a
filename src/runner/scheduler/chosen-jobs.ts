import { AppError } from '../../shared/app-error.ts';
import { meant } from '../../shared/text/nearest-name.ts';
import type { JobDefinition, Workflow } from '../model/workflow.ts';

/**
 * The workflow with the jobs of these keys and all that they need, near and far; all of it for undefined.
 * Errors: INVALID_REQUEST for a key that it has not, and for none.
 */
export function withChosenJobs(workflow: Workflow, keys: readonly string[] | undefined): Workflow {
  if (keys === undefined) return workflow;
  if (keys.length === 0) {
    throw new AppError('INVALID_REQUEST', 'jobs: must name a job', { field: 'jobs' });
  }
  const chosen = new Set<string>();
  const take = (key: string): void => {
    if (chosen.has(key)) return;
    chosen.add(key);
    for (const need of workflow.jobs.get(key)?.needs ?? []) take(need);
  };
  for (const key of keys) {
    if (!workflow.jobs.has(key)) throw unknownJob(workflow, key);
    take(key);
  }
  const jobs = new Map<string, JobDefinition>();
  for (const [key, job] of workflow.jobs) if (chosen.has(key)) jobs.set(key, job);
  return { ...workflow, jobs };
}

function unknownJob({ fileName, jobs }: Workflow, key: string): AppError {
  const known = [...jobs.keys()];
  const text = `jobs: ${fileName} has no job '${key}', but ${known.join(', ')}${meant(key, known)}`;
  return new AppError('INVALID_REQUEST', text, { field: 'jobs' });
}
