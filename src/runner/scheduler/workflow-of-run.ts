import { readKeptWorkflow } from '../language/kept-workflow.ts';
import type { Workflow } from '../model/workflow.ts';
import { withChosenJobs } from './chosen-jobs.ts';
import type { SchedulerOptions } from './scheduler-options.ts';
import { mustBeValid } from './start-request.ts';
import type { RunRequest } from './state/journal-records.ts';

/**
 * The workflow as it was when the run was made, as GitHub takes it for a rerun: the jobs of the run are
 * those of that text. Only for a run that was recorded without it the file of now.
 * Of it the jobs that were asked for.
 * Errors: INVALID_WORKFLOW, STORE_UNAVAILABLE, and those of WorkflowCatalog.find.
 */
export async function workflowOfRun(
  { store, catalog }: Pick<SchedulerOptions, 'store' | 'catalog'>,
  { id, fileName }: { readonly id: string; readonly fileName: string },
  { jobs }: Pick<RunRequest, 'jobs'>,
): Promise<Workflow> {
  const [own, ...called] = (await store.readWorkflow(id)) ?? [];
  const whole =
    own === undefined
      ? await catalog.find(fileName)
      : { fileName, ...(await readKeptWorkflow([own, ...called])) };
  return withChosenJobs(mustBeValid(whole), jobs);
}
