import type { Workflow, WorkflowSource } from '../model/workflow.ts';
import { locateCalledWorkflow } from './called-workflow-path.ts';
import { readWorkflow, type WorkflowReading } from './read-workflow.ts';

/**
 * Reads a workflow again from the texts that a catalog gave with it, whatever lies in the project by now.
 * `sources`: the workflow's own text first. Problems are possible: another version of the runner may
 * have kept them. Never rejects.
 */
export async function readKeptWorkflow(
  sources: readonly [WorkflowSource, ...WorkflowSource[]],
): Promise<Pick<WorkflowReading, 'problems'> & { readonly workflow?: Workflow | undefined }> {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  return await readWorkflow(sources[0], (uses, from) => {
    const located = locateCalledWorkflow(uses, from);
    return Promise.resolve(located === undefined ? undefined : byPath.get(located.path));
  });
}
