import { runCallMatrixJob } from './call-matrix-job.ts';
import { JobNode } from './job-node.ts';
import type { JobResult, NodeJob, RunContext, WorkflowScope } from './run-context.ts';
import { runStepsMatrixJob } from './steps-matrix-job.ts';

/** Runs all jobs of a workflow, each as soon as its own needs are done. Answers their results by key. */
export async function runGraph(
  context: RunContext,
  scope: WorkflowScope,
): Promise<ReadonlyMap<string, JobResult>> {
  const nodes = new Map<string, JobNode>();
  for (const definition of scope.workflow.jobs.values()) {
    nodes.set(definition.key, new JobNode(context, scope, definition, nodes, runMatrixJob));
  }
  await Promise.all(Array.from(nodes.values(), (node) => node.run()));
  const results = new Map<string, JobResult>();
  for (const [key, { result }] of nodes) {
    if (result !== undefined) results.set(key, result);
  }
  return results;
}

function runMatrixJob(context: RunContext, matrixJob: NodeJob): Promise<JobResult> {
  const { definition } = matrixJob;
  return definition.kind === 'steps'
    ? runStepsMatrixJob(context, matrixJob, definition)
    : runCallMatrixJob(context, matrixJob, definition, runGraph);
}
