import { locateCalledWorkflow } from '../language/called-workflow-path.ts';
import { readWorkflow, type WorkflowReading } from '../language/read-workflow.ts';
import type { Workflow, WorkflowSource } from '../model/workflow.ts';
import { withChosenJobs } from './chosen-jobs.ts';
import type { SchedulerOptions } from './scheduler-options.ts';
import { mustBeValid } from './start-request.ts';
import type { RunRequest } from './state/journal-records.ts';

/**
 * Reads a workflow again from the texts that a catalog gave with it, whatever lies in the project by now.
 * `sources`: the workflow's own text first. Problems are possible: another version of the runner may
 * have kept them. Never rejects.
 */
async function readKeptWorkflow(
  sources: readonly [WorkflowSource, ...WorkflowSource[]],
): Promise<Pick<WorkflowReading, 'problems'> & { readonly workflow?: Workflow | undefined }> {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  return await readWorkflow(sources[0], (uses, from) => {
    const located = locateCalledWorkflow(uses, from);
    return Promise.resolve(located === undefined ? undefined : byPath.get(located.path));
  });
}

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
