import { AppError } from '../../../shared/app-error.ts';
import type { JsonObject } from '../../../shared/json.ts';
import {
  chosenMatrixJobs,
  expandMatrix,
  matrixJobName,
  type MatrixChoice,
} from '../../language/matrix.ts';
import { hasExpression, jsonFromTemplate } from '../../language/template-access.ts';
import type { JobDefinition, Workflow } from '../../model/workflow.ts';
import type { PlannedJob } from './journal-records.ts';

/** Behind the key of a job, in the id of a matrix job. */
const MATRIX_JOB = /:\d+$/;
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
 * The jobs of a workflow as far as the file alone says: the matrix jobs of a matrix without expressions, and
 * the jobs of the workflows that are called. What only the run can say is one job, which its matrix jobs will
 * replace.
 * `matrix` narrows the matrix jobs. Errors: INVALID_WORKFLOW beyond `jobsMax`.
 */
export function planOf(
  workflow: Workflow,
  place: PlanPlace,
  jobsMax: number,
  matrix?: MatrixChoice,
): PlannedJob[] {
  const jobs: PlannedJob[] = [];
  const add = (job: PlannedJob): void => {
    jobs.push(job);
    if (jobs.length > jobsMax) {
      throw new AppError('INVALID_WORKFLOW', `The workflow has more than ${jobsMax} jobs`);
    }
  };
  const visit = (current: Workflow, { idPrefix, namePrefix }: PlanPlace): void => {
    for (const job of current.jobs.values()) {
      const node = idPrefix + job.key;
      const needs = needsOf(job, idPrefix);
      const matrixJobs = knownMatrixJobs(job, matrix);
      for (const [index, matrixJob] of (matrixJobs ?? [null]).entries()) {
        const id = matrixJob === null ? node : matrixJobId(node, index);
        const name = namePrefix + plainName(job, matrixJob);
        const isOpen = job.strategy?.matrix !== undefined && matrixJobs === undefined;
        if (job.kind === 'call' && job.missing === undefined && !isOpen)
          visit(job.called, placeBelow(id, name));
        else
          add({
            id,
            name: shortName(name),
            needs,
            node,
            ...(matrixJob === null ? {} : { matrix: matrixJob }),
          });
      }
    }
  };
  visit(workflow, place);
  return jobs;
}

/**
 * The job that a node of a run stands for, and the workflow that it is written in: `caller:2/key` is the
 * job `key` of what `caller` calls.
 */
export function definitionAt(
  workflow: Workflow,
  node: string,
): { readonly definition: JobDefinition; readonly workflow: Workflow } | undefined {
  let [definition, current]: [JobDefinition | undefined, Workflow] = [undefined, workflow];
  for (const part of node.split('/')) {
    if (definition !== undefined) {
      if (definition.kind !== 'call') return undefined;
      current = definition.called;
    }
    definition = current.jobs.get(part.replace(MATRIX_JOB, ''));
    if (definition === undefined) return undefined;
  }
  return definition === undefined ? undefined : { definition, workflow: current };
}

/** The id of a matrix job of `node`, by its place from 0. */
export function matrixJobId(node: string, index: number): string {
  return `${node}:${index + 1}`;
}

/** The matrix jobs of a matrix without expressions. One that cannot be fails its job when that has its turn. */
function knownMatrixJobs(
  job: JobDefinition,
  choice: MatrixChoice | undefined,
): readonly JsonObject[] | undefined {
  const matrix = job.strategy?.matrix;
  if (matrix === undefined || hasExpression(matrix)) return undefined;
  try {
    return chosenMatrixJobs(expandMatrix(jsonFromTemplate(matrix)), choice);
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
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
function plainName(job: JobDefinition, matrix: JsonObject | null): string {
  const isGiven = job.name?.kind === 'literal' && job.name.value !== null;
  const name = isGiven ? String(job.name.value) : job.key;
  return matrix === null ? name : matrixJobName(name, matrix);
}
