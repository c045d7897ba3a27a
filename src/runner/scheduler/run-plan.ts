import { AppError } from '../../shared/app-error.ts';
import type { JobDefinition, Workflow } from '../model/workflow.ts';
import type { PlannedJob } from './journal-records.ts';

/** Most characters of a job's name. */
const NAME_CHARACTERS_MAX = 255;

/** Where the jobs of a workflow stand in a run. */
export type PlanPlace = {
  /** '' for the run's own workflow, `caller/` for one that `caller` calls. */
  readonly idPrefix: string;
  /** '' or `Caller / `. */
  readonly namePrefix: string;
};

export const TOP: PlanPlace = { idPrefix: '', namePrefix: '' };

/** The place of the workflow that the job `callerId`, shown as `callerName`, calls. */
export function placeBelow(callerId: string, callerName: string): PlanPlace {
  return { idPrefix: `${callerId}/`, namePrefix: `${callerName} / ` };
}

/**
 * The jobs of a workflow as far as the file alone tells: one for each job, for a matrix one that its
 * legs will replace, and for a call without matrix the jobs of the called workflow.
 * Errors: INVALID_WORKFLOW beyond `jobsMax`.
 */
export function planOf(workflow: Workflow, place: PlanPlace, jobsMax: number): PlannedJob[] {
  const jobs: PlannedJob[] = [];
  const visit = (current: Workflow, { idPrefix, namePrefix }: PlanPlace): void => {
    for (const job of current.jobs.values()) {
      const id = idPrefix + job.key;
      const name = namePrefix + plainName(job);
      if (job.kind === 'call' && job.strategy?.matrix === undefined) {
        visit(job.called, placeBelow(id, name));
        continue;
      }
      jobs.push({ id, name: shortName(name), needs: needsOf(job, idPrefix), node: id });
      if (jobs.length > jobsMax) {
        throw new AppError('INVALID_WORKFLOW', `The workflow has more than ${jobsMax} jobs`);
      }
    }
  };
  visit(workflow, place);
  return jobs;
}

/** The ids of the jobs that `job` waits for. */
export function needsOf(job: JobDefinition, idPrefix: string): readonly string[] {
  return job.needs.map((key) => idPrefix + key);
}

/** A name that fits; cut ones end in `...`. */
export function shortName(name: string): string {
  const line = name.replaceAll(/\s*[\r\n]+\s*/g, ' ');
  return line.length <= NAME_CHARACTERS_MAX ? line : `${line.slice(0, NAME_CHARACTERS_MAX - 3)}...`;
}

/** The name before anything can be evaluated. */
function plainName(job: JobDefinition): string {
  return job.name?.kind === 'literal' && job.name.value !== null ? String(job.name.value) : job.key;
}
