import { AppError } from '../../shared/app-error.ts';
import type { ActionUses } from '../model/ports.ts';
import type { Annotation, NeededAction } from '../model/run.ts';
import type { JobDefinition, StepDefinition, Workflow } from '../model/workflow.ts';
import type { RunRecorder } from './run-recorder.ts';
import type { SchedulerOptions } from './scheduler-options.ts';
import type { JobEntry } from './state/journal-records.ts';
import { definitionAt } from './state/run-plan.ts';

/** More than that are counted in the annotation that names them. */
const NAMES_MAX = 50;

/**
 * Records what actions of other repositories the jobs of a run need, before they start, and reports those
 * that are missing in one annotation. A run of a fork fetches none: what is kept for others is not its to
 * choose. `treeDir` has its local actions. What goes wrong keeps no job from running: it may not need the action.
 */
export async function prepareActions(
  { actions: supply, report }: SchedulerOptions,
  recorder: RunRecorder,
  workflow: Workflow,
  treeDir: string,
  annotate: (annotation: Annotation) => void,
): Promise<void> {
  if (supply === undefined) return;
  const { request, jobs } = recorder.live;
  try {
    const needed = neededUses(workflow, jobs.values());
    const mayFetch = request.fork === undefined;
    const { actions, problems } = await supply.prepare({ needed, treeDir, mayFetch });
    if (actions.length > 0) recorder.record({ type: 'run.actions', actions });
    const message = messageOf(actions, problems);
    if (message !== undefined) annotate({ level: 'warning', message, title: 'Missing actions' });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    report('runner.actions', error);
    annotate({ level: 'warning', message: `Actions: ${error.message}` });
  }
}

function messageOf(
  actions: readonly NeededAction[],
  problems: readonly string[],
): string | undefined {
  const missing = actions.flatMap(({ name, source }) => (source === 'missing' ? [name] : []));
  const why = problems.slice(0, NAMES_MAX).join('; ');
  if (missing.length === 0) return why === '' ? undefined : `Actions: ${why}`;
  const shown = missing.slice(0, NAMES_MAX).join(', ');
  const more = missing.length > NAMES_MAX ? ` and ${missing.length - NAMES_MAX} more` : '';
  const count = `Of ${actions.length} actions ${missing.length} are missing`;
  const remedy =
    '`runner actions fetch` gets them, or put each into .runner/actions/<owner>/<repository>@<ref>';
  return `${count}: ${shown}${more}. ${remedy}${why === '' ? '' : `. ${why}`}`;
}

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
