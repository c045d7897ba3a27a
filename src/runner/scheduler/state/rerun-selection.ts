import { AppError } from '../../../shared/app-error.ts';
import type { Workflow } from '../../model/workflow.ts';
import type { RunState } from './run-state.ts';

export type RerunRequest = {
  readonly failedOnly?: boolean | undefined;
  readonly job?: string | undefined;
};

/**
 * The jobs that a rerun runs again: all; those that failed or were cancelled; or one (or all matrix jobs or
 * called jobs of it). Always with every job that needs one of them, near and far, as on GitHub.
 * Errors: INVALID_REQUEST for an unknown job, or when there is nothing to run again.
 */
export function jobsToRerun(
  state: RunState,
  workflow: Workflow,
  request: RerunRequest,
): readonly string[] {
  const ids = [...state.jobs.keys()];
  if (request.job === undefined && request.failedOnly !== true) return ids;
  const isChosen = request.job === undefined ? isFailed : isAt(request.job);
  const chosen = new Set(ids.filter((id) => isChosen(id, state)));
  if (chosen.size === 0) throw nothingChosen(request);
  const reset = new Set(chosen);
  markWorkflow(workflow, '', ids, reset, false);
  return ids.filter((id) => reset.has(id));
}

function isFailed(id: string, state: RunState): boolean {
  const conclusion = state.jobs.get(id)?.job.conclusion;
  return conclusion === 'failure' || conclusion === 'cancelled';
}

function isAt(wanted: string): (id: string) => boolean {
  return (id) => id === wanted || belongsTo(id, wanted);
}

/** A matrix job of `key`, or a job of the workflow that it calls. */
function belongsTo(id: string, key: string): boolean {
  return id.startsWith(`${key}:`) || id.startsWith(`${key}/`);
}

function nothingChosen({ job }: RerunRequest): AppError {
  return job === undefined
    ? new AppError('INVALID_REQUEST', 'failedOnly: no job of the run failed', {
        field: 'failedOnly',
      })
    : new AppError('INVALID_REQUEST', `job: the run has no job '${job}'`, { field: 'job' });
}

/** Adds what depends on `reset` to it. Answers whether any job of the workflow is in it. */
function markWorkflow(
  workflow: Workflow,
  prefix: string,
  ids: readonly string[],
  reset: Set<string>,
  isWhole: boolean,
): boolean {
  const touched = new Set<string>();
  // Jobs stand in any order: until nothing changes. Each round but the last touches one more.
  for (let before = -1; before !== touched.size;) {
    before = touched.size;
    for (const job of workflow.jobs.values()) {
      if (touched.has(job.key)) continue;
      const id = prefix + job.key;
      const own = ids.filter((each) => each === id || belongsTo(each, id));
      const isAll = isWhole || job.needs.some((need) => touched.has(need));
      if (isAll) for (const each of own) reset.add(each);
      const isBelow =
        job.kind === 'call' &&
        prefixesOf(own, id)
          .map((below) => markWorkflow(job.called, below, own, reset, isAll))
          .includes(true);
      if (isAll || isBelow || own.some((each) => reset.has(each))) touched.add(job.key);
    }
  }
  return touched.size > 0;
}

/** `caller/`, or `caller:1/`, `caller:2/`... of the matrix jobs that ran. */
function prefixesOf(ids: readonly string[], caller: string): readonly string[] {
  const prefixes = ids.flatMap((id) => {
    const end = id.indexOf('/', caller.length);
    return end < 0 ? [] : [id.slice(0, end + 1)];
  });
  return [...new Set(prefixes)];
}
