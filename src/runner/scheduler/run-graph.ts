import { runCallLeg } from './call-leg.ts';
import { JobNode } from './job-node.ts';
import type { JobResult, Leg, RunContext, WorkflowScope } from './run-context.ts';
import { runStepsLeg } from './steps-leg.ts';

/** Runs all jobs of a workflow, each as soon as its own needs are done. Answers their results by key. */
export async function runGraph(
  context: RunContext,
  scope: WorkflowScope,
): Promise<ReadonlyMap<string, JobResult>> {
  const nodes = new Map<string, JobNode>();
  for (const definition of scope.workflow.jobs.values()) {
    nodes.set(definition.key, new JobNode(context, scope, definition, nodes, runLeg));
  }
  await Promise.all(Array.from(nodes.values(), (node) => node.run()));
  const results = new Map<string, JobResult>();
  for (const [key, { result }] of nodes) {
    if (result !== undefined) results.set(key, result);
  }
  return results;
}

function runLeg(context: RunContext, leg: Leg): Promise<JobResult> {
  const { definition } = leg;
  return definition.kind === 'steps'
    ? runStepsLeg(context, leg, definition)
    : runCallLeg(context, leg, definition, runGraph);
}
