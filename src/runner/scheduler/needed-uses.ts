import type { ActionUses } from '../model/action-supply.ts';
import type { JobDefinition, StepDefinition, Workflow } from '../model/workflow.ts';
import type { JobEntry } from './state/journal-records.ts';
import { definitionAt } from './state/run-plan.ts';

/**
 * What the steps of the jobs that are still to run use, by the workflow that they are written in: not
 * what was left out by the choice of jobs and matrix jobs, nor what a rerun keeps. O(steps of all jobs).
 */
export function neededUses(
  workflow: Workflow,
  jobs: Iterable<Pick<JobEntry, 'job' | 'node'>>,
): readonly ActionUses[] {
  const found = new Map<string, Set<string>>();
  const add = (definition: JobDefinition, { path }: Workflow): void => {
    if (definition.kind === 'call') {
      const { called } = definition;
      for (const inner of called.jobs.values()) add(inner, called);
      return;
    }
    const uses = found.get(path) ?? new Set();
    found.set(path, uses);
    for (const one of definition.steps.flatMap(usesOf)) uses.add(one);
  };
  const nodes = new Set<string>();
  for (const { job, node } of jobs) if (job.status !== 'completed') nodes.add(node);
  for (const node of nodes) {
    const place = definitionAt(workflow, node);
    if (place !== undefined) add(place.definition, place.workflow);
  }
  return [...found].map(([path, uses]) => ({ path, uses: [...uses] }));
}

function usesOf(step: StepDefinition): readonly string[] {
  if (step.kind === 'parallel') return step.steps.flatMap(usesOf);
  return step.kind === 'uses' ? [step.uses.trim()] : [];
}
